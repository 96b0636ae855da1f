"""Algorithm 1: the paper's chain, the property that holds, and the one that does not."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.placement.starts.affinity import components, inconsistency, largest_inconsistency, traverse
from commsim.placement.starts.circles import QUANTUM, unify
from commsim.placement.starts.link_scores import score_at
from commsim.training.sharing.periodic import GBPS, JobPhase, PeriodicJob


class Demands(NamedTuple):
    """A link's demands, sought before."""

    jobs: tuple[int, ...]
    shifts: tuple[float, ...]
    is_held: bool = False


PERIODS_MS = (20, 30, 40, 60, 90)


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[Demands], np.ndarray]:
    """Links that join one known job with one or two new ones each, and shifts in whole milliseconds."""
    periods = [draw(st.sampled_from(PERIODS_MS))]
    links = []
    for _ in range(draw(st.integers(1, 6))):
        members = [draw(st.integers(0, len(periods) - 1))]
        for _ in range(draw(st.integers(1, 2))):
            members.append(len(periods))
            periods.append(draw(st.sampled_from(PERIODS_MS)))
        members = draw(st.permutations(members))
        shifts = [draw(st.integers(0, periods[job] - 1)) / 1e3 for job in members]
        links.append(Demands(tuple(members), tuple(shifts)))
    return draw(st.permutations(links)), np.array(periods) / 1e3


def test_a_chain_of_three_jobs_gets_the_papers_times() -> None:
    periods = np.array([40.0, 60.0, 50.0])
    links = [Demands((0, 1), (7.0, 52.0)), Demands((1, 2), (31.0, 3.0))]
    t2 = (-7 + 52) % 60
    t3 = (-7 + 52 - 31 + 3) % 50
    assert traverse(links, periods).tolist() == [0, t2, t3]  # Eqs. 7 to 9


@given(trees(), st.one_of(st.none(), st.integers(0, 100)))
def test_without_loops_every_link_gets_its_shifts_up_to_a_common_offset(
    tree: tuple[list[Demands], np.ndarray], seed: int | None
) -> None:
    links, periods = tree
    shifts = traverse(links, periods, root=None if seed is None else np.random.default_rng(seed))
    assert ((shifts >= 0) & (shifts < periods)).all()
    for link in links:
        wish = np.rint(np.array(link.shifts) * 1e3).astype(int)
        period = np.rint(periods[list(link.jobs)] * 1e3).astype(int)
        given_ms = np.rint(shifts[list(link.jobs)] * 1e3).astype(int)
        offsets = range(int(np.lcm.reduce(period)))
        assert any(((given_ms - wish - c) % period == 0).all() for c in offsets)
        assert inconsistency(link, shifts, periods) < 1e-9


@given(trees(), st.integers(0, 2**32))
def test_so_every_link_keeps_its_score(tree: tuple[list[Demands], np.ndarray], seed: int) -> None:
    links, periods = tree
    rng = np.random.default_rng(seed)
    jobs = [
        PeriodicJob(str(i), 1, p, (JobPhase(0.0, p * rng.integers(1, 10) / 10, rng.integers(10, 50) * GBPS),))
        for i, p in enumerate(periods.tolist())
    ]
    shifts = traverse(links, periods)
    for link in links:
        circle = unify([jobs[j] for j in link.jobs], step=1e-3)
        part = np.full((1, len(link.jobs)), 1 / (50 * GBPS))
        alone, together = np.array(link.shifts), shifts[list(link.jobs)]
        assert score_at(circle, part, alone)[0] == pytest.approx(score_at(circle, part, together)[0], abs=1e-9)


class Asked(NamedTuple):
    """A link that counts when its shifts are read."""

    jobs: tuple[int, ...]
    wish: tuple[float, ...]
    is_held: bool
    count: list[int]

    @property
    def shifts(self) -> tuple[float, ...]:
        self.count.append(1)
        return self.wish


def test_the_largest_inconsistency_is_found_without_what_cannot_be_larger() -> None:
    rng, n_links, read = np.random.default_rng(0), 0, []
    for _ in range(60):
        unit = float(rng.choice([1e-3, 1.3e-3]))  # the second is no whole number of quanta
        periods = rng.choice([100, 120, 150, 200, 240, 300], 8) * unit
        links = []
        for _link in range(30):
            jobs = tuple(np.sort(rng.permutation(8)[: int(rng.integers(2, 5))]).tolist())
            wish = tuple(float(rng.uniform(0, periods[j])) for j in jobs)
            links.append(Asked(jobs, wish, bool(rng.random() < 0.1), []))
        shifts = rng.uniform(0, periods)
        found = largest_inconsistency(links, shifts, periods)
        n_links, read = n_links + len(links), read + [len(one.count) for one in links]
        assert found == max(inconsistency(link, shifts, periods) for link in links)
    assert sum(read) < 0.7 * n_links
    assert largest_inconsistency([], np.zeros(0), np.zeros(0)) == 0.0


def test_eq_6_of_the_paper_does_not_hold_modulo_the_perimeter() -> None:
    periods = np.array([0.040, 0.060])
    link = Demands((0, 1), (0.030, 0.010))
    a, b = np.rint(traverse([link], periods) * 1e3)
    assert (a, b) == (0, 40)
    assert (b - a) % 120 != (10 - 30) % 120
    assert (b - a) % 20 == (10 - 30) % 20  # only modulo the greatest common divisor
    assert inconsistency(link, np.array([a, b]) / 1e3, periods) == 0.0


def test_two_links_with_the_same_two_jobs_are_a_loop_and_one_is_none() -> None:
    assert [part.has_loop for part in components([(0, 1), (0, 1)])] == [True]
    assert [part.has_loop for part in components([(0, 1), (1, 2), (1, 3, 4)])] == [False]
    assert [part.has_loop for part in components([(0, 1), (1, 2), (2, 0)])] == [True]


def test_components_do_not_know_of_each_other() -> None:
    parts = components([(4, 2), (0, 1), (2, 7)])
    assert [(part.jobs, part.links) for part in parts] == [((0, 1), (1,)), ((2, 4, 7), (0, 2))]
    assert components([]) == []


def test_contradicting_wishes_are_measured() -> None:
    periods = np.array([0.1, 0.1])
    links = [Demands((0, 1), (0.0, 0.020)), Demands((0, 1), (0.0, 0.050))]
    shifts = traverse(links, periods)
    assert shifts.tolist() == [0.0, 0.020]  # the first link decides
    assert [inconsistency(link, shifts, periods) for link in links] == pytest.approx([0.0, 0.030])


def test_the_shortest_period_counts_as_it_is() -> None:
    """A job comes round twice in the period of one that lasts twice as long: a period later is the same."""
    link, periods = Demands((0, 1), (0.0, 0.0)), np.array([1.0, 2.0]) * QUANTUM
    assert inconsistency(link, np.array([0.0, 1.0]) * QUANTUM, periods) == pytest.approx(0.0, abs=1e-12)
    assert inconsistency(link, np.array([0.0, 0.5]) * QUANTUM, periods) == pytest.approx(0.5 * QUANTUM)


def test_jobs_that_share_nothing_start_at_once() -> None:
    assert traverse([], np.ones(3)).tolist() == [0.0, 0.0, 0.0]


def test_the_drawn_root_starts_at_0() -> None:
    link = Demands((0, 1, 2), (0.01, 0.02, 0.03))
    roots = {int(np.argmin(traverse([link], np.ones(3), root=np.random.default_rng(s)))) for s in range(20)}
    assert roots == {0, 1, 2}
