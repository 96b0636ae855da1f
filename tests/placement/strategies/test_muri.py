"""Muri's grouping: the formula, and matchings against all matchings."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.placement.strategies.muri import efficiency, group_jobs, group_time, match, stages_of
from commsim.training.sharing.periodic import JobPhase, PeriodicJob


def test_a_job_that_computes_while_the_other_sends_costs_nothing() -> None:
    assert group_time([(3.0, 1.0), (1.0, 3.0)]) == 4.0
    assert group_time([(2.0, 1.0)]) == 3.0
    assert group_time([(3.0, 1.0), (3.0, 1.0)]) == 6.0  # both want the same most of the time


def test_three_resources_and_the_best_of_two_orders() -> None:
    stages = [(3.0, 2.0, 1.0), (1.0, 3.0, 2.0), (2.0, 1.0, 3.0)]
    by_order = [
        sum(max(stages[job][(i - j) % 3] for j, job in enumerate(order)) for i in range(3))
        for order in itertools.permutations(range(3))
    ]
    assert group_time(stages) == min(by_order)
    assert min(by_order) < max(by_order)


def test_efficiency_is_the_busy_part_and_0_where_the_first_job_would_suffer() -> None:
    assert efficiency([(2.0, 2.0), (2.0, 2.0)]) == pytest.approx(1.0)
    assert efficiency([(4.0, 0.0)]) == pytest.approx(0.5)
    assert efficiency([(0.1, 0.1), (9.0, 1.0)]) == 0.0


def test_jobs_of_equal_size_that_complement_each_other_are_grouped() -> None:
    stages = [(9.0, 1.0), (5.0, 5.0), (5.0, 5.0), (5.0, 5.0)]
    assert group_jobs(stages, [8, 8, 8, 4]) == [(0,), (1, 2), (3,)]


def test_jobs_that_gain_nothing_together_stay_apart() -> None:
    assert efficiency([(1.0, 0.0)] * 2) == efficiency([(1.0, 0.0)]) == 0.5
    assert group_jobs([(1.0, 0.0)] * 2, [8, 8]) == [(0,), (1,)]


def test_groups_grow_to_as_many_jobs_as_there_are_resources() -> None:
    stages = [(1.0, 1.0, 1.0, 1.0)] * 4
    assert group_jobs(stages, [1] * 4) == [(0, 1, 2, 3)]
    pairs = group_jobs([(1.0, 1.0)] * 4, [1] * 4)
    assert sorted(map(len, pairs)) == [2, 2]
    assert sorted(job for pair in pairs for job in pair) == [0, 1, 2, 3]


@given(st.dictionaries(st.tuples(st.integers(0, 5), st.integers(0, 5)), st.integers(1, 50), max_size=12))
def test_the_matching_is_the_best_of_all(drawn: dict[tuple[int, int], int]) -> None:
    worth = {edge: float(w) for edge, w in drawn.items() if edge[0] < edge[1]}
    chosen = match(6, worth)
    ends = [end for edge in chosen for end in edge]
    assert len(ends) == len(set(ends))
    best = 0.0
    for k in range(4):
        for edges in itertools.combinations(worth, k):
            if len({end for edge in edges for end in edge}) == 2 * k:
                best = max(best, sum(worth[edge] for edge in edges))
    assert sum(worth[edge] for edge in chosen) == pytest.approx(best)


def test_a_periodic_job_computes_and_communicates() -> None:
    assert stages_of(PeriodicJob("a", 1, 0.1, (JobPhase(0.06, 0.04, 1.0),))) == pytest.approx((0.06, 0.04))


def test_more_jobs_than_resources_do_not_share_in_turn() -> None:
    with pytest.raises(InputError, match="at most 2 jobs share 2 resources in turn, got 3"):
        group_time([(1.0, 1.0)] * 3)
