"""Networks and schedules on which hosts send and receive many messages at once."""

import dataclasses

import numpy as np

from commsim.core.network import GPU, NIC, SWITCH, Network, both_ways
from commsim.core.placement import Placement
from commsim.core.program import Program
from commsim.engine.flow import simulate_flows
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import plan_flows
from topologies.fully_connected import fully_connected

O, B, L = 1e-6, 12.5e9, 500e-9  # noqa: E741


def job_on(network, schedule):
    return FlowJob(schedule, Placement(network.endpoints[: schedule.n_ranks]))


def mesh(n, **costs):
    return dataclasses.replace(fully_connected(n, B, L), **({"overhead": O} | costs))


def flow_time(network, schedule, size):
    return simulate_flows(plan_flows(network, [job_on(network, schedule)]), size)[0].time


def to_others(n):
    """Rank 0 sends a chunk to every other rank, all at once."""
    p = Program(n, n_chunks=n)
    p.copy(np.arange(1, n), src=0, dst=np.arange(1, n))
    return p.build()


def from_others(n):
    p = Program(n, n_chunks=n)
    p.copy(np.arange(1, n), src=np.arange(1, n), dst=0)
    return p.build()


def two_gpus_on_nics(n_nics):
    """Two GPUs and NICs on one PCIe switch, and as many on the other side of a switch of the network."""
    nodes, kind, machine, ends = [], [], [], []
    for m in (0, 1):
        first = len(nodes)
        nodes += [f"m{m}.gpu0", f"m{m}.gpu1", f"m{m}.pcie", *(f"m{m}.nic{i}" for i in range(n_nics))]
        kind += [GPU, GPU, SWITCH] + [NIC] * n_nics
        machine += [m] * (3 + n_nics)
        ends += [(first, first + 2), (first + 1, first + 2)]
        ends += [(first + 2, first + 3 + i) for i in range(n_nics)]
        ends += [(first + 3 + i, 2 * (3 + n_nics)) for i in range(n_nics)]
    src, dst = both_ways(*np.array(ends).T)
    overhead = np.array([0.0 if k == SWITCH else O for k in kind] + [0.0])
    return Network("pair", [*nodes, "leaf"], [*kind, SWITCH], src, dst, B, 0.0, overhead=overhead,
                   machine=[*machine, -1])  # fmt: skip
