"""A job whose time on a reference network is known: a way of the flow engine where nothing else can be in its way.

The reference is the same network with endless links, but for some that the job is known to fill, such as those of a GPU
or a NIC. Elsewhere a link is in nobody's way if all connections that cross it fit, each at the most that it may get;
connections that come through a port which is itself finite bring no more than that. If this holds for every link that
is not as fast as in the reference, the rates that max-min sharing gives on the reference are possible here, and so they
are the rates here: the time is the known one. Otherwise the job is simulated, and what its known time has beyond a
simulation on the reference is added: software that no message shows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.cost import Framing
from commsim.core.network import Network
from commsim.core.pinned_routes import gathered
from commsim.core.result import Result
from commsim.engine.flow_job import FlowJob, not_negative, one_job_result
from commsim.engine.ways.carriers import Carriers, carriers
from commsim.engine.ways.proof_cache import PROOFS, Examined, digest_of
from commsim.routing.in_parts.joined_routes import JoinedRoutes
from commsim.routing.pinned import find_shared_routes

# Part by which rates may differ and still be equal.
SLACK = 1e-9
__all__ = [
    "Carriers", "ClosedForm", "Loops", "Proof", "applies", "carried", "carriers", "full_link", "prove",
    "simulate_known", "simulate_loops",
]  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Loops:
    """A job that does the same again and again, as two shorter ones: what a loop adds follows from these.

    Parameters
    ----------
    build : callable
        Function from a number of loops to the job with so many; after the first ones each loop takes as long as the one
        before it.
    key : callable
        Function from a number of loops to what decides the schedule of that job: two jobs of one key have one schedule,
        whose connections are those of the whole job.
    n_loops : (int, int)
        Loops of the job with few and of the one with more.
    total : float
        Loops of the job, the last one counted by its bytes.
    """

    build: Callable[[int], FlowJob]
    key: Callable[[int], Hashable]
    n_loops: tuple[int, int]
    total: float

    def whole(self, few: float, more: float) -> float:
        """Return the time of all loops, from those of few and of more."""
        least, less = self.n_loops
        return more + (more - few) / (less - least) * (self.total - less)


@dataclass(frozen=True, slots=True, eq=False)
class ClosedForm:
    """Time of a job on a reference network.

    Parameters
    ----------
    seconds : float
        Time.
    reference : Network
        The job's network with other rates of its links: at least its own.
    framing : Framing or None
        Headers on the wire with which the time holds.
    loops : Loops or None
        Shorter jobs, for a job with too many messages to simulate all.
    """

    seconds: float
    reference: Network
    framing: Framing | None = None
    loops: Loops | None = None


def full_link(network: Network, reference: Network, routes: JoinedRoutes, cap: float) -> int:
    """Return a link that may be in the way of connections with a rate each, which the reference does not have; or -1.

    Parameters
    ----------
    network, reference : Network
        The job's network, and the same with other rates.
    routes : JoinedRoutes
        Route of each connection.
    cap : float, bytes/s
        Most that a connection gets.
    """
    n_connections = len(routes.of if routes.pair is None else routes.pair)
    load = routes.on_links(np.full(n_connections, cap), network.n_links)
    is_less = network.bandwidth < reference.bandwidth * (1 - SLACK)
    tight = is_less & (load > network.bandwidth * (1 + SLACK))
    if tight.any():
        finite = reference.bandwidth < reference.bandwidth.max(initial=0.0)
        for last in (False, True):
            load = np.minimum(load, _through_ports(network, routes, cap, finite & ~is_less, tight, last=last))
        tight &= load > network.bandwidth * (1 + SLACK)
    return int(tight.argmax()) if tight.any() else -1


def _through_ports(
    network: Network, routes: JoinedRoutes, cap: float, is_port: NDArray[np.bool_], wanted: NDArray[np.bool_], *,
    last: bool,
) -> NDArray[np.float64]:  # fmt: skip
    """Return the most that some links carry if the first, or last, port of each connection is as fast as it is.

    Connections of one port that share a part of their routes are counted together, and then those that share a link.
    """
    parts, n_parts = routes.parts, len(routes.parts.first) - 1
    row = np.repeat(np.arange(n_parts), np.diff(parts.first))
    at_port = np.flatnonzero(is_port[parts.link])[:: 1 if last else -1]
    port_of, share_of = np.full(n_parts, -1, np.int64), np.ones(n_parts)
    port_of[row[at_port]] = parts.link[at_port]  # what is written last stays
    share_of[row[at_port]] = parts.share[at_port]
    through, share = np.full(len(routes.of), -1, np.int64), np.ones(len(routes.of))
    for column in routes.of.T[:: -1 if last else 1]:
        found = np.flatnonzero((through < 0) & (port_of[column] >= 0))
        through[found], share[found] = port_of[column[found]], share_of[column[found]]
    alone = np.flatnonzero(through < 0)
    through[alone] = network.n_links + alone  # without one, each is its own
    rate = routes.of_pairs(np.full(len(routes.of if routes.pair is None else routes.pair), cap))
    is_wanted = np.bincount(row, wanted[parts.link], n_parts) > 0
    pair, column = np.nonzero(is_wanted[routes.of])
    of_part, (rates, most) = _grouped(through[pair] * n_parts + routes.of[pair, column], rate[pair], 1 / share[pair])
    rows = np.flatnonzero(wanted[parts.link])
    first = np.searchsorted(row[rows], np.arange(n_parts + 1))
    group = np.repeat(np.arange(len(of_part)), np.diff(first)[of_part % n_parts])
    rows = rows[gathered(first, np.arange(len(rows), dtype=np.int32), of_part % n_parts)[1]]
    of_link, (carried, part) = _grouped(
        of_part[group] // n_parts * network.n_links + parts.link[rows],
        rates[group] * parts.share[rows], parts.share[rows] * most[group],
    )  # fmt: skip
    port, link = np.divmod(of_link, network.n_links)
    limit = np.append(network.bandwidth, np.inf)[np.minimum(port, network.n_links)] * part
    return np.bincount(link, weights=np.minimum(carried, limit), minlength=network.n_links).astype(np.float64)


def _grouped(
    key: NDArray[np.int64], added: NDArray[np.float64], largest: NDArray[np.float64]
) -> tuple[NDArray[np.int64], tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Return keys without repetition, and of each the sum of one column and the largest of the other."""
    order = np.argsort(key, kind="stable")
    key = key[order]
    first = np.flatnonzero(np.diff(key, prepend=-1))
    return key[first], (np.add.reduceat(added[order], first), np.maximum.reduceat(largest[order], first))


@dataclass(frozen=True, slots=True, eq=False)
class Proof:
    """Whether a job's time on a network is that on the reference.

    Parameters
    ----------
    routes : JoinedRoutes
        Route of each connection.
    carriers : Carriers
        Connections.
    full : int
        A link that may be in the way; -1 if there is none.
    """

    routes: JoinedRoutes
    carriers: Carriers
    full: int


def prove(
    network: Network, job: FlowJob, known: ClosedForm, routing: str | None, seed: int, found: Carriers | None = None
) -> Proof:
    """Look for a link that may be in the way.

    Parameters
    ----------
    network, job, routing, seed
        Those of a flow engine's plan.
    known : ClosedForm
        Time on the reference network.
    found : Carriers, optional
        Connections of the job's schedule, where they are known.
    """
    found = carriers(job.schedule) if found is None else found
    job.placement.check(network, job.schedule.n_ranks, job.schedule.n_helpers)

    def examine() -> Examined:
        return Examined(
            find_shared_routes(network, job.placement, found.ends, found.channel, routing=routing, seed=seed)
        )

    if job.placement.routes is not None:
        one = examine()
    else:
        nodes = digest_of(job.placement.nodes)
        key = digest_of(network), digest_of(known.reference), nodes, found.wires.digest, routing, seed
        one = PROOFS.get(key, examine)
    full = one.full(job.rate_cap, lambda cap: full_link(network, known.reference, one.routes, cap))
    return Proof(one.routes, found, full)


def applies(network: Network, job: FlowJob, known: ClosedForm, starts: ArrayLike, framing: Framing | None) -> bool:
    """Whether nothing but links could make a job's time another one than the known."""
    plain = job.is_regular and job.messages is None and network.curves is None and network.protocol is None
    plain = plain and not network.gamma.any()
    return bool(plain and framing == known.framing and not not_negative("start", starts).any())


def simulate_known(network: Network, job: FlowJob, known: ClosedForm, proof: Proof, size: float) -> Result | None:
    """Return the result of a job for which the proof found no link in the way; None if a link needs longer than known.

    Parameters
    ----------
    network, job, known
        Same as in :func:`prove`.
    proof : Proof
        Proof that no link is in the way.
    size : float, bytes
        Size of the collective.
    """
    starts, on_links = np.zeros(job.schedule.n_participants), carried(network, job, proof, size, known.framing)
    if (on_links[0] > network.bandwidth * known.seconds * (1 + SLACK)).any():
        return None
    return one_job_result(
        network, job.schedule, size, entered=starts, last=known.seconds, carried=on_links, counters={}
    )


def simulate_loops(
    network: Network,
    loops: Loops,
    whole: tuple[FlowJob, Proof],
    size: float,
    starts: ArrayLike,
    framing: Framing | None,
    time: Callable[[Network, int, float], float],
) -> Result:
    """Return the result of a job of many loops, from simulations of some.

    Parameters
    ----------
    network : Network
        Network that the jobs run on.
    loops : Loops
        The shorter jobs.
    whole : (FlowJob, Proof)
        The job, and its connections and routes.
    size : float, bytes
        Size of the whole collective.
    starts, framing
        Same as in :func:`commsim.engine.flow.simulate_flows`.
    time : callable
        Function from a network, a number of loops and the size of that job to the last finish.
    """
    few, more = (time(network, n, size * n / loops.total) for n in loops.n_loops)
    entered = np.broadcast_to(not_negative("start", starts), whole[0].schedule.n_participants)
    on_links = carried(network, *whole, size, framing)
    busiest = float((on_links[0] / network.bandwidth).max(initial=0.0))  # which loops that differ a little may be below
    last = float(entered.min()) + max(loops.whole(few, more), busiest)
    return one_job_result(
        network, whole[0].schedule, size, entered=entered, last=last, carried=on_links, counters={},
        begin=float(entered.min()),
    )  # fmt: skip


def carried(
    network: Network, job: FlowJob, proof: Proof, size: float, framing: Framing | None
) -> tuple[NDArray[np.float64], float]:
    """Bytes of each link, and of all messages that use one; headers included."""
    on_wire = proof.carriers.on_wire(size / job.schedule.n_chunks, framing)
    of_links = proof.routes.on_links(on_wire, network.n_links)
    return of_links, float(on_wire[proof.routes.crosses()].sum())
