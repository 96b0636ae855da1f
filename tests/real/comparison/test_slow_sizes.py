import pytest

from commsim.formats.measurement import Measurement
from commsim.real.comparison.pairs import Pair
from commsim.real.comparison.slow_sizes import common_factor, explain_slow

MIB = 2**20


def pairs(*ratios, interval=None):
    """Pairs from 1 MiB on, four times the size each, with these ratios of measured to predicted times."""
    return [
        Pair(Measurement("all_reduce", MIB * 4**i, ratio * 1e-3, 32), 1e-3, interval) for i, ratio in enumerate(ratios)
    ]


@pytest.mark.parametrize(
    ("ratios", "line"),
    [
        (
            (1.0, 0.9, 2.0, 1.1),
            "slow: 16 MiB: measured 2 times as long as predicted, 0.9 and 1.1 at the next sizes; "
            "often the algorithm or protocol chosen at this size",
        ),
        (
            (1.0, 1.0, 1.7, 2.1),
            "slow: 16 MiB to 64 MiB: measured 1.7 to 2.1 times as long as predicted, 1 at the next size",
        ),
        (
            (3.0, 1.5, 1.0, 1.0),
            "slow: 1 MiB to 4 MiB: measured 1.5 to 3 times as long as predicted, 1 at the next size",
        ),
        ((4.1, 3.9), "slow: 1 MiB to 4 MiB: measured 3.9 to 4.1 times as long as predicted"),
        # Shorter than predicted, and yet much longer than both neighbours.
        (
            (0.4, 0.5, 0.9, 0.5),
            "slow: 16 MiB: measured 0.9 times as long as predicted, 0.5 and 0.5 at the next sizes; "
            "often the algorithm or protocol chosen at this size",
        ),
    ],
)
def test_slow_sizes_are_named_without_a_cause_that_their_place_does_not_prove(ratios, line):
    assert explain_slow(pairs(*ratios)) == (line,)


def test_nothing_is_said_of_times_that_are_as_predicted():
    assert explain_slow(pairs(1.0, 1.2, 0.7, 0.9)) == ()
    assert explain_slow(pairs(1.0, 1.4, 1.3, interval=(0.9e-3, 1.5e-3))) == ()
    assert explain_slow([]) == ()


def test_the_interval_of_a_prediction_decides_where_there_is_one():
    (line,) = explain_slow(pairs(1.0, 1.1, 1.2, interval=(0.9e-3, 1.15e-3)))
    assert line.startswith("slow: 16 MiB: measured 1.2 times")


def test_times_that_are_all_off_by_one_factor_are_told_from_those_that_change_with_the_size():
    assert common_factor(pairs(1.25, 1.26, 1.24)) == pytest.approx(1.25)
    assert common_factor(pairs(0.8, 0.8, 0.8)) == pytest.approx(0.8)
    assert common_factor(pairs(1.0, 1.02, 0.99)) is None
    assert common_factor(pairs(1.9, 1.9, 1.5)) is None
    assert common_factor(pairs(1.9, 1.9)) is None  # two sizes of which one is four times the other show no pattern
