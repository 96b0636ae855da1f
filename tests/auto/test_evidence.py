import dataclasses

import pytest

from commsim.auto import evidence as module
from commsim.auto.case import PredictionCase
from commsim.auto.evidence import evidence, never, say, say_labels
from commsim.auto.known_error import PACKET, ErrorSample

MIB = 2**20
RING = PredictionCase("all_reduce", "ring_all_reduce", "star", "ecmp", "packed", 1, 1, 8, 8, MIB, 12.5e9, 6250)
IDEAL = PACKET["window"]


def case(**changes):
    return dataclasses.replace(RING, **changes)


def packets(error=0.05, against=IDEAL, **changes):
    return ErrorSample("flow", against, case(**changes), error)


GRID = [
    packets(ranks=ranks, size=size, product=product, error=-ranks / 1000 - MIB / size / 100)
    for ranks, sizes in ((8, (MIB, 16 * MIB, 256 * MIB)), (32, (MIB, 16 * MIB)))
    for size in sizes
    for product in (0, 50_000)
]
RUNS = [
    ErrorSample("flow", "testbed", case(ranks=4, near=4, size=size, rate=rate, product=0), error)
    for size, rate, error in ((MIB, 25e6, 0.01), (4 * MIB, 25e6, -0.02), (MIB, 62.5e6, 0.03), (4 * MIB, 62.5e6, 0.09))
]


@pytest.fixture(autouse=True)
def known(monkeypatch):
    """Put other comparisons in the place of the shipped ones."""
    found = [*GRID, *RUNS]
    monkeypatch.setattr(module, "comparisons", lambda: tuple(found))
    return found


def test_a_case_between_comparisons_has_the_largest_error_of_those_around_it():
    (found,), _ = evidence("flow", case(ranks=16, size=4 * MIB))
    assert (found.against, found.count, found.real) == (IDEAL, 8, False)
    assert found.error == pytest.approx(32 / 1000 + 1 / 100)
    (at_one,), _ = evidence("flow", case(size=MIB, product=0))
    assert (at_one.count, at_one.error) == (1, pytest.approx(0.018))


@pytest.mark.parametrize("rate", [1e3, 1.25e9, 1e12])
def test_with_an_ideal_window_the_rate_is_no_condition(rate):
    assert evidence("flow", case(rate=rate))[0][0].error == pytest.approx(0.018)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"size": MIB / 2}, "512 KiB: compared were 1 MiB to 256 MiB with oversubscription 1"),
        ({"ranks": 32, "size": 64 * MIB}, "64 MiB: compared were 1 MiB to 16 MiB with oversubscription 1, 32 ranks"),
        ({"ranks": 16, "size": 64 * MIB}, "64 MiB: compared were 1 MiB to 16 MiB with oversubscription 1, 32 ranks"),
        ({"ranks": 64}, "64 ranks: compared were 8 to 32 ranks"),
        ({"product": 1e5}, "hold 97.66 KiB (rate times latency): compared were links that hold 0 B to 48.83 KiB"),
        ({"oversubscription": 2}, "oversubscription 2: compared were oversubscription 1"),
        ({"unevenness": 2}, "fastest link 2 times the slowest: compared were fastest link 1 times the slowest"),
        ({"collective": "double_tree_all_reduce"}, "collective double_tree_all_reduce was not compared, only ring_all"),
        ({"routing": "spray"}, "routing spray was not compared, only ecmp"),
        ({"placement": "other"}, "placement other was not compared, only packed"),
        ({"others": 0.2}, "receiving and reducing take 0.2 of a message's time, compared was without them"),
        ({"overhead": 12500, "costs": 0.2}, "messages that cost as long as"),
    ],
)
def test_what_lies_outside_is_refused_and_said(changes, why):
    found, lacking = evidence("flow", case(**changes))
    assert not found
    assert why in lacking[IDEAL]


def test_costs_that_weigh_nothing_change_nothing():
    assert evidence("flow", case(overhead=12500, costs=0.009, others=0.009))[0]


def test_real_runs_come_first_and_their_error_is_the_worst_tenth_s(known):
    known += [packets(ranks=4, near=4, size=size, product=0) for size in (MIB, 16 * MIB)]
    (real, model), _ = evidence("flow", case(ranks=4, near=4, size=2 * MIB, rate=50e6, product=0))
    assert (real.against, real.real, real.count, model.against) == ("testbed", True, 4, IDEAL)
    assert real.error == pytest.approx(0.072)
    assert say(real) == "4 comparisons with the testbed: median 2.5%, p90 7.2%, 1 MiB to 4 MiB on 4 ranks of star"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"rate": 12.5e9}, r"links of 100 Gb/s: compared were links of 200 Mb/s to 500 Mb/s"),
        ({"rate": 12.5e9}, r"(software's costs do not scale with the rate)"),
        (
            {"product": 5e4},
            "the links' latency is 0.19 of a message's time, and links that were run for real have none",
        ),
    ],
)
def test_what_was_run_slowly_says_nothing_of_fast_links(changes, why):
    found, lacking = evidence("flow", case(**{"ranks": 4, "near": 4, "rate": 50e6, "product": 0} | changes))
    assert not found
    assert why in lacking["testbed"]


def test_few_real_runs_are_no_evidence(known):
    known.remove(RUNS[0])
    found, lacking = evidence("flow", case(ranks=4, near=4, size=4 * MIB, rate=25e6, product=0))
    assert not found
    assert lacking["testbed"].startswith("2 comparisons are too few")


def test_other_transports_have_clocks_and_their_rate_is_a_condition(known):
    known += [packets(0.7, PACKET["dcqcn"], rate=rate, product=p) for rate in (1.25e9, 50e9) for p in (0, 50_000)]
    ideal, other = evidence("flow", case())[0]
    assert (ideal.against, other.against, other.error) == (IDEAL, PACKET["dcqcn"], 0.7)
    assert [e.against for e in evidence("flow", case(), "dcqcn")[0]] == [PACKET["dcqcn"], IDEAL]
    assert len(evidence("flow", case(rate=100e9))[0]) == 1
    found, lacking = evidence("flow", case(rate=100e9), "dcqcn")
    assert not found
    assert "links of 800 Gb/s: compared were links of 10 Gb/s to 400 Gb/s" in lacking[PACKET["dcqcn"]]


def test_what_was_never_compared_is_known_without_a_look_at_the_network():
    labels = ("all_reduce", "ring_all_reduce", "star")
    assert not never("flow", labels, 16)
    assert never("flow", labels, 33)
    assert say_labels("flow", labels) == "ring_all_reduce on star was compared with 4 to 32 ranks"
    assert say_labels("flow", ("barrier", "x", "star")) == "barrier was never compared, only all_reduce was"
    assert "x was never compared, only ring_all_reduce was" in say_labels("flow", ("all_reduce", "x", "star"))
    assert say_labels("flow", (*labels[:2], "torus")) == (
        "all_reduce, ring_all_reduce on torus was never compared, only star was"
    )
