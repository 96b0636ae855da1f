"""Unified circles: common multiples, exact averages, and what rounding does."""

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.placement.starts.circles import MAX_ANGLES, mean_rates, rates_at, unify
from commsim.training.sharing.periodic import JobPhase, PeriodicJob


def job(period_ms: float, *phases: tuple[float, float, float], name: str = "job") -> PeriodicJob:
    return PeriodicJob(name, 1, period_ms / 1e3, tuple(JobPhase(o / 1e3, d / 1e3, r) for o, d, r in phases))


FORTY, SIXTY = job(40, (30, 10, 50.0)), job(60, (50, 10, 50.0))


def test_the_perimeter_is_the_least_common_multiple() -> None:
    circle = unify((FORTY, SIXTY))
    assert circle.perimeter == pytest.approx(0.120)
    assert circle.n_angles == 72
    assert circle.is_common
    assert circle.n_positions.tolist() == [24, 36]  # Eq. 4: only its own period
    assert circle.rounding == 0.0


def test_only_turns_by_less_than_the_common_divisor_differ_in_the_long_run() -> None:
    circle = unify((FORTY, SIXTY, job(90, (0, 10, 1.0))), step=1e-3)
    assert circle.distinct_positions(order=True).tolist() == [1, 20, 30]  # 1; gcd(60, 40); gcd(90, lcm(40, 60))
    assert circle.distinct_positions(order=False).tolist() == [20, 60, 30]


def test_periods_are_rounded_and_the_change_is_reported() -> None:
    circle = unify((job(40.4, (30, 10, 1.0)), SIXTY))
    assert circle.perimeter == pytest.approx(0.120)
    assert circle.rounding == pytest.approx(0.4e-3)
    assert circle.demand[0, circle.reach :].mean() == pytest.approx(10 / 40.4)  # stretched: the same part of the time
    assert unify((job(0.2, (0, 0.1, 1.0)),)).period.tolist() == [1e-3]  # never to nothing


def test_a_long_common_multiple_is_cut_off_and_that_is_said() -> None:
    circle = unify((job(255, (0, 100, 1.0)), job(214, (0, 100, 1.0))))
    assert not circle.is_common
    assert circle.perimeter == 10.0
    assert 72 < circle.n_angles <= MAX_ANGLES
    assert unify((job(255, (0, 100, 1.0)), job(214, (0, 100, 1.0))), longest=60.0).perimeter == pytest.approx(54.57)


def test_a_circle_is_no_shorter_than_the_longest_period() -> None:
    circle = unify((job(3, (0, 1, 1.0)), job(5, (0, 1, 1.0))), longest=4e-3)
    assert not circle.is_common
    assert circle.perimeter == pytest.approx(5e-3)


def test_periods_that_divide_the_longest_are_never_cut_off() -> None:
    for periods in ((5, 5), (5, 2.5)):
        circle = unify([job(period * 1e3, (0, 100, 1.0)) for period in periods], longest=2.4)
        assert circle.is_common
        assert circle.perimeter == 5.0
    assert not unify((job(5000, (0, 100, 1.0)), job(3000, (0, 100, 1.0))), longest=2.4).is_common


def test_more_angles_are_taken_where_72_would_blur_the_shortest_period() -> None:
    assert unify((job(40, (0, 10, 1.0)), job(400, (0, 10, 1.0)))).n_angles == 288


def test_a_step_of_time_can_be_asked_for() -> None:
    assert unify((FORTY, SIXTY), step=1e-3).n_angles == 120
    assert unify((FORTY, SIXTY), step=0.7e-3).step <= 0.7e-3
    assert unify((FORTY, SIXTY), step=1e15).n_angles == 1


PHASES = st.lists(st.floats(0.01, 1.0), min_size=2, max_size=8).map(lambda parts: [100 * p / sum(parts) for p in parts])


@pytest.mark.slow
@given(PHASES, st.floats(0, 99.9), st.integers(1, 300))
def test_averages_are_exact(parts: list[float], turn: float, n: int) -> None:
    """Against a sum over tiny steps; and all that is sent in an iteration is in the averages of one."""
    edges = np.cumsum([0.0, *parts])
    phases = [(a, b - a, i + 1.0) for i, (a, b) in enumerate(itertools.pairwise(edges.tolist())) if i % 2]
    one = job(100, *phases)
    start = -0.1 + turn / 1e3
    means = mean_rates([one], np.array([0.1]), start + np.arange(n + 1) * 0.1 / n)[0]
    assert means.mean() * 0.1 == pytest.approx(one.n_bytes)
    fine = (np.arange(n * 400) + 0.5) * 0.1 / (n * 400) + start
    sampled = rates_at(one, fine).reshape(n, 400).mean(axis=1)
    assert np.abs(means - sampled).max() <= 8 * 8 / 400 + 1e-9


def test_a_phase_may_go_on_in_the_next_iteration() -> None:
    means = mean_rates([job(10, (8, 4, 1.0))], np.array([0.01]), np.arange(11) * 1e-3)[0]
    assert means == pytest.approx([1, 1, 0, 0, 0, 0, 0, 0, 1, 1])


@given(st.integers(0, 39), st.integers(0, 59))
def test_turning_is_starting_later(a: int, b: int) -> None:
    circle = unify((FORTY, SIXTY), step=1e-3)
    times = (np.arange(120) + 0.5) / 1e3
    expected = np.array([rates_at(FORTY, times - a / 1e3), rates_at(SIXTY, times - b / 1e3)])
    assert circle.rotated(np.array([a, b]) / 1e3) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("jobs", "options", "message"),
    [
        ((), {}, "at least one job"),
        ((FORTY,), {"angles": 0}, "cut into 1..1048576 angles, got 0"),
        ((FORTY,), {"step": 0.0}, "the step of a circle is a positive time"),
        ((FORTY,), {"step": 1e-9}, "has 40000000 steps"),
        ((FORTY,), {"quantum": -1.0}, "the quantum of a circle is a positive time"),
        ((job(1e12, (0, 10, 1.0)),), {}, "too long to be counted in 0.001 s"),
    ],
)
def test_what_is_out_of_range_is_refused(
    jobs: tuple[PeriodicJob, ...], options: dict[str, float], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        unify(jobs, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("angles", [1, 2**20])
def test_the_least_and_the_most_angles_are_legal(angles: int) -> None:
    assert unify((FORTY,), angles=angles).n_angles >= angles
    assert unify((FORTY,), step=FORTY.period / angles).n_angles == angles
    with pytest.raises(InputError, match="a circle is cut into"):
        unify((FORTY,), angles=0 if angles == 1 else angles + 1)


def test_many_phases_on_a_fine_circle_take_little_memory() -> None:
    jobs = [job(200, *((10 * i, 5, 1.0) for i in range(19)))] * 5
    edges = np.linspace(-0.2, 0.2, 2**16)
    tracemalloc.start()
    rates = mean_rates(jobs, np.full(5, 0.2), edges)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 40 * rates.nbytes  # all phases at once: about 95
