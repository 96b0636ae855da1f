"""How much processor time a simulated week of a cluster takes, with and without CASSINI.

``pytest benchmarks --benchmark-enable`` measures; nothing is asserted about speed, since machines differ. The issue's
limit stands in ``extra_info``: 500 jobs on 512 GPUs, which arrive in one week, at most 60 s on one core.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from commsim.placement.cluster import Cluster
from commsim.placement.clusters.machines import machines_of
from commsim.placement.clusters.models import Assumptions
from commsim.placement.clusters.outcome import ClusterReplay
from commsim.placement.clusters.placement_choices import Placing
from commsim.placement.clusters.simulate import simulate_cluster
from commsim.placement.clusters.traces import load_trace
from topologies.leaf_spine import leaf_spine

TRACE = "poisson:jobs={n},load=0.9,days=7,seed=1,mean_gpus=16"


def replay(policy: str, placing: Placing, n_jobs: int = 500) -> ClusterReplay:
    """Replay a week on 64 hosts of 8 GPUs, in 8 racks whose uplinks carry half of what the hosts can send."""
    network = leaf_spine(8, 4, 8, oversubscription=2.0)
    seats = np.zeros(network.n_nodes, np.int64)
    seats[network.hosts] = 8
    assumed = Assumptions()
    machines = machines_of(Cluster(network, seats), assumed)
    jobs = load_trace(TRACE.format(n=n_jobs), machines.n_gpus, assumed.models)
    return simulate_cluster(machines, jobs, policy, placing=placing, assumed=assumed)


@pytest.mark.parametrize("placing", ["packed", "cassini"])
@pytest.mark.parametrize("policy", ["fifo", "tiresias", "themis", "pollux"])
@pytest.mark.benchmark(timer=time.process_time, group="cluster simulation, CPU seconds")
def test_a_week_of_500_jobs_on_512_gpus(benchmark: Any, policy: str, placing: Placing) -> None:
    """Warm up with a short trace, then measure once."""
    replay(policy, placing, 60)
    outcome = benchmark.pedantic(replay, (policy, placing), rounds=1)
    assert len(outcome.jobs) == 500
    benchmark.extra_info |= {"limit_s": 60.0, **outcome.row()}
