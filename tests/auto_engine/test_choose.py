from __future__ import annotations

import math

import pytest

from commsim.auto_engine import choose
from commsim.auto_engine import evidence as module
from commsim.auto_engine.evidence import evidence, family
from commsim.core.errors import InputError
from commsim.core.known_error import KnownError
from commsim.run import prepare
from topologies.leaf_spine import leaf_spine
from topologies.star import star

MIB = 2**20
FLOW = KnownError("flow", "all_reduce", "testbed", MIB, 4 * MIB, 9, 0.01, 0.04, 0.1, (4, 8), ("star",), MIB, 3 * MIB)
PACKET = KnownError(
    "packet", "all_reduce", "measured", MIB, math.inf, 5, 0.01, 0.02, 0.1, (8,), ("star",), MIB, 9 * MIB
)
OTHERS = KnownError("flow", "all_reduce", "measured", MIB, 4 * MIB, 5, 0.1, 0.3, 0.5, (2, 8), ("star",), MIB, 2 * MIB)


@pytest.fixture
def known(monkeypatch):
    """Put other comparisons in the place of the shipped ones."""
    return lambda *errors: monkeypatch.setattr(module, "known_errors", lambda: errors)


def test_the_cheapest_engine_that_is_close_enough_is_chosen(known):
    known(FLOW, PACKET)
    ring, tree = prepare("ring_all_reduce", star(8)), prepare("double_tree_all_reduce", star(8))
    assert choose(ring, 2 * MIB, 0.05).engine == "closed-form"
    assert choose(tree, 2 * MIB, 0.05).engine == "flow"
    assert choose(tree, 2 * MIB, 0.03).engine == "packet"
    assert choose(ring, 2 * MIB, 0.03).engine == "packet"  # the closed form is no better than the flow engine


def test_it_says_which_evidence_it_has_and_what_each_engine_costs(known):
    known(FLOW, PACKET, OTHERS)
    found = choose(prepare("double_tree_all_reduce", star(8)), 2 * MIB, 0.05)
    text = "\n".join(found.lines)
    assert found.chosen.known == (FLOW, OTHERS)
    assert found.chosen.error == 0.04
    assert "9 comparisons with the testbed: median 1.0%, p90 4.0%" in text
    assert "further off in 5 comparisons with what others measured" in text
    assert "not closed-form" in text
    assert "packet" in text
    seconds = [option.seconds for option in found.options]
    assert seconds == sorted(seconds)
    assert {option.engine for option in found.options} == {"closed-form", "alpha-beta", "flow", "packet"}


@pytest.mark.parametrize(
    ("size", "ranks", "network"),
    [(MIB / 2, 8, star(8)), (3.5 * MIB, 8, star(8)), (2 * MIB, 3, star(8)), (2 * MIB, 9, star(9)),
     (2 * MIB, 8, leaf_spine(2, 2, 4))],
)  # fmt: skip
def test_what_was_not_compared_is_refused(known, size, ranks, network):
    known(FLOW)
    ready = prepare("ring_all_reduce", network, n_ranks=ranks)
    with pytest.raises(InputError, match=r"not known; compared were 1 MiB to 3 MiB on 4 to 8 ranks of star; choose by"):
        choose(ready, size, 0.5)


def test_what_is_refused_is_not_laid_out_first(known):
    known(FLOW)
    ready = prepare("ring_all_reduce", star(4096))
    with pytest.raises(InputError, match="on 4096 ranks of star:n_hosts=4096"):
        choose(ready, 2 * MIB, 0.5)
    assert "full" not in ready.paths._plans


def test_an_operation_that_was_never_compared_is_refused(known):
    known(FLOW)
    with pytest.raises(InputError, match="broadcast was never compared with real runs, only all_reduce were"):
        choose(prepare("chain_broadcast", star(8)), 2 * MIB, 0.5)


def test_a_tolerance_below_all_known_errors_is_refused_with_the_closest(known):
    known(FLOW)
    with pytest.raises(InputError, match=r"within 0.01 of all_reduce of 2 MiB .* the closest is .* p90 4.0%"):
        choose(prepare("ring_all_reduce", star(8)), 2 * MIB, 0.01)


@pytest.mark.parametrize("tolerance", [0.0, -0.1, math.inf, math.nan])
def test_a_tolerance_is_a_positive_number(tolerance):
    with pytest.raises(InputError, match="a tolerance is a relative error above 0"):
        choose(prepare("ring_all_reduce", star(4)), MIB, tolerance)


def test_few_comparisons_are_no_evidence(known):
    import dataclasses

    known(dataclasses.replace(FLOW, count=3))
    assert evidence("flow", "all_reduce", 2 * MIB, 8, "star:n_hosts=8") == ()


def test_the_family_of_a_network_is_how_its_name_begins():
    assert family("leaf_spine:n_leaves=2") == family("leaf-spine") == "leaf_spine"
    assert family("star, less 1 link") != "star"


def test_the_shipped_data_has_an_engine_for_all_reduce_on_a_star():
    found = choose(prepare("ring_all_reduce", star(8)), MIB, 0.1)
    assert found.engine == "closed-form"
    assert found.chosen.same_as_flow
    assert found.chosen.known[0].engine == "flow"
