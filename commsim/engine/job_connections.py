"""The connections of a job: what its transfers are, which of them share one, what each waits for, and their routes."""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.data_order.dependencies import Dependencies, connections, dependencies
from commsim.core.jit import expected_work
from commsim.core.network import Network
from commsim.core.schedule import Transfers
from commsim.routing.pinned import find_connection_routes
from commsim.routing.routing import Routes

from .flow_job import FlowJob

# Steps of the kernels for each transfer and each that it waits for, or more.
STEPS = 20


@dataclass(frozen=True, eq=False)
class JobConnections:
    """All transfers of a job and what carries them, each part found when it is first needed.

    Several ways of computing begin with it; where one of them turns out not to apply, the next finds this done.

    Parameters
    ----------
    network, job, routing, seed
        Same as in :func:`commsim.engine.flow_plan.plan_flows`.
    """

    network: Network
    job: FlowJob
    routing: str | None
    seed: int

    @functools.cached_property
    def transfers(self) -> Transfers:
        """All transfers; a block that neither repeats nor follows another is what it is."""
        schedule = self.job.schedule
        self.job.placement.check(self.network, schedule.n_ranks, schedule.n_helpers)
        first = schedule.blocks[0] if len(schedule.blocks) == 1 else None
        plain = first is not None and first.times == 1 and not any(first.step)
        return first.body if first is not None and plain else schedule.expand()

    @functools.cached_property
    def numbered(self) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
        """Connection of each transfer, and the first transfer of each connection."""
        return connections(self.job.schedule, self.transfers)

    @functools.cached_property
    def waits(self) -> Dependencies:
        """What each transfer waits for."""
        return dependencies(self.job.schedule, self.transfers)

    @functools.cached_property
    def successors(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """What waits for each transfer, as in :class:`commsim.engine.flow_plan.FlowPlan`."""
        from commsim.core.data_order.dependencies_kernel import WRITE_AFTER_READ, successor_rows

        waits = self.waits
        with expected_work(STEPS * (len(waits.pred) + len(waits.first)), first=True):
            rows: tuple[NDArray[np.int64], NDArray[np.int32]] = successor_rows(
                waits.first, waits.pred, waits.kind != WRITE_AFTER_READ
            )
        return rows

    @functools.cached_property
    def ends(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Participants and channel of each connection; found from one repetition where all use the same."""
        schedule = self.job.schedule
        block = schedule.blocks[0] if len(schedule.blocks) == 1 else None
        if block is not None and not block.xor and not any(block.step[:2]):
            once = schedule.repetitions(block, [0])
            return ends_of(once, connections(schedule, once)[1])
        return ends_of(self.transfers, self.numbered[1])

    @functools.cached_property
    def columns(self) -> tuple[NDArray[np.uint8], NDArray[np.int32], NDArray[np.int32]]:
        """Operation and count of each transfer; and the transfers by connection, in program order."""
        from commsim.core.data_order.dependencies_kernel import counting_order

        of_transfer, lead = self.numbered
        with expected_work(STEPS * len(of_transfer), first=True):
            queue = counting_order(of_transfer, len(lead))
        return self.transfers["op"].copy(), self.transfers["count"].copy(), queue

    @functools.cached_property
    def routes(self) -> Routes:
        """Route of each connection."""
        ends, channel = self.ends
        return find_connection_routes(
            self.network, self.job.placement, ends, channel, routing=self.routing, seed=self.seed
        )

    def on(self, network: Network) -> JobConnections:
        """Return the same on another network: what the schedule alone decides is kept, routes are found there."""
        return self._with_routes_of(dataclasses.replace(self, network=network))

    def hashed_by(self, seed: int) -> JobConnections:
        """Return the same with routes that another seed draws; what the schedule alone decides is kept."""
        return self._with_routes_of(dataclasses.replace(self, seed=seed))

    def _with_routes_of(self, there: JobConnections) -> JobConnections:
        kept = vars(self).keys() & {"transfers", "numbered", "waits", "successors", "ends", "columns"}
        vars(there).update({name: vars(self)[name] for name in kept})
        return there


def ends_of(transfers: Transfers, lead: NDArray[np.intp]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Participants, and channel, of connections whose first transfers are `lead`: int32[n, 2], int64[n]."""
    return np.stack((transfers["src"][lead], transfers["dst"][lead]), axis=1), transfers["channel"][lead].astype(
        np.int64
    )
