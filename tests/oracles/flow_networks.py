"""Small networks and jobs that the tests of the flow engine solve by hand."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.cost import LogGP
from commsim.core.network import HOST, SWITCH, Network, both_ways
from commsim.core.placement import Placement, place
from commsim.core.program import Program
from commsim.core.result import Result
from commsim.core.schedule import Schedule
from commsim.engine.flow import simulate_flows, simulate_plan
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import plan_flows
from commsim.engine.flow_times import FlowTimes
from topologies.star import star


def star_of(n_hosts: int, link: LogGP) -> Network:
    """Star on which a message costs exactly what `link` says: half of L on each of its two links."""
    return dataclasses.replace(star(n_hosts, link.B, link.L / 2), overhead=link.o, gamma=link.gamma)


def on_star(schedule: Schedule, size: float, link: LogGP, **kwargs: Any) -> Result:
    """Run a schedule alone on its star."""
    network = star_of(schedule.n_participants, link)
    return simulate_flows(
        plan_flows(network, [FlowJob(schedule, place(network, schedule.n_participants))]), size, **kwargs
    )[0]


def cabled(cables: Mapping[str, float], latency: float = 0.0) -> Network:
    """Network from ``{"h0-s0": bytes/s}``, the same in both directions; names with s are switches."""
    names = sorted({end for cable in cables for end in cable.split("-")})
    ends = [[names.index(end) for end in cable.split("-")] for cable in cables]
    src, dst = both_ways(*np.array(ends).T)
    kind = [SWITCH if name.startswith("s") else HOST for name in names]
    return Network("cabled", names, kind, src, dst, 2 * list(cables.values()), latency)


def message(network: Network, pair: str, **sharing: Any) -> FlowJob:
    """One message of one chunk, from ``"h0>h1"``, as a job of its own."""
    p = Program(2, 1)
    p.copy(0, src=0, dst=1)
    return FlowJob(p.build(), Placement([network.nodes.index(name) for name in pair.split(">")]), **sharing)


def finish_times(
    network: Network, jobs: Sequence[FlowJob], n_bytes: Sequence[float], starts: Sequence[float] = (), **kwargs: Any
) -> NDArray[np.float64]:
    """When each of some single messages has left its sender."""
    both_ends = np.repeat(starts or [0.0] * len(jobs), 2)
    return simulate_plan(plan_flows(network, jobs, **kwargs), list(n_bytes), starts=both_ends).sent


def table(times: FlowTimes) -> NDArray[np.float64]:
    """Start, sent and done of every transfer, float64[n_transfers, 3]."""
    return np.stack((times.start, times.sent, times.done), axis=1)
