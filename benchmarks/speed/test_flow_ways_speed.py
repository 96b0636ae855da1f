"""How much processor time the flow engine's cheap ways and its event engine take on what issue 9 asks for.

``pytest benchmarks --benchmark-enable`` measures; nothing is asserted about speed, since machines differ. The issue's
limits stand beside the numbers in ``extra_info``. Rounds are measured by ``benchmarks.scale``, and this compares what
it does not tell apart: laying out, and simulating.
"""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import numpy as np
import pytest

from collectives import COLLECTIVES
from commsim.core.network import Network
from commsim.core.placement import place
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_paths import FlowPaths
from topologies.fat_tree import fat_tree
from topologies.rail_optimized import rail_optimized

SIZE = 2.0**30
# Collective, ranks, routing, way, and the limit in seconds of CPU, where it has one. Neighbours in a ring that
# is packed meet nobody, whatever is hashed; in random places, hashes collide.
CASES = {
    "all_to_all_256_dmodk": ("direct_all_to_all", 256, "dmodk", "simultaneous", 0.05),
    "all_to_all_256_ecmp": ("direct_all_to_all", 256, "ecmp", "simultaneous", 0.1),
    "all_to_all_1024_dmodk": ("direct_all_to_all", 1024, "dmodk", "simultaneous", 0.5),
    "all_to_all_1024_ecmp": ("direct_all_to_all", 1024, "ecmp", "simultaneous", 1.5),
    "unequal_all_to_all_256_dmodk": ("direct_all_to_all_v", 256, "dmodk", "simultaneous", 15.0),
    "unequal_all_to_all_256_ecmp": ("direct_all_to_all_v", 256, "ecmp", "simultaneous", 15.0),
    "ring_1024_random_rates_ecmp": ("ring_all_reduce", 1024, "ecmp", "events", 1.05),
    "ring_1024_random_rates_random_places_ecmp": ("ring_all_reduce", 1024, "ecmp", "events", 1.05),
    "ring_256_random_rates_random_places_ecmp": ("ring_all_reduce", 256, "ecmp", "events", 0.07),
    "ring_1024_random_rates_ecmp_streamed": ("ring_all_reduce", 1024, "ecmp", "streamed", 1.05),
    "ring_1024_rails_ecmp": ("ring_all_reduce", 1024, "ecmp", "events", None),
    "ring_1024_rails_ecmp_streamed": ("ring_all_reduce", 1024, "ecmp", "streamed", None),
    "halving_doubling_8192_rails_ecmp": ("halving_doubling_all_reduce", 8192, "ecmp", "events", None),
    "double_tree_8192_rails_dmodk": ("double_tree_all_reduce", 8192, "dmodk", "symmetric", None),
    "double_tree_8192_rails_ecmp": ("double_tree_all_reduce", 8192, "ecmp", "events", None),
}


def network_for(case: str, n_ranks: int) -> Network:
    """Return hosts of 8 GPUs on rails, a fat tree of 1,024 hosts, or one with random rates."""
    if "rails" in case:
        return rail_optimized(n_ranks // 8, hosts_per_group=32, groups_per_pod=n_ranks // 512, cores_per_spine=32)
    network = fat_tree(16)
    if "random_rates" not in case:
        return network
    rates = np.tile(np.random.default_rng(0).uniform(0.5, 1.0, network.n_links // 2), 2)
    return dataclasses.replace(network, bandwidth=network.bandwidth * rates)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.benchmark(timer=time.process_time, group="ways of the flow engine, CPU seconds")
def test_lay_out_and_simulate(benchmark: Any, case: str) -> None:
    """Measure laying out and the first simulation, and beside them the second, which needs no laying out."""
    collective, n_ranks, routing, method, limit = CASES[case]
    network = network_for(case, n_ranks)
    arguments = {}
    if collective.endswith("_v"):
        arguments["counts"] = tuple(np.random.default_rng(0).integers(1, 5, n_ranks**2).tolist())
    schedule = COLLECTIVES[collective].build(n_ranks, **arguments)
    placement = place(network, n_ranks, "random" if "random_places" in case else "packed")
    laid_out: list[FlowPaths] = []

    def measured() -> float:
        laid_out[:] = [FlowPaths(network, FlowJob(schedule, placement), routing, 0)]
        return laid_out[0].simulate(SIZE, method=method).time

    simulated = benchmark.pedantic(measured, rounds=1 if "unequal" in case else 3, warmup_rounds=1)
    begin = time.process_time()
    result = laid_out[0].simulate(SIZE, method=method)
    again = time.process_time() - begin
    benchmark.extra_info |= {
        "simulated_s": simulated,
        "limit_cpu_s": limit,
        "simulate_only_cpu_s": again,
        "transfers_per_cpu_s": result.counters["transfers"] / again,
    }
    assert result.time == simulated
