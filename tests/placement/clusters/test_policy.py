"""`fill`, which policies share, against a plain sort of all jobs."""

import numpy as np
import pytest

from commsim.placement.clusters.policy import View, fill
from commsim.placement.clusters.state import ClusterJobs, JobState


@pytest.fixture
def view_of(replay):
    def build(sizes, n_running):
        """Make a view of jobs of these sizes, the first of which hold their GPUs."""
        machines = replay.machines()
        jobs = [replay.job(f"{i}", n, 1.0) for i, n in enumerate(sizes)]
        states = [JobState(i, job, 1.0, float(i % 3)) for i, job in enumerate(jobs)]
        for state in states[:n_running]:
            state.gpus = tuple(range(state.job.n_gpus))
        work = ClusterJobs(jobs, machines, replay.assumed.models)
        return View(0.0, states, states[:n_running], machines.gpus, work, machines)

    return build


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("strict", [False, True])
def test_the_grants_are_those_of_all_jobs_in_the_order_of_the_key(view_of, seed, strict):
    rng = np.random.default_rng(seed)
    view = view_of([2, 5, 4, *rng.integers(1, 24, 20).tolist()], int(rng.integers(0, 4)))
    plain = fill(view, sorted(view.states, key=lambda state: state.ideal), strict=strict)
    assert fill(view, view.states, strict=strict, key=lambda state: state.ideal) == plain


@pytest.mark.parametrize(("n_running", "looked_at"), [(1, 2), (2, 0), (0, 5)])
def test_jobs_that_do_not_fit_are_not_sorted(view_of, n_running, looked_at):
    """Of a long queue on a full cluster each was looked at for every job that came."""
    asked = []
    view = view_of([28, 4, 5, 3, 30], n_running)
    fill(view, view.states, key=lambda state: asked.append(state) or state.ideal)
    assert len(asked) == looked_at
