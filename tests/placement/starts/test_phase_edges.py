"""Exact excess, and start times at which one burst begins where another ends, against brute force on a fine grid."""

import itertools

import numpy as np
import pytest

from commsim.core import jit
from commsim.core.jit import Kernel
from commsim.placement.starts import phase_edges
from commsim.placement.starts.circle_kernel import OnCircle, cut, meetings, sum_until
from commsim.placement.starts.circle_kernel import costs_of_meetings as costs
from commsim.placement.starts.circles import unify
from commsim.placement.starts.link_scores import score_at, score_link, search
from commsim.placement.starts.phase_edges import cut_circle, meet
from commsim.training.sharing.periodic import GBPS, JobPhase, PeriodicJob

LINK = 50 * GBPS
FINE = 20e-6  # seconds; edges of the jobs below are on this grid, so that its best turn is the best of all


def drawn_job(rng: np.random.Generator) -> PeriodicJob:
    """One to three phases, whose edges are not on the grid of 72 angles."""
    period = int(rng.choice([4000, 6000, 8000, 12000])) // 20
    edges = np.sort(rng.choice(period, 2 * int(rng.integers(1, 4)), replace=False))
    spans = edges.reshape(-1, 2).tolist()
    phases = [JobPhase(a * FINE, (b - a) * FINE, float(rng.choice([20, 30, 45, 50])) * GBPS) for a, b in spans]
    return PeriodicJob("j", 1, period * FINE, tuple(phases))


def fine_rows(job: PeriodicJob, n: int) -> np.ndarray:
    """Demand of the job at each fine step, as a part of the link's capacity."""
    period = round(job.period / FINE)
    row = np.zeros(period)
    for phase in job.phases:
        first = round(phase.offset / FINE)
        row[first : first + round(phase.duration / FINE)] = phase.rate / LINK
    return np.tile(row, n // period)


def least_excess(jobs: list[PeriodicJob]) -> float:
    """The mean excess of the best of all turns by fine steps."""
    n = int(np.lcm.reduce([round(job.period / FINE) for job in jobs]))
    one, *others = (fine_rows(job, n) for job in jobs)
    turns = (range(round(job.period / FINE)) for job in jobs[1:])
    return min(
        float(np.maximum(one + sum(np.roll(row, k) for row, k in zip(others, at, strict=True)) - 1, 0).mean())
        for at in itertools.product(*turns)
    )


def excess(jobs: list[PeriodicJob], shifts: np.ndarray) -> float:
    """The mean excess of given start times, at the middle of steps of a quarter of the fine ones."""
    n = int(np.lcm.reduce([round(job.period / FINE) for job in jobs]))
    times = (np.arange(16 * n) + 0.5) * FINE / 16
    total = sum(
        fine_rows(job, n)[((times - shift) % (n * FINE) / FINE).astype(int)]
        for job, shift in zip(jobs, shifts, strict=True)
    )
    return float(np.maximum(total - 1, 0).mean())


@pytest.mark.slow
def test_of_a_hundred_pairs_all_start_as_the_best_of_a_fine_grid_and_none_worse_than_before() -> None:
    """Only whole angles were tried: bursts that fit exactly beside each other overlapped by part of one."""
    rng, n_better = np.random.default_rng(9), 0
    for _ in range(100):
        pair = [drawn_job(rng), drawn_job(rng)]
        circle, part = unify(pair), np.full(2, 1 / LINK)
        found, best = score_link(pair, LINK), least_excess(pair)
        by_angles = 1 - score_at(circle, part[None], circle.seconds(search(circle, part)[0]))[0]
        assert 1 - found.score <= by_angles + 1e-9
        assert 1 - found.score == pytest.approx(best, abs=1e-9)
        n_better += by_angles > best + 1e-6
    assert n_better > 30


def test_scores_are_exact_wherever_jobs_start() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        jobs = [drawn_job(rng) for _ in range(3)]
        circle = unify(jobs)
        shifts = np.array([rng.integers(0, 16 * round(job.period / FINE)) * FINE / 16 for job in jobs])
        score = score_at(circle, np.full((1, 3), 1 / LINK), shifts)[0]
        assert 1 - score == pytest.approx(excess(jobs, shifts), abs=1e-9)


def test_a_burst_begins_where_another_one_ends() -> None:
    a = PeriodicJob("a", 1, 0.1, (JobPhase(0.0, 0.0473, 50 * GBPS),))
    b = PeriodicJob("b", 1, 0.1, (JobPhase(0.0, 0.0527, 50 * GBPS),))
    found = score_link([a, b], LINK)
    assert found.score == 1.0
    assert found.shifts == pytest.approx([0.0, 0.0473])


def test_more_jobs_are_never_worse_than_by_whole_angles() -> None:
    rng, n_better = np.random.default_rng(3), 0
    for _ in range(30):
        jobs = [drawn_job(rng) for _ in range(4)]
        circle, part = unify(jobs), np.full(4, 1 / LINK)
        before = 1 - score_at(circle, part[None], circle.seconds(search(circle, part)[0]))[0]
        after = 1 - score_link(jobs, LINK).score
        assert after <= before + 1e-9
        n_better += after < before - 1e-6
    assert n_better > 10


def test_jobs_that_are_held_stay_and_several_links_count_by_their_weight() -> None:
    """Two jobs with fixed starts, and one that meets each of them on a link of its own."""
    jobs = [
        PeriodicJob(name, 1, 0.1, (JobPhase(at, 0.0473, 50 * GBPS),))
        for name, at in (("a", 0.0), ("b", 0.03), ("c", 0.01))
    ]
    circle = unify(jobs)
    part = np.array([[1, 0, 1], [0, 1, 1]]) / LINK
    held = np.array([True, True, False])
    for weight, score in (((5, 1), (1.0, None)), ((1, 5), (None, 1.0))):
        shifts = meet(circle, part, np.array(weight), np.zeros(3), held)
        assert shifts[:2].tolist() == [0.0, 0.0]
        for one, wanted in zip(score_at(circle, part, shifts), score, strict=True):
            assert wanted is None or one == wanted


def test_a_circle_with_too_many_edges_is_looked_at_in_equal_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [drawn_job(np.random.default_rng(k)) for k in (1, 2)]
    circle, shifts = unify(jobs), np.array([0.0, 1.23e-3])
    exact = cut_circle(circle, shifts)
    monkeypatch.setattr(phase_edges, "MAX_PIECES", len(exact.length) - 2)
    rough = cut_circle(circle, shifts)
    assert rough.length.tolist() == pytest.approx([1 / phase_edges.MAX_PIECES] * phase_edges.MAX_PIECES)
    assert (rough.demand == cut_circle(circle, shifts).demand).all()
    many = [PeriodicJob("j", 1, 0.1, tuple(JobPhase(k / 640, 1e-3, GBPS) for k in range(64))) for _ in range(9)]
    assert (
        len(cut_circle(unify([*many, drawn_job(np.random.default_rng(0))]), np.zeros(10)).length)
        == phase_edges.MAX_PIECES
    )


def test_where_too_many_edges_could_meet_start_times_stay_whole_angles(monkeypatch: pytest.MonkeyPatch) -> None:
    """20 jobs of 64 phases took 12 s of a service's time."""
    jobs = [PeriodicJob("j", 1, 0.1, (JobPhase(0.0, busy, 50 * GBPS),)) for busy in (0.0473, 0.0527)]
    circle, part, start = unify(jobs), np.full((1, 2), 1 / LINK), np.zeros(2)
    held = np.array([True, False])
    assert meet(circle, part, np.ones(1), start, held) == pytest.approx([0.0, 0.0473])
    monkeypatch.setattr(phase_edges, "MAX_PAIRS", 3)
    assert (meet(circle, part, np.ones(1), start, held) == start).all()


def one_after_the_other(circle, part, weight, start, is_held):
    """Return the start times of all rounds over all jobs, each at the first of its least excess."""
    shifts, n = start.copy(), len(start)
    less = phase_edges.LESS * circle.perimeter
    for _ in range(phase_edges.ROUNDS):
        before = shifts.copy()
        for j in np.flatnonzero(~is_held).tolist():
            on = part[:, j] > 0
            others = [k for k in range(n) if k != j and (part[on, k] > 0).any()]
            if others:
                times, cost, _ = phase_edges.costs_of_starts(circle, part[on], weight[on], shifts, j, others)
                if cost[1:].min(initial=np.inf) < cost[0] - less:
                    shifts[j] = times[1:][cost[1:] <= cost[1:].min() + 1e-3 * less][0]
        if (shifts == before).all():
            break
    return shifts


def test_jobs_meet_where_they_do_one_after_the_other() -> None:
    """Jobs are not tried again before another one has moved, which changes no start time."""
    rng = np.random.default_rng(0)
    n_moves = 0
    for case in range(40):
        n, n_links = int(rng.integers(2, 5)), 1 if case < 20 else int(rng.integers(1, 4))
        circle = unify([drawn_job(rng) for _ in range(n)], quantum=FINE, longest=1.0)
        part = np.where(rng.random((n_links, n)) < (1.0 if case < 20 else 0.7), 1 / LINK, 0.0)
        weight, is_held = rng.integers(1, 4, n_links), np.arange(n) <= int(case % 4 == 3)
        start = rng.uniform(0.0, circle.period)
        found = meet(circle, part, weight, start, is_held)
        if (found != start).any():  # else nothing is in excess, or no start is better
            n_moves += 1
            np.testing.assert_array_equal(found, one_after_the_other(circle, part, weight, start, is_held))
    assert n_moves > 15


def test_on_an_empty_cache_kernels_of_a_small_circle_are_interpreted_with_the_same_bits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    jobs = [drawn_job(np.random.default_rng(seed)) for seed in (1, 2)]
    circle, part, weight = unify(jobs), np.full((1, 2), 1 / LINK), np.ones(1, np.int64)

    def found() -> list[bytes]:
        pieces = cut_circle(circle, np.zeros(2))
        times, cost, _ = phase_edges.costs_of_starts(circle, part, weight, np.zeros(2), 1, [0])
        return [one.tobytes() for one in (pieces.length, pieces.demand, times, cost)]

    def refuse(*_: object) -> None:
        raise AssertionError("compiled")

    before = found()
    for limit, value in (("most_new", jit.MAX_NEW), ("most_untried", jit.MAX_UNTRIED)):
        monkeypatch.setattr(Kernel, limit, value)
    for one in (cut, costs):
        if isinstance(one, Kernel):  # no plain function, as without the JIT
            new: dict[str, object] = {"is_new": True, "declared": 0.0, "interpreted": 0.0, "compiled": refuse}
            for name in new:
                monkeypatch.setitem(vars(one), name, new[name])
    assert found() == before


def test_kernels_of_circles_get_phases_in_one_order_in_memory() -> None:
    circle = unify([drawn_job(np.random.default_rng(seed)) for seed in (1, 2)])
    for phases in (np.ascontiguousarray(circle.phases), np.asfortranarray(circle.phases)):
        object.__setattr__(circle, "phases", phases)
        assert phase_edges._on(circle, np.zeros(2)).phases.flags.c_contiguous


def test_sums_of_a_step_function_are_read_off_as_numpy_interpolates() -> None:
    rng = np.random.default_rng(0)
    for n in (2, 3, 17):
        times = np.sort(np.append(rng.random(n), [0.0, 1.0]))
        times[1:3] = times[1]  # two jobs end at once
        total = rng.random(n + 2)
        at = np.append(rng.random(50), times)
        assert [sum_until(time, times, total) for time in at] == np.interp(at, times, total).tolist()


@pytest.mark.parametrize(("shift", "nearest"), [(12.0, [10.0, 20.0, 30.0]), (96.0, [10.0, 80.0, 90.0])])
def test_of_too_many_meetings_those_nearest_to_the_start_are_tried_round_the_circle(shift, nearest):
    circle = OnCircle(
        100.0, np.array([100.0]), np.array([0, 1]), np.array([[0.0], [50.0], [1.0]]), np.array([shift]), np.zeros(9)
    )
    edges = np.array([10.0, 30.0, 70.0, 90.0])
    found, is_all = meetings(circle, 0, edges, 3)
    assert (found.tolist(), is_all) == ([shift, *nearest], False)
    found, is_all = meetings(circle, 0, edges, 8)
    assert (found.tolist(), is_all) == ([shift, *(10.0 * i for i in (1, 2, 3, 4, 6, 7, 8, 9))], True)
