"""How much processor time the recurrence of rounds takes; `benchmarks/scale/command.py` has the issue's sizes.

``pytest benchmarks --benchmark-enable`` measures; nothing is asserted about speed, since machines differ.
"""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import numpy as np
import pytest

from commsim.core.network import Network
from commsim.prediction.build import prepare
from commsim.prediction.plans.dense import Plan
from topologies.fat_tree import fat_tree
from topologies.rail_optimized import rail_optimized
from topologies.star import star

SIZE = 2.0**30


def uneven(network: Network) -> Network:
    """Every link at a rate of its own."""
    factor = np.random.default_rng(0).uniform(0.5, 1.0, network.n_links)
    return dataclasses.replace(network, bandwidth=network.bandwidth * factor)


CASES = {
    "ring of 4096, any rates": ("ring_all_reduce", uneven(star(4096)), "ecmp"),
    "ring of 1024 on a fat tree, sprayed": ("ring_all_reduce", fat_tree(16), "spray"),
    "ring of 2048 on rails that share links": ("ring_all_reduce", rail_optimized(256, hosts_per_group=32), "dmodk"),
    "halving and doubling of 1024": ("halving_doubling_all_reduce", star(1024), "ecmp"),
    "hierarchy of 2048 on rails": ("hierarchical_all_reduce", rail_optimized(256, hosts_per_group=32), "spray"),
}


def ready(case: str) -> Plan:
    """Build and place a case."""
    collective, network, routing = CASES[case]
    return prepare(collective, network, routing=routing)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.benchmark(timer=time.process_time, group="rounds, CPU seconds")
def test_time_of_the_recurrence(benchmark: Any, case: str) -> None:
    """Measure a size of a case that is laid out already."""
    prepared = ready(case)
    prepared.predict(SIZE)  # lays it out, and compiles what is not compiled yet
    result = benchmark.pedantic(prepared.predict, args=(SIZE,), rounds=3)
    assert result.method == "recurrence"
    benchmark.extra_info["transfers"] = result.counters["transfers"]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.benchmark(timer=time.process_time, group="rounds with their layout, CPU seconds")
def test_time_of_layout_and_recurrence(benchmark: Any, case: str) -> None:
    """Measure building, placing, routing and one size."""
    result = benchmark.pedantic(lambda: ready(case).predict(SIZE), rounds=2, warmup_rounds=1)
    assert result.method == "recurrence"
