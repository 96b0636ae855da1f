from dataclasses import replace

import numpy as np
import pytest

from commsim.placement.cluster import Cluster
from commsim.placement.clusters.machines import machines_of
from commsim.placement.clusters.models import MODELS, Assumptions, TrainedModel
from commsim.placement.clusters.simulate import simulate_cluster
from commsim.placement.clusters.trace_job import TraceJob
from commsim.training.sharing.periodic import JobPhase
from topologies.leaf_spine import leaf_spine

QUIET = Assumptions(models={**MODELS, "quiet": TrainedModel("quiet", 0.0, 0.1)}, restart=0.0)
"""With a model that computes and sends nothing, and restarts that cost nothing."""


def make_cluster(n_hosts=4, gpus=8, n_leaves=2, oversubscription=2.0, bandwidth=12.5e9):
    # below one leaf nothing goes up, and half of an odd number of hosts is no number of cables
    up = {"oversubscription": oversubscription} if n_leaves > 1 else {"uplink_bandwidth": bandwidth}
    network = leaf_spine(n_leaves, 2, n_hosts // n_leaves, bandwidth=bandwidth, **up)
    seats = np.zeros(network.n_nodes, np.int64)
    seats[network.hosts] = gpus
    return Cluster(network, seats)


class Replays:
    """Replays small traces of quiet jobs; times are seconds."""

    def __init__(self):
        self.assumed = QUIET

    def job(self, name, gpus, duration, submit=0.0, **more):
        return TraceJob(name, submit, gpus, duration, **({"model": "quiet"} | more))

    def sender(self, name, gpus, duration, period, offset, length, rate, submit=0.0, **more):
        phases = (JobPhase(offset, length, rate),)
        return TraceJob(name, submit, gpus, duration, period=period, phases=phases, **more)

    def machines(self, cluster=None, **assumed):
        self.assumed = replace(self.assumed, **assumed)
        return machines_of(cluster or make_cluster(), self.assumed)

    def __call__(self, policy, jobs, machines=None, **more):
        machines = machines or self.machines()
        jobs = sorted(jobs, key=lambda job: job.submit)
        outcome = simulate_cluster(machines, jobs, policy, assumed=self.assumed, **more)
        return {job.job: job for job in outcome.jobs}, outcome


@pytest.fixture
def replay():
    return Replays()


@pytest.fixture
def cluster_of():
    return make_cluster
