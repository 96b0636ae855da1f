"""How long several periodic jobs on shared links take to simulate.

``pytest benchmarks --benchmark-enable`` measures; nothing is asserted about speed, since machines differ. Wanted: 50
jobs on 1,000 links for 100 iterations in well under a second, on one core.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from commsim.core.network import Network, both_ways, kinds, node_names
from commsim.routing.routing import find_routes
from commsim.training.sharing.periodic import JobPhase, PeriodicJob
from commsim.training.sharing.shared_links import SharedRun, simulate_jobs
from topologies.leaf_spine import leaf_spine

GBPS = 1e9 / 8
N_JOBS, N_ITERATIONS = 50, 100


def crowded() -> tuple[Network, list[PeriodicJob], list[np.ndarray[Any, Any]]]:
    """50 jobs of 8 hosts each, drawn at random on a leaf-spine network of 1,056 links; every job is a ring."""
    network = leaf_spine(n_leaves=32, n_spines=4, hosts_per_leaf=12, bandwidth=50 * GBPS)
    random = np.random.default_rng(0)
    hosts = random.permutation(network.hosts)[: 7 * N_JOBS].reshape(N_JOBS, 7)
    jobs, uses = [], []
    for j, ring in enumerate(hosts):
        period = float(random.choice([0.1, 0.15, 0.2, 0.3]))
        up = period * random.uniform(0.2, 0.6)
        jobs.append(PeriodicJob(f"job{j}", 7, period, (JobPhase(period - up, up, random.uniform(20, 50) * GBPS),)))
        routes = find_routes(network, ring, np.roll(ring, -1))
        uses.append(np.bincount(routes.link, routes.share, network.n_links))
    return network, jobs, uses


@pytest.mark.parametrize("sharing", ["fair", "weighted", "priority", "mltcp"])
@pytest.mark.benchmark(timer=time.process_time, group="50 jobs, 1,000 links, 100 iterations: CPU seconds")
def test_fifty_jobs_on_a_thousand_links(benchmark: Any, sharing: str) -> None:
    """Measure laying out and playing together, without routing."""
    network, jobs, uses = crowded()
    options: dict[str, Any] = {"sharing": sharing, "iterations": N_ITERATIONS}
    if sharing == "weighted":
        options["weights"] = np.linspace(1, 2, N_JOBS)
    if sharing == "priority":
        options["priorities"] = np.arange(N_JOBS) % 4

    def run() -> SharedRun:
        return simulate_jobs(network, jobs, uses, **options)

    result = benchmark.pedantic(run, rounds=3, warmup_rounds=1)
    benchmark.extra_info |= {
        "links": network.n_links,
        "contended_links": int((result.contended_time > 0).sum()),
        "mean_slowdown": float(result.slowdowns.mean()),
    }
    assert (result.slowdowns >= 1 - 1e-9).all()


@pytest.mark.benchmark(group="two jobs on one link, 1000 iterations: seconds")
def test_two_jobs_on_one_link(benchmark: Any) -> None:
    """Measure the smallest case, which is what checking a score by simulation costs."""
    network = Network("line", node_names(h=1, s=1), kinds(1, 1), *both_ways(0, 1), 50 * GBPS, 0.0)
    jobs = [PeriodicJob(name, 2, 0.25, (JobPhase(0.125, 0.125, 50 * GBPS),)) for name in "ab"]
    result = benchmark(lambda: simulate_jobs(network, jobs, [np.array([1.0, 0.0])] * 2, iterations=1000))
    assert result.slowdowns.tolist() == [1.5, 1.5]
