"""The flow engine's cheap way for messages that have their links to themselves: a recurrence, no event queue.

Rings are simulated as vectors of connections, in memory for one round (:mod:`commsim.engine.recurrence.rings`);
anything else, and rings that cannot be, transfer by transfer (:mod:`commsim.engine.recurrence.moves`).
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.cost import Framing
from commsim.core.network import Network
from commsim.core.result import Result
from commsim.engine.flow import chunk_bytes, not_negative, one_job_result
from commsim.engine.flow_plan import Job, JobConnections
from commsim.engine.trace_files import TraceFile, keep_trace

from .connection_costs import ConnectionCosts
from .moves import MAX_TRANSFERS, Moves, plan_moves, simulate_moves
from .ring_phases import RingPhase, find_ring_phases
from .rings import Rings, plan_rings, simulate_rings

# Repetitions of a block after which messages of different ones have met: pipelined trees share links from there on.
TRIAL = 2
Times = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]
NO_TIMES: Times = (np.empty(0), np.empty(0), np.empty(0))
Found = tuple[float, ConnectionCosts, NDArray[np.float64], Times]


@dataclass(eq=False)
class RecurrencePlan:
    """What does not depend on the size: rings where there are any, transfers when they are needed.

    Parameters
    ----------
    network, job, routing, seed
        Same as in :func:`commsim.engine.flow_plan.plan_flows`.
    phases : tuple of RingPhase or None
        None where the schedule is not made of rings.
    rings : Rings or None
        None where they share links, too.
    shared : JobConnections, optional
        Connections of the job, where other ways of computing share them.
    by_moves : bool
        Whether it goes on transfer by transfer where rings do not apply.
    """

    network: Network
    job: Job
    routing: str | None
    seed: int
    phases: tuple[RingPhase, ...] | None
    rings: Rings | None
    shared: JobConnections | None = None
    by_moves: bool = True

    @functools.cached_property
    def moves(self) -> Moves | None:
        """All transfers, laid out when they are first asked for; None where they are too many."""
        return plan_moves(self.network, self.job, routing=self.routing, seed=self.seed, shared=self.shared)

    @functools.cached_property
    def trial(self) -> Moves | None:
        """Transfers of the first repetitions of a block that has many: where these share, so do all."""
        block = self.job.schedule.blocks[0]
        first = dataclasses.replace(self.job.schedule, blocks=(dataclasses.replace(block, times=TRIAL),))
        job = dataclasses.replace(self.job, schedule=first)
        trial = None
        if self.shared is not None and not block.xor and not any(block.step[:2]):  # then connections are the same
            trial = JobConnections(self.network, job, self.routing, self.seed)
            vars(trial)["routes"] = self.shared.routes
        return plan_moves(self.network, job, routing=self.routing, seed=self.seed, shared=trial)

    @property
    def has_trial(self) -> bool:
        """Whether little is lost by a trial."""
        blocks, few = self.job.schedule.blocks, self.job.schedule.n_transfers <= MAX_TRANSFERS
        return few and self.job.messages is None and len(blocks) == 1 and blocks[0].times >= 8 * TRIAL


def plan_recurrence(
    network: Network,
    job: Job,
    *,
    routing: str | None = None,
    seed: int = 0,
    shared: JobConnections | None = None,
    phases: tuple[RingPhase, ...] | None = None,
    by_moves: bool = True,
) -> RecurrencePlan:
    """Lay out rings; what is not made of rings is laid out when it is needed.

    Parameters
    ----------
    network, job, routing, seed, shared
        Same as in :func:`commsim.engine.flow_plan.plan_flows`.
    phases : tuple of RingPhase, optional
        Phases of rings of the schedule, none of them to do without; they are looked for unless given.
    by_moves : bool
        Same as in :class:`RecurrencePlan`.

    Returns
    -------
    RecurrencePlan
    """
    if phases is None and job.messages is None:
        phases = find_ring_phases(job.schedule)
    rings = plan_rings(network, job, phases, routing=routing, seed=seed) if phases else None
    return RecurrencePlan(network, job, routing, seed, phases, rings, shared, by_moves)


def simulate_recurrence(
    plan: RecurrencePlan,
    size: float,
    *,
    starts: ArrayLike = 0.0,
    framing: Framing | None = None,
    trace: bool | TraceFile = False,
) -> Result | None:
    """Simulate one size.

    Parameters
    ----------
    plan : RecurrencePlan
        Plan from :func:`plan_recurrence`.
    size : float, bytes
        Size of the collective.
    starts, framing, trace
        Same as in :func:`commsim.engine.flow.simulate_flows`.

    Returns
    -------
    Result or None
        None if some link might have been shared.

    Raises
    ------
    InputError
        If the size is not positive and finite, or a start is negative or not finite.
    PhysicsError
        If a link carried more than it can. This is a bug in commsim.
    """
    schedule = plan.job.schedule
    entered = np.broadcast_to(not_negative("start", starts), schedule.n_participants)
    chunk, cut = chunk_bytes(plan.job, size), framing or Framing()
    found = None
    if plan.rings is not None and not trace:
        found = _by_rings(plan.rings, chunk, cut, entered)
    if found is None and not plan.by_moves:
        return None
    if found is None and plan.has_trial and not _passes(plan.trial, chunk, cut, entered):
        return None
    if found is None and plan.moves is not None:
        found = _by_moves(plan.moves, size, chunk, cut, entered, bool(trace))
    if found is None:
        return None
    last, costs, per_connection, times = found
    kept = keep_trace(trace, schedule.n_transfers, lambda which: (times[0][which], times[1][which], times[2][which]))
    carried = costs.link_bytes(per_connection), costs.bytes_on_wire(per_connection)
    return one_job_result(
        plan.network, schedule, size, entered=entered, last=last, carried=carried, counters={"events": 0.0}, trace=kept
    )


def _by_rings(rings: Rings, chunk: float, framing: Framing, starts: NDArray[np.float64]) -> Found | None:
    """Last finish, and bytes of each connection."""
    n_bytes = tuple(framing.on_wire(phase.count.ravel() * chunk) for phase in rings.phases)
    last = simulate_rings(rings, n_bytes, starts)
    if last is None:
        return None
    per_connection = np.zeros(len(rings.costs.ends))
    for phase, of, each in zip(rings.phases, rings.connection, n_bytes, strict=True):
        per_connection[of] += phase.n_rounds * each
    return last, rings.costs, per_connection, NO_TIMES


def _passes(trial: Moves | None, chunk: float, framing: Framing, starts: NDArray[np.float64]) -> bool:
    return trial is not None and simulate_moves(trial, framing.on_wire(trial.count * chunk), starts) is not None


def _by_moves(
    moves: Moves, size: float, chunk: float, framing: Framing, starts: NDArray[np.float64], trace: bool
) -> Found | None:
    """Last finish, bytes of each connection, and all times if wanted."""
    job = moves.job
    payload = moves.count * chunk if job.messages is None else not_negative("payload", job.messages(float(size)))
    n_bytes = framing.on_wire(payload)
    times = simulate_moves(moves, n_bytes, starts, keep=trace)
    if times is None:
        return None
    per_connection = np.bincount(moves.move["connection"], n_bytes, len(moves.costs.ends)).astype(np.float64)
    return times.last, moves.costs, per_connection, (times.start, times.sent, times.done)
