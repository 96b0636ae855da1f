"""What jobs lose on a link: at their starts as by cutting the circle, and where they drift as by counting states."""

import itertools

import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.placement.starts.circles import unify
from commsim.placement.starts.link_scores import score_at
from commsim.placement.starts.meeting_kernel import late_anywhere, meet_at
from commsim.placement.starts.met_jobs import met_jobs
from commsim.training.sharing.periodic import GBPS, JobPhase, PeriodicJob

LINK = 50 * GBPS


def drawn_job(seed):
    rng = np.random.default_rng(seed)
    period = float(rng.choice([0.1, 0.12, 0.24]))
    edges = np.sort(rng.uniform(0, period, 2 * int(rng.integers(1, 4)))).reshape(-1, 2).tolist()
    return PeriodicJob("j", 1, period, tuple(JobPhase(a, b - a, float(rng.integers(15, 50)) * GBPS) for a, b in edges))


@pytest.mark.parametrize("n", [2, 3, 7])
def test_states_of_jobs_that_start_anywhere_are_weighed_by_their_time(n):
    """Counted one by one, or drawn where there are more than a thousand."""
    jobs = [drawn_job(seed) for seed in range(n)]
    met, part = met_jobs(jobs), np.full(n, 1 / LINK)
    late = np.empty(len(met.phase))
    excess = late_anywhere(met, np.arange(n), part, late)
    states = [[(None, 1 - sum(p.duration for p in job.phases) / job.period, 0.0),
               *((k, p.duration / job.period, p.rate) for k, p in enumerate(job.phases))] for job in jobs]  # fmt: skip
    first, expected, total = np.cumsum([0, *(len(job.phases) for job in jobs)]), np.zeros(len(late)), 0.0
    for state in itertools.product(*states):
        over = np.prod([part for _, part, _ in state]) * max(0.0, sum(rate for *_, rate in state) / LINK - 1)
        total += over
        for j, (k, _, _) in enumerate(state):
            if k is not None:
                expected[first[j] + k] += over
    is_counted = np.prod([len(of) for of in states]) <= 1024
    assert excess == pytest.approx(total, rel=1e-9 if is_counted else 0.1)
    assert late == pytest.approx(expected, rel=1e-9, abs=1e-12 if is_counted else 0.02)


@pytest.mark.parametrize("quantum", [1e-3, 5e-3])
def test_the_score_is_that_of_the_circle_whatever_periods_are_rounded_to(quantum):
    jobs = [drawn_job(seed) for seed in range(4)]
    starts, part, times = np.random.default_rng(1).uniform(0, 0.1, 4), np.full(4, 1 / LINK), np.empty(4)
    met = met_jobs(jobs, quantum, 2.4)._replace(shift=starts)
    (score,) = meet_at(met, np.array([0, 4]), np.arange(4), part, False, times)
    assert score == pytest.approx(score_at(unify(jobs, quantum=quantum, longest=2.4), part[None], starts)[0], abs=1e-12)
    assert (times >= [job.period for job in jobs]).all()


def test_an_iteration_too_long_to_be_counted_is_refused():
    """Such as one of bytes over a link that is much too slow: it was an error of the service."""
    with pytest.raises(InputError, match=r"an iteration of 1e\+20 s is too long to be counted in 0.001 s"):
        met_jobs([PeriodicJob("a", 2, 1e20, (JobPhase(0.0, 1e19, 1.0),))])
