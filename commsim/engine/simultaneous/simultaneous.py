"""Flows that all start together, such as a direct all-to-all.

If they are of one size, one allocation of rates says when each of them ends: the fastest leave first, and the rates of
slower ones do not depend on them (see the sharing kernel), so nothing changes from the start to the end. If they are
not, rates change at every departure (see the departures kernel). When the last of equal ones ends takes no allocation:
the lowest rate is the least that a link has for each of its flows, which counting them says. Nor does it of many
unequal ones, where it is proven that the link with most bytes is full until then (see the kernel of the fullest link).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.cost import Framing
from commsim.core.network import NIC, Network
from commsim.core.result import Result, Trace
from commsim.engine.flow_job import FlowJob, chunk_bytes, not_negative, one_job_result
from commsim.engine.trace_files import Columns, TraceFile, keep_trace
from commsim.routing.message_engines import engines_of_nodes

from .begun_together import BegunTogether, begin_together
from .bundles import AT_ONCE, Bundles, bundle_flows, crossings_of

if TYPE_CHECKING:
    from commsim.routing.crossings import Crossings

__all__ = ["SimultaneousPlan", "plan_simultaneous", "simulate_simultaneous"]

Times = NDArray[np.float64]

# Flows from which on trying a proof takes little beside going from departure to departure.
LEAST_PROVEN = 2000


def simulate_simultaneous(
    plan: SimultaneousPlan,
    size: float,
    *,
    starts: ArrayLike = 0.0,
    framing: Framing | None = None,
    trace: bool | TraceFile = False,
) -> Result | None:
    """Compute when each transfer ends.

    Parameters
    ----------
    plan : SimultaneousPlan
        Plan from :func:`commsim.engine.simultaneous.simultaneous.plan_simultaneous`.
    size, starts, framing, trace
        Same as in :func:`commsim.engine.flow.simulate_flows`.

    Returns
    -------
    Result or None
        None if the transfers that use links do not start together; or if they are of different sizes, and some are
        empty, capped, or sprayed over links that are not alike.

    Raises
    ------
    InputError
        If the size or a start is not legal.
    PhysicsError
        If a link would carry more than it can. This is a bug in commsim.
    """
    job, schedule, begun = plan.job, plan.job.schedule, plan.begun
    chunk = chunk_bytes(job, float(size))
    starts = np.broadcast_to(not_negative("start", starts), schedule.n_participants)
    alike = bool((starts == starts[0]).all())
    ready = starts[:1] if alike else np.unique(np.maximum(starts[begun.src], starts[begun.dst])[begun.crosses])
    if len(begun.crosses) and len(ready) > 1:
        return None
    if job.messages is None:
        payload = (
            (begun.count * chunk)[begun.row[begun.crosses]]
            if len(np.unique(begun.count)) > 1
            else begun.count[:1] * chunk
        )
    else:
        payload = not_negative("payload", job.messages(float(size)))[begun.crosses]
    n_bytes = (framing or Framing()).on_wire(payload)
    begin = float(ready[:1].sum())
    if not trace and (last := _last_counted(plan, n_bytes, begin)) is not None:
        assert plan.crossings is not None
        carried = plan.crossings.n_routes * n_bytes[0]
        return _put_together(plan, float(size), starts, n_bytes, last, begin, carried)
    if not trace and (last := _last_proven(plan, n_bytes, begin)) is not None:
        return _put_together(plan, float(size), starts, n_bytes, last, begin, plan.bundles.link_bytes(n_bytes))
    took = _took(plan, n_bytes)
    return None if took is None else _result(plan, float(size), starts, n_bytes, took, begin, trace)


def _last_counted(plan: SimultaneousPlan, n_bytes: Times, begin: float) -> float | None:
    """Find when the last of equal flows arrives, from how many there are on each link.

    None where the flows of the fullest link may arrive before others, which have further to go.
    """
    on, cap = plan.crossings, plan.job.rate_cap
    if on is None or not (n_bytes[0] > 0 and (n_bytes == n_bytes[0]).all()):
        return None
    used = on.n_routes > 0
    rate = plan.network.bandwidth[used] / on.n_routes[used]
    furthest = on.furthest[used]
    if cap < np.inf or furthest[rate == rate.min()].max() < furthest.max():
        return None
    return float((begin + plan.overhead) + n_bytes[0] / rate.min() + furthest.max())


def _last_proven(plan: SimultaneousPlan, n_bytes: Times, begin: float) -> float | None:
    """Find when the last of many unequal flows arrives: when the fullest link has carried its bytes, if that is proven.

    None without a proof, and where it leaves open which latency the last flow has.
    """
    of = plan.bundles
    if len(n_bytes) < LEAST_PROVEN or not _are_unequal(plan, n_bytes):
        return None

    from .fullest_link_kernel import BEHIND, GONE, IN_STEP, ROUNDING, fullest_is_last

    first, link = of.rows()
    needs = np.bincount(link, np.repeat(n_bytes, np.diff(first)), len(of.capacity)) / of.capacity
    fullest = int(needs.argmax())
    state, by = np.empty(len(n_bytes), np.uint8), np.empty(len(n_bytes), np.int32)
    others_s = fullest_is_last(of.capacity, first, link, n_bytes, fullest, state, by)
    in_step, behind = state == IN_STEP, state == BEHIND
    # the largest of those in step leave together; one that is behind, if any is, leaves last, and perhaps alone
    largest = in_step & (n_bytes == n_bytes[in_step].max(initial=0.0))
    latency = float(of.latency[largest if largest.any() else behind].max(initial=0.0))
    took, rounding = float(needs[fullest]), ROUNDING * float(needs[fullest])
    late = max(others_s + float(of.latency.max()) - took, float(of.latency[state != GONE].max(initial=0.0)))
    # those that one link keeps behind get the same, so the largest of them is the last
    far = behind & (of.latency < latency - rounding)
    near = behind & ~far & (by >= 0)
    most = np.zeros(len(of.capacity))
    np.maximum.at(most, by[near], n_bytes[near])
    if late > latency + rounding or (by[far] < 0).any() or (n_bytes[far] > most[by[far]]).any():
        return None
    return (begin + plan.overhead) + took + latency


def _are_unequal(plan: SimultaneousPlan, n_bytes: Times) -> bool:
    """Whether flows are of several sizes, none of them empty or capped, and take links whole."""
    several = bool((n_bytes != n_bytes[0]).any() and (n_bytes > 0).all())
    return several and plan.job.rate_cap == np.inf and bool((plan.bundles.share == 1).all())


def _took(plan: SimultaneousPlan, n_bytes: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Find how long after its overhead each flow has left, or None."""
    if not len(n_bytes):
        return n_bytes
    if n_bytes[0] > 0 and (n_bytes == n_bytes[0]).all():
        return n_bytes[:1] / plan.rate
    if not _are_unequal(plan, n_bytes):
        return None

    from commsim.engine.bottlenecks.group_state import group_tables

    from .departures_kernel import simulate_departures

    first, link = plan.bundles.rows()
    used, number = np.unique(link, return_inverse=True)
    tables = group_tables(plan.bundles.capacity[used], number.astype(np.int32), len(n_bytes))
    took = np.empty(len(n_bytes))
    found = tables is not None and simulate_departures(tables.allocate(), first, n_bytes, took)
    return took if found else None


def _result(
    plan: SimultaneousPlan,
    size: float,
    starts: Times,
    n_bytes: Times,
    took: Times,
    ready: float,
    trace: bool | TraceFile,
) -> Result:
    bundles = plan.bundles
    sent = (ready + plan.overhead) + took
    done = sent + bundles.latency
    kept = keep_trace(trace, plan.job.schedule.n_transfers, _times(plan, starts, sent, done))
    last = float(done.max(initial=0.0))
    return _put_together(plan, size, starts, n_bytes, last, ready, bundles.link_bytes(n_bytes), kept)


def _put_together(
    plan: SimultaneousPlan,
    size: float,
    starts: Times,
    n_bytes: Times,
    last: float,
    begin: float,
    carried: Times,
    trace: Trace | None = None,
) -> Result:
    schedule, begun = plan.job.schedule, plan.begun
    alike = bool((starts == starts[0]).all())
    latest = starts[0] if alike else max(starts[begun.src].max(), starts[begun.dst].max())
    return one_job_result(
        plan.network,
        schedule,
        size,
        entered=starts,
        last=max(last, float(latest)),
        begin=begin,
        carried=(carried, float(np.broadcast_to(n_bytes, len(begun.crosses)).sum())),
        counters={"events": 2.0 * schedule.n_transfers},
        trace=trace,
    )


def _times(
    plan: SimultaneousPlan, starts: NDArray[np.float64], sent: NDArray[np.float64], done: NDArray[np.float64]
) -> Columns:
    begun = plan.begun
    flow = np.full(len(begun.src), -1)
    flow[begun.crosses] = np.arange(len(begun.crosses))
    if not len(begun.crosses):
        sent = done = np.zeros(1)

    def columns(which: NDArray[np.int64]) -> tuple[Times, Times, Times]:
        start = np.maximum(starts[begun.src[which]], starts[begun.dst[which]])
        at = flow[which]
        return start, np.where(at >= 0, sent[at], start), np.where(at >= 0, done[at], start)

    return columns


@dataclass(frozen=True, eq=False)
class SimultaneousPlan:
    """Transfers that wait for nothing, and their rates, each part found when it is first needed.

    Parameters
    ----------
    network : Network
        Network that carries the messages.
    job : FlowJob
        What runs.
    begun : BegunTogether
        The transfers.
    routing, seed : str or None, int
        Same as in :func:`commsim.routing.routing.find_routes`.
    """

    network: Network
    job: FlowJob
    begun: BegunTogether
    routing: str | None = None
    seed: int = 0

    @functools.cached_property
    def crossings(self) -> Crossings | None:
        """Flows on each link, where a hash draws all routes and none needs a search; else None."""
        if self.network.overhead.any() and (self.network.kind == NIC).any():
            return None  # whose engines a flow occupies is found in its route
        return crossings_of(self.network, *self.begun.nodes, self.begun.channel, routing=self.routing, seed=self.seed)

    @functools.cached_property
    def bundles(self) -> Bundles:
        """Routes of the flows."""
        return bundle_flows(self.network, *self.begun.nodes, self.begun.channel, routing=self.routing, seed=self.seed)

    @functools.cached_property
    def rate(self) -> NDArray[np.float64]:
        """Max-min fair rate while all flows are under way, float64[n_flows], bytes/s."""
        from .rates_kernel import fair_rates_of_flows

        of = self.bundles
        return fair_rates_of_flows(of.capacity, (of.first, of.link, of.share), of.bundle, of.head, self.job.rate_cap)

    @functools.cached_property
    def spent(self) -> float | None:
        """Time until all ports are through with the overheads of all messages, s; None where some are before others."""
        return _overhead(self)

    @property
    def overhead(self) -> float:
        """The same of a plan that there is."""
        return self.spent or 0.0


def plan_simultaneous(
    network: Network,
    job: FlowJob,
    *,
    routing: str | None = None,
    seed: int = 0,
    begun: BegunTogether | None = None,
) -> SimultaneousPlan | None:
    """Lay out a schedule whose transfers all start together.

    Parameters
    ----------
    network : Network
        Network that carries the messages.
    job : FlowJob
        What runs.
    routing, seed : str, int
        Same as in :func:`commsim.routing.routing.find_routes`.
    begun : BegunTogether, optional
        What :func:`begin_together` found, where it is known already.

    Returns
    -------
    SimultaneousPlan or None
        None if some transfer waits for another, shares its connection, or has a cost of its own to receive or to
        reduce; or if ports and engines are not through with their overheads at the same time.
    """
    begun = begin_together(network, job) if begun is None else begun
    if begun is None:
        return None
    plan = SimultaneousPlan(network, job, begun, routing, seed)
    return None if plan.spent is None else plan


def _overhead(plan: SimultaneousPlan) -> float | None:
    """Time after which all overheads are spent, if all ports and engines are done together.

    Messages that begin together at one port share it equally, so all n of them have spent theirs after n times o; and
    those at m engines after n / m times o.
    """
    network, src = plan.network, plan.begun.nodes[0]
    sends = np.zeros(network.n_nodes, np.bool_)
    sends[src] = True
    if not network.overhead[sends].any():
        return 0.0
    if plan.crossings is not None:  # what is so of one flow of a port is so of all
        of_port, port = np.zeros(network.n_links, np.int64), plan.crossings.port
        for low in range(0, len(port), AT_ONCE):  # it is cast to numbers of twice the size
            of_port += np.bincount(port[low : low + AT_ONCE], minlength=network.n_links)
        used = np.flatnonzero(of_port)
        node = network.src[used]
        of_engine = np.bincount(node, weights=of_port[used], minlength=network.n_nodes) / engines_of_nodes(network)
        times = np.maximum(of_port[used], of_engine[node]) * network.overhead[node]
        return float(times[0]) if (times == times[0]).all() else None
    bundles = plan.bundles
    found = bundles.ports()
    if found is None:
        return None
    port, where = found, network if bundles.merged is None else bundles.merged.network
    engine = bundles.engines(network, port)
    in_turn = np.bincount(port, minlength=where.n_links)[port].astype(np.float64)
    np.maximum(in_turn, (np.bincount(engine, minlength=where.n_nodes) / engines_of_nodes(where))[engine], out=in_turn)
    times = in_turn * network.overhead[src]
    return float(times[0]) if (times == times[0]).all() else None
