"""The critical path: the transfers that decide when a collective is over, and what they spent their time on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.jit import expected_work
from commsim.core.result import Trace
from commsim.core.schedule import REDUCE

from .flow_plan import FlowPlan
from .message_costs import measured_costs

# Steps of the kernel for each transfer and each that waits for it, or more.
STEPS = 20


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """A chain of transfers without a gap, from the start to the finish; the times add up to that of the whole.

    Parameters
    ----------
    transfers : tuple of int
        Transfers in the order of time; each starts when the one before it was sent, or was complete.
    n_messages : int
        Those of them that cross a link, and
    n_flights : int
        those of these for whose arrival the next one waited, or the end.
    on_links : float, s
        Time in which bytes left their sender, with or without others on the links.
    overhead : float, s
        Time in which messages were handled at the ports of senders and receivers.
    latency : float, s
        Time in which the last byte was under way.
    reduction : float, s
        Time in which receivers added, or what had arrived waited for that.
    adder : int
        The node that added longest on the path; -1 if none did.
    forwarding : float, s
        Time in which packets were stored and forwarded, or waited in queues, after their last byte had left the
        sender; 0 of other engines.
    cut : float, s
        Time that messages took beyond an equal share of the links on their way, because marks had cut the rates of
        senders; 0 unless :func:`part_of_marks` has told it from the time on links.
    """

    transfers: tuple[int, ...]
    n_messages: int
    n_flights: int
    on_links: float
    overhead: float
    latency: float
    reduction: float
    adder: int
    forwarding: float = 0.0
    cut: float = 0.0

    @property
    def terms(self) -> dict[str, float]:
        """The times by name, s; of packets also those of forwarding and of rates that marks cut."""
        packets = {"rates cut by marks": self.cut, "store and forward, queues": self.forwarding}
        return {name: time for name, time in packets.items() if time} | {
            "bandwidth": self.on_links,
            "overhead": self.overhead,
            "latency": self.latency,
            "reduction": self.reduction,
        }


def critical_path(plan: FlowPlan, trace: Trace, n_bytes: ArrayLike, *, in_packets: bool = False) -> CriticalPath:
    """Walk from the transfer that is complete last to the one that everything waited for.

    Parameters
    ----------
    plan : FlowPlan
        Plan of a single job, all of whose participants started at 0.
    trace : Trace
        Times of all transfers.
    n_bytes : float64[n_transfers], bytes
        What each transfer put on the wire.
    in_packets : bool
        Whether messages went in packets, which switches store, queue and forward.

    Returns
    -------
    CriticalPath
        An empty one where nothing was sent.
    """
    if not len(trace.done):
        return CriticalPath((), 0, 0, 0.0, 0.0, 0.0, 0.0, -1)

    from .predecessors_kernel import last_predecessors

    args = *plan.successors, plan.queue, plan.connection_of, trace.sent, trace.done
    with expected_work(STEPS * (len(trace.done) + len(args[1])), first=True):
        before, by_completion = last_predecessors(*args)
    path = [int(trace.done.argmax())]
    complete = [True]
    while before[path[-1]] >= 0:
        complete.append(bool(by_completion[path[-1]]))
        path.append(int(before[path[-1]]))
    of_path = np.array(path[::-1]), np.array(complete[::-1])
    return _terms(plan, trace, np.asarray(n_bytes, np.float64), *of_path, in_packets=in_packets)


def part_of_marks(path: CriticalPath, plan: FlowPlan, trace: Trace, n_bytes: ArrayLike) -> CriticalPath:
    """Tell from the time on links what messages took beyond an equal share of the links on their way.

    Parameters
    ----------
    path : CriticalPath
        Critical path of a run of the packet engine in which packets were marked, each message on one path.
    plan : FlowPlan
        Its plan.
    trace : Trace
        Times of all transfers.
    n_bytes : float64[n_transfers], bytes
        What each transfer put on the wire.

    Returns
    -------
    CriticalPath
        The same path. At any time a message has the share of each link that is left by as many equal ones as there are
        messages on their way over it; those that are themselves slowed down count as well.
    """
    n_bytes = np.asarray(n_bytes, np.float64)
    by_connection = plan.connection_of.argsort(kind="stable")
    ends = np.searchsorted(plan.connection_of[by_connection], np.arange(len(plan.routes.first)))
    over = np.repeat(np.arange(len(plan.routes.first) - 1), np.diff(plan.routes.first))
    known: dict[int, tuple[NDArray[np.float64], NDArray[np.float64]]] = {}
    cut = 0.0
    for transfer in path.transfers:
        wire = plan.connection_of[transfer]
        links = plan.routes.link[plan.routes.first[wire] : plan.routes.first[wire + 1]].tolist()
        for link in set(links) - set(known):
            users = [by_connection[ends[c] : ends[c + 1]] for c in over[plan.routes.link == link]]
            on_link = np.concatenate(users)
            known[link] = np.sort(trace.start[on_link]), np.sort(trace.sent[on_link])
        if links:
            begin, end = trace.start[transfer], trace.sent[transfer]
            shared = [(known[link], float(plan.network.bandwidth[link])) for link in links]
            cut += end - _fair_end(begin, end, n_bytes[transfer], shared)
    cut = min(cut, path.on_links)
    return replace(path, on_links=path.on_links - cut, cut=cut)


def _fair_end(
    begin: float,
    end: float,
    n_bytes: float,
    shared: list[tuple[tuple[NDArray[np.float64], NDArray[np.float64]], float]],
) -> float:
    """Return when a message would have left at equal shares of links: when others start and end there, and its rate."""
    inside = [times[(times > begin) & (times < end)] for both, _ in shared for times in both]
    at = np.unique(np.concatenate((*inside, [begin, end])))
    rate = np.full(len(at) - 1, np.inf)
    for (starts, ends), bandwidth in shared:
        users = np.searchsorted(starts, at[:-1], "right") - np.searchsorted(ends, at[:-1], "right")
        rate = np.minimum(rate, bandwidth / np.maximum(users, 1))
    sent = np.concatenate(([0.0], np.cumsum(rate * np.diff(at))))
    return float(np.interp(n_bytes, sent, at))


def _terms(
    plan: FlowPlan,
    trace: Trace,
    n_bytes: NDArray[np.float64],
    path: NDArray[np.intp],
    complete: NDArray[np.bool_],
    *,
    in_packets: bool,
) -> CriticalPath:
    """Split the time of each transfer on the path in proportion to what each cost would be by itself.

    Measured curves say no more than what comes while a port is taken, what comes after that, and what a reduction adds.
    """
    costs = measured_costs(plan, n_bytes)
    network, connection = plan.network, plan.connection_of[path]
    crosses = np.diff(plan.routes.first)[connection] > 0
    nodes = np.concatenate([job.placement.nodes for job in plan.jobs])[plan.ends[connection]]
    overhead = np.where(crosses, network.overhead[nodes[:, 0]], 0.0)
    sending, arriving = trace.sent[path] - trace.start[path], np.where(complete, trace.done[path] - trace.sent[path], 0)
    latency = np.where(crosses & complete, plan.connection["latency"][connection], 0.0)
    receive = np.where(crosses, network.recv_overhead[nodes[:, 1]], 0.0)
    adding = np.where(plan.op[path] == REDUCE, network.gamma[nodes[:, 1]] * n_bytes[path], 0.0)
    at_port = sending * _share(overhead, n_bytes[path] / plan.routes.rates(network)[connection])
    at_receiver = np.maximum(arriving - latency, 0.0)
    forwarded = np.maximum(at_receiver - adding - receive, 0.0) if in_packets else np.zeros(len(path))
    at_receiver = at_receiver - forwarded
    added = at_receiver * _share(adding, receive)
    begun = 0.0
    if costs is not None:
        added = np.minimum(costs.reduction[path], arriving)
        latency, at_receiver, begun = arriving - added, added, float(trace.start[path[0]])
    by_node = np.bincount(nodes[:, 1], weights=added)
    return CriticalPath(
        tuple(path.tolist()),
        int(crosses.sum()),
        int((crosses & complete).sum()),
        float((sending - at_port).sum()),
        float((at_port + at_receiver - added).sum()) + begun,
        float(latency.sum()),
        float(added.sum()),
        int(by_node.argmax()) if by_node.any() else -1,
        float(forwarded.sum()),
    )


def _share(part: NDArray[np.float64], rest: NDArray[np.float64]) -> NDArray[np.float64]:
    whole = part + rest
    return np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0)
