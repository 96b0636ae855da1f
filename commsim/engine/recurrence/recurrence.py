"""The flow engine's cheap way for messages that have their links to themselves: a recurrence, no event queue.

It goes transfer by transfer (:mod:`commsim.engine.recurrence.moves`), after a trial of the first repetitions where
there are many. Rings need no row for each transfer and have a way of their own
(:mod:`commsim.engine.recurrence.rings`).
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
from commsim.engine.flow_job import FlowJob, chunk_bytes, not_negative, one_job_result
from commsim.engine.job_connections import JobConnections
from commsim.engine.trace_files import TraceFile, keep_trace
from commsim.engine.ways.costs import MAX_MOVES

from .moves import ProgramMoves, plan_moves, simulate_moves

# Repetitions of a block after which messages of different ones have met: pipelined trees share links from there on.
TRIAL = 2
# Links of routes from which on they are found again for another size, and not kept beside another way's tables.
MANY_LINKS = 2**20


@dataclass(eq=False)
class RecurrencePlan:
    """What does not depend on the size, laid out when it is needed.

    Parameters
    ----------
    network, job, routing, seed
        Same as in :func:`commsim.engine.flow_plan.plan_flows`.
    shared : JobConnections, optional
        Connections of the job, where other ways of computing share them.
    """

    network: Network
    job: FlowJob
    routing: str | None = None
    seed: int = 0
    shared: JobConnections | None = None

    @functools.cached_property
    def moves(self) -> ProgramMoves | None:
        """All transfers, laid out when they are first asked for; None where they are too many."""
        return plan_moves(self.network, self.job, routing=self.routing, seed=self.seed, shared=self.shared)

    @functools.cached_property
    def trial(self) -> ProgramMoves | None:
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
        blocks, few = self.job.schedule.blocks, self.job.schedule.n_transfers <= MAX_MOVES
        return few and self.job.messages is None and len(blocks) == 1 and blocks[0].times >= 8 * TRIAL


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
        The job, laid out.
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
    job, schedule, cut = plan.job, plan.job.schedule, framing or Framing()
    entered = np.broadcast_to(not_negative("start", starts), schedule.n_participants)
    chunk = chunk_bytes(job, size)
    if plan.has_trial and not _passes(plan.trial, chunk, cut, entered):
        return None
    moves = plan.moves
    if moves is None:
        return None
    n_bytes = cut.on_wire(
        moves.count * chunk if job.messages is None else not_negative("payload", job.messages(float(size)))
    )
    times = simulate_moves(moves, n_bytes, entered, keep=bool(trace))
    if times is None:
        if len(moves.costs.part) > MANY_LINKS:
            del plan.moves  # another way follows, which has tables as large
        return None
    kept = keep_trace(
        trace, schedule.n_transfers, lambda which: (times.start[which], times.sent[which], times.done[which])
    )
    per_connection = np.bincount(moves.move["connection"], n_bytes, len(moves.costs.ends)).astype(np.float64)
    carried = moves.costs.routes.carried(per_connection, moves.costs.n_links, moves.costs.bundles)
    return one_job_result(
        plan.network, schedule, size, entered=entered, last=times.last, carried=carried,
        counters={"events": 0.0}, trace=kept,
    )  # fmt: skip


def _passes(trial: ProgramMoves | None, chunk: float, framing: Framing, starts: NDArray[np.float64]) -> bool:
    return trial is not None and simulate_moves(trial, framing.on_wire(trial.count * chunk), starts) is not None
