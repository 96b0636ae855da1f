import numpy as np
import pytest

from commsim.core.curves import Curve, Curves
from commsim.core.errors import InputError
from commsim.core.network import Network, both_ways, kinds

SIZES = 1024.0 * 4 ** np.arange(6)


def copy(seconds, **more) -> Curve:
    return Curve(
        **{"step": "copy", "two_way": False, "relayed": False, "working_set": 0.0, "size": SIZES, "seconds": seconds}
        | more
    )


def test_a_power_law_is_interpolated_exactly() -> None:
    curve = copy(3e-9 * SIZES**0.7)
    for size in (1024.0, 3000.0, 70000.0, SIZES[-1]):
        assert curve.at(size, "seconds") == pytest.approx(3e-9 * size**0.7, rel=1e-12)


def test_below_the_smallest_size_time_stays_and_above_the_largest_it_is_proportional() -> None:
    curve = copy(1e-6 + SIZES / 1e10)
    assert curve.at(1.0, "seconds") == pytest.approx(curve.seconds[0], rel=1e-12)
    assert curve.at(8 * SIZES[-1], "seconds") == pytest.approx(8 * curve.seconds[-1], rel=1e-12)


def test_between_two_working_sets_time_is_between_those_of_both() -> None:
    curves = Curves((copy(1e-9 * SIZES), copy(4e-9 * SIZES, working_set=2.0**24)))
    size = np.array([2.0**16])
    got = [
        float(curves.times("copy", False, False, memory, size)[0][0])
        for memory in 2.0 ** np.array([10, 16, 20, 24, 30])
    ]
    assert got == pytest.approx(65536 * 1e-9 * np.array([1, 1, 2, 4, 4]), rel=1e-9)


def test_a_case_that_was_not_measured_takes_what_the_nearest_simpler_one_does() -> None:
    curves = Curves((copy(1e-9 * SIZES), copy(2e-9 * SIZES, two_way=True), copy(5e-9 * SIZES, step="reduce")))
    one = np.array([4096.0])
    for case, factor in (
        (("copy", True, True), 2), (("copy", False, True), 1),
        (("reduce", True, False), 5), (("reduce", True, True), 5),
    ):  # fmt: skip
        assert curves.times(*case, 0.0, one)[0] == pytest.approx(factor * 4096e-9)
    assert curves.times("local", False, False, 0.0, one)[0] == 0.0
    assert curves.start(1e6) == 0.0


def test_the_fastest_rate_bounds_every_message() -> None:
    curves = Curves((copy(1e-6 + SIZES / 1e10, occupancy=SIZES / 1e10), copy(2e-6 + SIZES / 3e9, step="reduce")))
    size = np.geomspace(100, 1e9, 50)
    assert curves.bandwidth == pytest.approx(1e10, rel=1e-9)
    assert (curves.times("copy", False, False, 0.0, size)[1] >= size / curves.bandwidth * (1 - 1e-12)).all()


def test_bounds_lie_around_the_curve() -> None:
    curves = Curves((copy(1e-9 * SIZES, low=0.8e-9 * SIZES, high=1.5e-9 * SIZES, occupancy=0.5e-9 * SIZES),))
    low, high = curves.bound("low").curves[0], curves.bound("high").curves[0]
    np.testing.assert_allclose(low.seconds, 0.8e-9 * SIZES)
    np.testing.assert_allclose(high.occupancy, 0.75e-9 * SIZES)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"size": [1024.0], "seconds": [1e-6]}, "`copy` one way, fresh needs at least two sizes, got 1"),
        ({"seconds": [1e-6, 3e-6, 2e-6, 4e-6, 5e-6, 6e-6]}, "must not descend, and 16 KiB takes less than 4 KiB"),
        ({"seconds": np.zeros(6)}, "must be positive and finite"),
        ({"size": SIZES[::-1], "seconds": np.ones(6)}, "sizes must ascend"),
        ({"seconds": np.ones(6), "occupancy": 2 * np.ones(6)}, "must not occupy its ports for longer than it lasts"),
        ({"seconds": np.ones(6), "low": 2 * np.ones(6)}, "between low and high"),
        ({"seconds": np.ones(6), "step": "send"}, "one of copy, reduce, local, start"),
    ],
)
def test_a_wrong_curve_is_refused(wrong, message) -> None:
    with pytest.raises(InputError, match=message):
        copy(**({"seconds": None} | wrong))


def test_curves_without_a_plain_copy_or_with_one_twice_are_refused() -> None:
    with pytest.raises(InputError, match="must include one of `copy`, one way, with fresh data"):
        Curves((copy(SIZES, step="reduce"),))
    with pytest.raises(InputError, match="appears twice"):
        Curves((copy(SIZES), copy(2 * SIZES)))


def test_costs_beside_curves_are_refused() -> None:
    with pytest.raises(InputError, match="curves hold what a message costs; overhead beside them must be 0"):
        Network(
            "n", ("a", "b"), kinds(2, 0), *both_ways([0], [1]), 1e9, 0.0, overhead=1e-6, curves=Curves((copy(SIZES),))
        )
