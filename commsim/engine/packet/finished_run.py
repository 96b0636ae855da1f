"""What came of a packet run: looks at its links, times of messages, checks, and counters."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import PhysicsError
from commsim.core.network import Network
from commsim.core.result import Result
from commsim.engine.flow_plan import FlowPlan
from commsim.engine.flow_times import FlowTimes
from commsim.engine.link_samples import LinkWatch
from commsim.engine.packet.hosts.work import Work
from commsim.engine.packet.links.flapping import Flapping
from commsim.engine.packet.links.ways import Ways
from commsim.engine.packet.packet_state import PS
from commsim.engine.packet.run_state import Fabric as Kernel
from commsim.engine.physics import check_order
from commsim.engine.results import SLACK


class Look:
    """Shows the links of a run to a watch, in the order of the network's.

    Parameters
    ----------
    watch : LinkWatch
        Keeps what it is shown.
    n_links : int
        Number of links of the network.
    ways : Ways
        Links of the run.
    """

    def __init__(self, watch: LinkWatch, n_links: int, ways: Ways) -> None:
        self._watch, self._n_links, self._ways = watch, n_links, ways

    @property
    def next(self) -> float:
        """When the next look is due."""
        return self._watch.next

    def begin(self, fabric: Kernel) -> None:
        """Begin with the empty network."""
        room = np.full(self._n_links, np.inf)
        room[self._ways.links] = fabric.link["room"][: len(self._ways.links)]
        self._watch.open(room)
        self.make(fabric)

    def make(self, fabric: Kernel) -> Kernel:
        """Look."""
        state = fabric.state
        queued, sent = np.zeros((2, self._n_links), np.int64)
        link = fabric.link[: len(self._ways.links)]
        queued[self._ways.links] = link["low"] + link["high"]
        sent[self._ways.links] = link["n_bytes"]
        counts = [int(state[name]) for name in ("retransmissions", "marks", "drops_loss", "drops_full")]
        self._watch.note(queued, sent, np.array(counts))
        return fabric


def times_of(fabric: Kernel) -> FlowTimes:
    """Return when each message started, was sent and was complete."""
    message = fabric.message
    n_packets = (message["end"] - message["first"]).astype(np.int64)
    on_wire = (n_packets - 1.0) * fabric.rules["mtu"][fabric.flow["rule"][message["flow"]]] + message["last_size"]
    start, sent, done = (message[name] / PS for name in ("start", "sent", "done"))
    return FlowTimes(on_wire, start, sent, done, fabric.flow["ready"] / PS, int(fabric.state["packet_hops"]))


def check_run(
    plan: FlowPlan, ways: Ways, work: Work, fabric: Kernel, times: FlowTimes, changes: Flapping | None
) -> None:
    """Raise if a byte was not delivered exactly once, a link carried more than it can, or a message came too early.

    Raises
    ------
    PhysicsError
        Naming the flow, the link or the transfer.
    """
    if not len(times.done):
        return
    flow, network = fabric.flow, plan.network
    crosses = ~flow["local"]
    wanted = np.bincount(plan.connection_of, times.bytes_on_wire, len(flow))
    wrong = crosses & (flow["received"] != wanted)
    if wrong.any() or (flow["expected"] != flow["n_packets"]).any():
        f = int(wrong.argmax())
        raise PhysicsError(f"flow {f} has {flow['received'][f]} bytes, and was sent {wanted[f]}")
    end = fabric.state["now"] / PS
    slack = SLACK * end + (fabric.link["n_packets"].max(initial=0) + 16) / PS
    busy = fabric.link["n_bytes"][: len(ways.links)] / network.bandwidth[ways.links]
    if (busy > end + slack).any():
        worst = int(busy.argmax())
        raise PhysicsError(
            f"link {network.link_name(int(ways.links[worst]))} carried {busy[worst]} s of bytes in {end} s"
        )
    on_paths = bool(fabric.rules["on_path"][flow["rule"]].all())
    alone = _alone(plan, ways, work, times, on_paths)
    if work.adding.size:
        alone = alone + work.adding / PS
    if changes is not None and on_paths:
        alone[changes.was_rerouted[plan.connection_of]] = 0.0  # they took more links than the plan's
    early = alone - (times.done - times.start)
    if early.max() > slack:
        i = int(early.argmax())
        raise PhysicsError(f"transfer {i} took {times.done[i] - times.start[i]} s, but takes at least {alone[i]} s")
    check_order(plan, times, slack)


def _alone(plan: FlowPlan, ways: Ways, work: Work, times: FlowTimes, on_paths: bool) -> NDArray[np.float64]:
    """Compute the least time of each transfer: its bytes over the slowest link that it must take, and latencies."""
    network = plan.network
    if not on_paths:
        up, down = ways.links[work.src], ways.links[work.dst + len(ways.hosts)]
        rate = np.minimum(network.bandwidth[up], network.bandwidth[down])
        fixed = network.latency[up] + network.latency[down]
        src, dst = network.src[up], network.dst[down]
        crosses = work.src != work.dst
    else:
        crosses = np.diff(plan.routes.first) > 0
        rate, fixed = np.full(len(plan.ends), np.inf), plan.routes.latency
        np.minimum.at(
            rate, np.repeat(np.arange(len(crosses)), np.diff(plan.routes.first)), network.bandwidth[plan.routes.link]
        )
        src, dst = np.concatenate([job.placement.nodes for job in plan.jobs])[plan.ends].T
    fixed = fixed + network.overhead[src] + network.recv_overhead[dst]
    alone = np.where(crosses, fixed, 0.0)[plan.connection_of]
    return np.asarray(alone + np.where(crosses, 1 / rate, 0.0)[plan.connection_of] * times.bytes_on_wire)


def with_counters(
    network: Network, ways: Ways, fabric: Kernel, results: tuple[Result, ...], changes: Flapping | None
) -> tuple[Result, ...]:
    """Add to results what packets met with, and the bytes that each job put on links."""
    state, message = fabric.state, fabric.message
    counters = {
        "packet_hops": state["packet_hops"],
        "packets": message["end"].astype(np.float64).sum() - message["first"].astype(np.float64).sum(),
        "retransmissions": state["retransmissions"],
        "duplicates": state["duplicates"],
        "drops_loss": state["drops_loss"],
        "drops_full": state["drops_full"],
        "trimmed": state["n_trimmed"],
        "marks": state["marks"],
        "pauses": state["n_pauses"],
        "out_of_order": state["out_of_order"],
        "timeouts": state["timeouts"],
        "peak_queue_bytes": fabric.link["peak"].max(initial=0),
    }
    if changes is not None:
        counters["rerouted"] = changes.was_rerouted.sum()
    carried = fabric.carried if len(fabric.carried) else fabric.link["n_bytes"]
    of_job = carried.reshape(len(results), len(fabric.link))[:, : len(ways.links)]
    counted = []
    for j, result in enumerate(results):
        n_bytes = np.zeros(network.n_links)
        n_bytes[ways.links] = of_job[j]
        numbers = {**result.counters, **{name: float(value) for name, value in counters.items()}}
        counted.append(dataclasses.replace(result, link_bytes=n_bytes, counters=numbers))
    return tuple(counted)
