"""A way of computing, what it is expected to take, and the job that it is for."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from commsim.core.network import Network
from commsim.core.result import Result
from commsim.engine.flow_plan import FlowPlan, Job, JobConnections, plan_flows

from . import costs

if TYPE_CHECKING:
    from commsim.engine.recurrence.ring_phases import RingPhase

# Transfers that the event engine takes, which keeps some hundred bytes for each.
MAX_TRANSFERS = 2**26
# Transfers up to which what several ways begin with is kept.
MAX_SHARED = 2**20
# Part of the event engine's time that ways may take that turn out not to apply, all together; and seconds beside that,
# which nobody notices.
RISK, UNNOTICED = 0.12, 1e-3

# Function from ``(size, *, starts, framing, trace)`` to a result; None where a way does not apply to these.
Simulation: TypeAlias = Callable[..., Result | None]


class Cost(NamedTuple):
    """Processor seconds that a way is expected to take: until it declines, or else until it answers."""

    decline: float
    answer: float


@dataclass(frozen=True, slots=True)
class Way:
    """A way of computing; its kernels are imported when it is first tried.

    Parameters
    ----------
    name : str
        The method of its results. Ways of one name are variants of one method.
    needs : str
        What it needs of a job, for the message that refuses it.
    estimate : callable
        Function from a task to its cost; None where it surely does not apply. It does not expand the schedule.
    plan : callable
        Function from a task to its simulation, with what does not depend on the size laid out; None where the way does
        not apply.
    steps : int
        Steps in kernels per transfer, where there are few transfers; or more.
    traces : bool
        Whether it has the times of every transfer.
    general : bool
        Whether it takes pinned routes, unequal weights and measured curves.
    """

    name: str
    needs: str
    estimate: Callable[[Task], Cost | None]
    plan: Callable[[Task], Simulation | None]
    steps: int = 300
    traces: bool = True
    general: bool = False


@dataclass(eq=False)
class Task:
    """One job on a network; what several ways need of it is found when it is first needed.

    Parameters
    ----------
    network : Network
        Network that carries the messages.
    job : Job
        What runs.
    routing, seed : str or None, int
        Same as in :func:`commsim.routing.routing.find_routes`.
    """

    network: Network
    job: Job
    routing: str | None = None
    seed: int = 0

    @property
    def is_regular(self) -> bool:
        """Whether ways other than the event engine may apply."""
        return self.network.curves is None and self.job.is_regular

    @property
    def n_transfers(self) -> int:
        """Transfers, all repetitions counted."""
        return self.job.schedule.n_transfers

    @property
    def n_rows(self) -> int:
        """Transfers that the schedule's blocks list, each once."""
        return sum(len(block.body) for block in self.job.schedule.blocks)

    @property
    def n_connections(self) -> int:
        """Connections, or somewhat more: one for each row, unless repetitions move on to other participants."""
        schedule = self.job.schedule
        moving = any(block.times > 1 and (block.xor or any(block.step[:2])) for block in schedule.blocks)
        return min(self.n_transfers, schedule.n_participants**2) if moving else self.n_rows

    @property
    def may_collide(self) -> bool:
        """Whether paths are drawn by hashing where there are several, so that equals do not behave alike."""
        from commsim.routing.routing import HASHED

        network = self.network
        is_tree = network.n_links == 2 * (network.n_nodes - 1)
        return (self.routing or network.routing) in HASHED and not is_tree

    @functools.cached_property
    def event_cost(self) -> float:
        """Processor seconds of the event engine, or less: sharing takes as long again, or many times as long."""
        if self.n_transfers > MAX_TRANSFERS:
            return float("inf")
        return (
            costs.EVENTS_BEGIN
            + costs.EVENTS_TRANSFER * self.n_transfers
            + (costs.ROUTE + costs.EVENTS_CONNECTION) * self.n_connections
        )

    @property
    def move_cost(self) -> float:
        """Processor seconds of the recurrence, transfer by transfer."""
        return costs.MOVES_BEGIN + costs.MOVE * self.n_transfers + costs.ROUTE * self.n_connections

    @property
    def at_risk(self) -> float:
        """Processor seconds that may be lost on ways that turn out not to apply."""
        return UNNOTICED + RISK * self.event_cost

    @functools.cached_property
    def ring_phases(self) -> tuple[RingPhase, ...] | None:
        """Phases of rings of which the schedule is made; None where it is not."""
        from commsim.engine.recurrence.ring_phases import find_ring_phases

        return None if self.job.messages is not None else find_ring_phases(self.job.schedule)

    @functools.cached_property
    def shared(self) -> JobConnections | None:
        """What several ways begin with; None where keeping it would take too much memory."""
        few = self.n_transfers <= MAX_SHARED
        return JobConnections(self.network, self.job, self.routing, self.seed) if few else None

    @functools.cached_property
    def tables(self) -> FlowPlan:
        """Tables of the event engine, with a row for every transfer."""
        return plan_flows(self.network, [self.job], routing=self.routing, seed=self.seed, shared=self.shared)
