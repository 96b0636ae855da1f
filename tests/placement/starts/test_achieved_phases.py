"""Achieved phases: alone, the simulation of a job is what its achieved phases say, and keeps their places."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.placement.starts.achieved_phases import achieved
from commsim.training.sharing.periodic import GBPS, JobPhase, PeriodicJob
from commsim.training.sharing.shared_links import fair_times


def test_a_phase_over_a_slower_link_takes_its_bytes_over_the_capacity() -> None:
    job = PeriodicJob("a", 2, 0.25, (JobPhase(0.15, 0.09, 60 * GBPS),))
    found = achieved(job, 1 / (50 * GBPS))
    assert found.phases[0].duration == pytest.approx(0.108)
    assert (found.period, found.phases[0].offset) == pytest.approx((0.268, 0.15))
    assert found.n_bytes == pytest.approx(job.n_bytes)
    assert achieved(job, 1 / (60 * GBPS)) is job


def test_computation_beside_a_phase_hides_what_it_is_late() -> None:
    phases = (JobPhase(0.0, 0.02, 100 * GBPS, 0.05), JobPhase(0.07, 0.03, 100 * GBPS))
    found = achieved(PeriodicJob("a", 2, 0.1, phases), 1 / (50 * GBPS))
    assert (found.period, found.phases[1].offset) == pytest.approx((0.13, 0.07))
    later = achieved(PeriodicJob("a", 2, 0.1, phases), 1 / (25 * GBPS))
    assert (later.period, later.phases[1].offset) == pytest.approx((0.1 + 0.03 + 0.09, 0.1))


@st.composite
def one_job(draw: st.DrawFn) -> PeriodicJob:
    """One or two phases in the first 80 of 100 ms; the last may go on in the next iteration."""
    ends = sorted(draw(st.lists(st.integers(1, 79), min_size=2, max_size=4, unique=True)))
    spans = [(a, b) for a, b in zip(ends[::2], ends[1::2], strict=False)]
    phases = [JobPhase(a / 1e3, (b - a) / 1e3, draw(st.sampled_from([20, 60, 90])) * GBPS) for a, b in spans]
    if draw(st.booleans()):
        phases.append(JobPhase(0.09, 0.01 + spans[0][0] / 2e3, 80 * GBPS))
    return PeriodicJob("a", 2, 0.1, tuple(phases))


@given(one_job())
def test_a_job_alone_takes_its_achieved_iteration(job: PeriodicJob) -> None:
    part, start = np.full((1, 1), 1 / (50 * GBPS)), np.zeros(1)
    found = achieved(job, float(part[0, 0]))
    assert fair_times([job], part, start, 4)[0] == pytest.approx(found.period)
    assert fair_times([found], part, start, 4)[0] == pytest.approx(found.period)


@given(one_job(), st.sampled_from([0.0, 0.013, 0.05]))
def test_achieved_phases_meet_others_where_the_simulated_job_does(job: PeriodicJob, start: float) -> None:
    found = achieved(job, 1 / (50 * GBPS))
    other = PeriodicJob("b", 2, found.period, (JobPhase(0.0, found.period / 4, 50 * GBPS),))
    part, starts = np.full((2, 1), 1 / (50 * GBPS)), np.array([0.0, start])
    assert fair_times([job, other], part, starts, 2) == pytest.approx(fair_times([found, other], part, starts, 2))
