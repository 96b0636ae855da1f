import dataclasses
import math

import pytest

from commsim.auto import evidence as module
from commsim.auto.case import case_of
from commsim.auto.choose import choose
from commsim.auto.known_error import PACKET, ErrorSample
from commsim.core.errors import InputError
from commsim.prediction.build import prepare
from topologies.leaf_spine import leaf_spine
from topologies.star import star

MIB = 2**20
SLOW = star(8, 12.5e6, latency=0.0)
ALGORITHMS = ("ring_all_reduce", "double_tree_all_reduce")


def compared(*errors, engine="flow", against="testbed", network=SLOW, sizes=(MIB, 4 * MIB)):
    """As many comparisons as errors, at two sizes in turn, of each of two algorithms."""
    return [
        ErrorSample(engine, against, case_of(prepare(name, network), sizes[i % 2]), error)
        for name in ALGORITHMS
        for i, error in enumerate(errors)
    ]


REAL = compared(0.01, 0.02, 0.03, 0.04)
MODEL = compared(0.05, -0.08, against=PACKET["window"], network=star(8))


@pytest.fixture
def known(monkeypatch):
    """Put other comparisons in the place of the shipped ones."""
    return lambda *some: monkeypatch.setattr(module, "comparisons", lambda: tuple(one for part in some for one in part))


def test_the_cheapest_engine_that_is_close_enough_is_chosen(known):
    known(REAL, compared(0.01, 0.01, 0.01, 0.01, engine="packet"))
    ring, tree = (prepare(name, SLOW) for name in ALGORITHMS)
    assert choose(ring, 2 * MIB, 0.05).engine == "closed-form"
    assert choose(tree, 2 * MIB, 0.05).engine == "flow"
    assert choose(tree, 2 * MIB, 0.02).engine == "packet"
    assert choose(ring, 2 * MIB, 0.02).engine == "packet"  # the closed form is no better than the flow engine


def test_it_says_which_evidence_it_has_and_what_each_engine_costs(known):
    known(REAL, compared(0.3, -0.3, against=PACKET["window"]))
    found = choose(prepare("double_tree_all_reduce", SLOW), 2 * MIB, 0.05)
    text = "\n".join(found.lines)
    assert [known.against for known in found.option.known] == ["testbed", "packet engine"]
    assert found.option.error == pytest.approx(0.04)
    assert "known error 4.0% against the testbed\n  tolerance 0.05" in text
    assert "8 comparisons with the testbed: median 2.5%, p90 4.0%, 1 MiB to 4 MiB on 8 ranks of star" in text
    assert "further off in 2 comparisons with the packet engine: median 30.0%, largest 30.0%" in text
    assert "not closed-form" in text
    assert "ms): never compared in such a case" in text
    seconds = [option.seconds for option in found.options]
    assert seconds == sorted(seconds)
    assert {option.engine for option in found.options} == {"closed-form", "alpha-beta", "flow", "packet"}


def test_an_error_against_a_model_is_called_that(known):
    known(MODEL)
    found = choose(prepare("ring_all_reduce", star(8)), 2 * MIB, 0.1)
    assert found.engine == "closed-form"
    assert found.option.error == pytest.approx(0.08)
    assert found.lines[0].endswith("known error 8.0% against the packet engine")
    assert "the packet engine is a model, not a measurement" in found.lines[2]


def test_what_minus_v_says_of_the_choice_names_the_engine_once(known):
    known(MODEL)
    found = choose(prepare("ring_all_reduce", star(8)), 2 * MIB, 0.1)
    assert str(found.remark).count("2 MiB: engine closed-form") == 1
    assert str(found.remark).count("known error") == 1


def test_where_the_flow_engine_is_too_far_from_the_packet_engine_that_one_is_chosen(known):
    known(MODEL)
    found = choose(prepare("double_tree_all_reduce", star(8)), 2 * MIB, 0.01)
    assert (found.engine, found.option.error, found.option.known) == ("packet", 0.0, ())
    text = "\n".join(found.lines)
    assert "it is the packet engine\n  the flow engine was compared with it" in text
    assert "how far that model is from a real network is not known" in text


def test_where_real_runs_say_how_far_off_it_is_a_model_is_no_way_out(known):
    known(REAL, compared(0.3, -0.3, against=PACKET["window"]))
    with pytest.raises(InputError, match=r"within 0.01 of all_reduce of 2 MiB .* closest is .* p90 4.0%"):
        choose(prepare("ring_all_reduce", SLOW), 2 * MIB, 0.01)


def test_the_transport_decides_with_what_is_compared(known):
    known(MODEL, compared(0.5, 0.6, against=PACKET["dcqcn"], network=star(8)))
    tree = prepare("double_tree_all_reduce", star(8))
    assert choose(tree, MIB, 0.1).engine == "flow"
    assert "further off in 1 comparison with the packet engine, DCQCN" in "\n".join(choose(tree, MIB, 0.1).lines)
    assert choose(tree, MIB, 0.1, "dcqcn").engine == "packet"
    with pytest.raises(InputError, match="is not known"):
        choose(tree, MIB, 0.1, "dctcp")
    with pytest.raises(InputError, match="a transport is one of window, dctcp, dcqcn, got 'tcp'"):
        choose(tree, MIB, 0.1, "tcp")


@pytest.mark.parametrize(
    ("size", "network", "why"),
    [
        (MIB / 2, SLOW, "512 KiB: compared were 1 MiB to 4 MiB"),
        (2 * MIB, star(8, 50e9, latency=0.0), "links of 400 Gb/s: compared were links of 100 Mb/s"),
        (2 * MIB, star(8, 12.5e6, latency=1e-2), "the links' latency is 0.48 of a message's time"),
        (2 * MIB, star(9, 12.5e6), "ring_all_reduce on star was compared with 8 ranks"),
        (2 * MIB, leaf_spine(2, 2, 4), "all_reduce, ring_all_reduce on leaf_spine was never compared, only star was"),
    ],
)
def test_what_was_not_compared_is_refused(known, size, network, why):
    known(REAL)
    with pytest.raises(InputError, match=r"is not known; .*; choose by hand, such as engine flow") as refusal:
        choose(prepare("ring_all_reduce", network), size, 0.5)
    assert why in str(refusal.value)


def test_what_is_refused_is_not_laid_out_first(known):
    known(REAL)
    ready = prepare("ring_all_reduce", star(4096))
    with pytest.raises(InputError, match="on 4096 ranks of star:n_hosts=4096"):
        choose(ready, 2 * MIB, 0.5)
    assert "events" not in ready.paths._plans


def test_an_operation_that_was_never_compared_is_refused(known):
    known(REAL)
    with pytest.raises(InputError, match="broadcast was never compared, only all_reduce was"):
        choose(prepare("chain_broadcast", star(8)), 2 * MIB, 0.5)


@pytest.mark.parametrize("tolerance", [0.0, -0.1, math.inf, math.nan])
def test_a_tolerance_is_a_positive_number(tolerance):
    with pytest.raises(InputError, match="a tolerance is a relative error above 0"):
        choose(prepare("ring_all_reduce", star(4)), MIB, tolerance)


def test_the_shipped_data_has_an_engine_for_collectives_at_any_rate():
    for rate in (1.25e9, 12.5e9, 50e9):
        found = choose(prepare("ring_all_reduce", star(8, rate)), MIB, 0.15)
        assert found.engine == "closed-form"
        assert found.option.same_as_flow
        assert not found.option.known[0].real
    spread = prepare("direct_all_to_all", leaf_spine(4, 4, 8, oversubscription=2.0))
    assert choose(spread, MIB, 0.1).engine == "flow"


def test_the_shipped_data_has_real_runs_where_links_are_as_slow_as_they_were():
    slow = prepare("ring_all_reduce", star(4, 25e6, latency=0.0))
    assert choose(slow, MIB, 0.1).option.known[0].against == "testbed"
    with pytest.raises(InputError, match=r"software's costs do not scale"):
        choose(prepare("ring_all_reduce", dataclasses.replace(SLOW, bandwidth=5e8 / 8 * 2)), 2**40, 0.1)


@pytest.mark.parametrize("network", ["star:n_hosts=8", "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4"])
@pytest.mark.parametrize("size", ["1KiB", "64KiB", "1MiB", "16MiB"])
def test_the_shipped_data_has_an_engine_for_small_sizes_with_the_default_overhead(network, size):
    import commsim as cs

    said = cs.solve(cs.scenario_of("ring_all_reduce", network, engine="auto", tolerance=0.2), [size]).said
    (chosen,) = (one for one in said if one.code == "engine-chosen")
    assert "known error" in chosen.text
