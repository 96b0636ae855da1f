"""How many events a second the packet engine's transports do, on one core.

``pytest benchmarks/speed/test_packet_speed.py --benchmark-enable`` measures; nothing is asserted about speed, since
machines differ. The issue's limits stand beside the numbers in ``extra_info``: at least 6 M events/s on 16 to 128
hosts, and 2.5 M on 1,024. Losses, and marks where the transport heeds them, are on. An event is a packet that arrives
at a queue or leaves one, or a timer that fires on a live packet.
"""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import pytest

from collectives import COLLECTIVES
from commsim.core.network import Network
from commsim.core.placement import place
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import FlowPlan, plan_flows
from commsim.packets.finished_run import PacketRun
from commsim.packets.run_packets import run_packets
from commsim.packets.transports.spraying import usual_path
from topologies.fat_tree import fat_tree
from topologies.leaf_spine import leaf_spine

RATE = 12.5e9
LOSS = 1e-3
# Events per second that the issue asks for, by hosts.
LIMITS = {16: 6e6, 128: 6e6, 1024: 2.5e6}

# Hosts, collective, transport, and bytes of the collective; the ideal window has no losses.
CASES = [
    *((n, collective, transport, size)
      for n, size in ((16, 32e6), (128, 64e6))
      for collective in ("ring_all_reduce", "direct_all_to_all")
      for transport in ("window", "dctcp", "dcqcn")),
    (1024, "ring_all_reduce", "dctcp", 16e6),
    (1024, "ring_all_reduce", "dcqcn", 16e6),
    (1024, "pairwise_all_to_all", "dctcp", 4.2e6),
    (1024, "direct_all_to_all", "dctcp", 4.2e6),
]  # fmt: skip


def where(n_hosts: int) -> Network:
    """Racks of 16 at most under as many spines as racks; a fat tree of 1,024."""
    if n_hosts == 1024:
        return fat_tree(16, RATE)
    n = max(2, n_hosts // 16)
    return leaf_spine(n, n, n_hosts // n, RATE, latency=1e-6)


def simulate(plan: FlowPlan, size: float, name: str) -> PacketRun:
    """Run one case."""
    how = usual_path(name, plan.network)
    return run_packets(plan, size, how if name == "window" else dataclasses.replace(how, loss=LOSS))


@pytest.mark.parametrize(("n_hosts", "collective", "transport", "size"), CASES)
@pytest.mark.benchmark(timer=time.process_time, group="packet engine, CPU seconds")
def test_events_per_second(benchmark: Any, n_hosts: int, collective: str, transport: str, size: float) -> None:
    """Measure the simulation proper; layout of tables and checks are in the CPU seconds, not in the rates."""
    network = where(n_hosts)
    plan = plan_flows(network, [FlowJob(COLLECTIVES[collective].build(n_hosts), place(network, n_hosts))])
    simulate(plan, 1e4 * n_hosts if n_hosts < 1024 else 1e4, transport)
    run = benchmark.pedantic(simulate, (plan, size, transport), rounds=1)
    counters = run.results[0].counters
    benchmark.extra_info |= {
        "events": counters["events"],
        "events_per_s": counters["events"] / run.cpu,
        "packet_hops_per_s": counters["packet_hops"] / run.cpu,
        "limit_events_per_s": LIMITS[n_hosts],
        "simulated_s": run.results[0].time,
        "drops": counters["drops_loss"] + counters["drops_full"],
        "marks": counters["marks"],
    }
    assert counters["events"] > 0
