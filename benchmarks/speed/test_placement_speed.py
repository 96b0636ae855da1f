"""How long scores take: one link, and ten candidates of a cluster with a thousand links.

``pytest benchmarks --benchmark-enable`` measures; nothing is asserted about speed, since machines differ. The issue's
limits stand beside the numbers in ``extra_info``.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from commsim.placement.cluster import Cluster
from commsim.placement.evaluation import evaluate_all
from commsim.placement.place import place_jobs
from commsim.placement.starts.link_scores import score_link
from commsim.placement.strategies import Drawing
from commsim.training.sharing.periodic import GBPS, JobPhase, PeriodicJob
from topologies.leaf_spine import leaf_spine

PERIODS = (0.1, 0.12, 0.15, 0.2, 0.24, 0.255, 0.3)


def drawn_jobs(n: int, seed: int = 0) -> list[PeriodicJob]:
    """Jobs of 8 GPUs that send for 20 to 50 % of iterations of seven lengths."""
    rng = np.random.default_rng(seed)
    jobs = []
    for i in range(n):
        period = float(rng.choice(PERIODS))
        busy = float(rng.uniform(0.2, 0.5)) * period
        jobs.append(
            PeriodicJob(f"job{i}", 8, period, (JobPhase(period - busy, busy, float(rng.uniform(10, 45)) * GBPS),))
        )
    return jobs


def thousand_links() -> Cluster:
    """400 hosts of one GPU each under 25 leaves and 4 spines."""
    network = leaf_spine(25, 4, 16, bandwidth=50 * GBPS)
    assert network.n_links == 1000
    return Cluster(network, np.where(network.kind == 0, 1, 0))


@pytest.mark.benchmark(timer=time.process_time, group="placement, CPU seconds")
def test_three_jobs_on_one_link_at_72_angles(benchmark: Any) -> None:
    """Measure a score that no turn brings to 1, so that all 5,184 rotations are tried."""
    jobs = [PeriodicJob(f"{i}", 1, 0.1, (JobPhase(0.0, 0.05, 40 * GBPS),)) for i in range(3)]
    found = benchmark.pedantic(lambda: score_link(jobs, 50 * GBPS), rounds=20, warmup_rounds=1)
    benchmark.extra_info["limit_s"] = 0.010
    assert found.circle.n_angles == 72
    assert found.is_exhaustive


@pytest.mark.benchmark(timer=time.process_time, group="placement, CPU seconds")
@pytest.mark.parametrize("generator", ["packed", "spread", "random"])
def test_ten_candidates_of_fifty_jobs_on_a_thousand_links(benchmark: Any, generator: str) -> None:
    """Measure scores, shifts and estimates; spread and random candidates share some 180 links and close loops."""
    cluster, jobs = thousand_links(), drawn_jobs(50)
    placed = [(generator, one) for one in Drawing(cluster, jobs).each(generator, 10, 0)]
    found = benchmark.pedantic(lambda: evaluate_all(cluster, placed), rounds=3, warmup_rounds=1)
    benchmark.extra_info |= {"contended_links": max(len(one.links) for one in found), "limit_s": 1.0}
    assert len(found) == 10


@pytest.mark.benchmark(timer=time.process_time, group="placement, CPU seconds")
def test_making_and_ranking_them_too(benchmark: Any) -> None:
    """Measure the whole of ``place_jobs`` with its usual generators."""
    cluster, jobs = thousand_links(), drawn_jobs(50)
    ranking = benchmark.pedantic(lambda: place_jobs(cluster, jobs, n=10), rounds=3, warmup_rounds=1)
    benchmark.extra_info["limit_s"] = 1.0
    assert len(ranking.candidates) == 10
