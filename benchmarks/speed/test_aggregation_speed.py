"""How fast in-network aggregation is simulated: events and packet-hops per CPU second on one core.

pytest benchmarks/speed/test_aggregation_speed.py --benchmark-enable --benchmark-only -s
"""

from __future__ import annotations

from typing import Any

import pytest

from commsim.packets.aggregated.aggregation_jobs import aggregation_job, with_loss
from commsim.packets.aggregated.tree_times import simulate_recurrence
from commsim.packets.run_packets import simulate_aggregation
from commsim.prediction.inputs import load_network
from switch_model.systems import SYSTEMS

STAR = "star:n_hosts=16,bandwidth=100Gbps,latency=1us"
RACKS = "leaf_spine:n_leaves=8,n_spines=4,hosts_per_leaf=16,bandwidth=100Gbps,latency=1us"
MIB = 1 << 20


def report(benchmark: Any, counters: Any, cpu: float) -> None:
    """Put the rates beside the times, and print them."""
    for what in ("events", "packet_hops"):
        benchmark.extra_info[f"M {what}/s"] = round(counters[what] / cpu / 1e6, 2)
    print(f"\n  {benchmark.extra_info}, {counters['events']:.0f} events")


@pytest.mark.parametrize("loss", [0.0, 0.001])
def test_switchml_on_16_hosts(benchmark: Any, loss: float) -> None:
    """One switch, with and without losses."""
    network = with_loss(load_network(STAR), loss, loss)
    job = aggregation_job(SYSTEMS["switchml_rdma"].build(), network, network.endpoints.tolist(), 64 * MIB // 4)
    run = benchmark.pedantic(lambda: simulate_aggregation(network, [job], values=False), rounds=3, warmup_rounds=1)
    report(benchmark, run.results[0].counters, run.cpu)


def test_sharp_on_128_hosts(benchmark: Any) -> None:
    """A tree of nine switches."""
    network = load_network(RACKS)
    system = SYSTEMS["sharp"].build(mode="streaming")
    job = aggregation_job(system, network, network.endpoints.tolist(), 8 * MIB // 4)
    run = benchmark.pedantic(lambda: simulate_aggregation(network, [job], values=False), rounds=3, warmup_rounds=1)
    report(benchmark, run.results[0].counters, run.cpu)


@pytest.mark.parametrize("n", [8, 16])
def test_the_recurrence(benchmark: Any, n: int) -> None:
    """The same times without a queue of events."""
    network = load_network(STAR)
    job = aggregation_job(SYSTEMS["switchml_rdma"].build(), network, network.endpoints[:n].tolist(), 64 * MIB // 4)
    result = benchmark.pedantic(lambda: simulate_recurrence(network, job), rounds=5, warmup_rounds=1)
    report(benchmark, result.counters, result.counters["cpu_s"])
