"""What the flow engine finds: when each transfer started and finished, and what each link carried."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.result import Result, Trace

from .flow_job import put_together
from .flow_plan import FlowPlan

# Links of routes that are looked at together.
PIECE = 2**20


@dataclass(frozen=True, slots=True, eq=False)
class FlowTimes:
    """When everything happened, in the plan's order of transfers.

    Parameters
    ----------
    bytes_on_wire, start, sent, done : float64[n_transfers]
        Bytes with headers, and seconds.
    ready : float64[n_connections], s
        Time at which both ends of each connection had entered the collective.
    n_events : int
        Phases that started or ended.
    """

    bytes_on_wire: NDArray[np.float64]
    start: NDArray[np.float64]
    sent: NDArray[np.float64]
    done: NDArray[np.float64]
    ready: NDArray[np.float64]
    n_events: int


def link_bytes(plan: FlowPlan, times: FlowTimes, job: int | None = None) -> NDArray[np.float64]:
    """Bytes that each link carried, headers included, for one job or for all.

    Returns
    -------
    float64[n_links], bytes
    """
    mine = slice(None) if job is None else plan.transfers_of[job]
    per_connection = np.bincount(
        plan.connection_of[mine], weights=times.bytes_on_wire[mine], minlength=len(plan.connection)
    )
    routes, carried = plan.routes, np.zeros(plan.network.n_links)
    of_connection = np.repeat(np.arange(len(plan.connection), dtype=np.int32), np.diff(routes.first))
    for hops in _pieces(of_connection):  # in the order of the routes, which sums depend on
        np.add.at(carried, routes.link[hops], per_connection[of_connection[hops]] * routes.share[hops])
    return carried


def _pieces(of_connection: NDArray[np.int32]) -> Iterator[slice]:
    """Yield which links of all routes are looked at together, so that little else is as long as these.

    Parameters
    ----------
    of_connection : int32[n_links_of_routes]
        Connection whose route has the link.
    """
    return (slice(at, at + PIECE) for at in range(0, len(of_connection), PIECE))


def job_results(
    plan: FlowPlan, times: FlowTimes, sizes: ArrayLike, starts: NDArray[np.float64], trace: bool, engine: str
) -> tuple[Result, ...]:
    """Cut the times of all transfers into one result per job."""
    sizes = np.broadcast_to(np.asarray(sizes, np.float64), len(plan.jobs))
    first = np.cumsum([0, *(job.schedule.n_participants for job in plan.jobs)])
    return tuple(
        _result(plan, times, j, float(sizes[j]), starts[first[j] : first[j] + job.schedule.n_ranks], trace, engine)
        for j, job in enumerate(plan.jobs)
    )


def _result(
    plan: FlowPlan, times: FlowTimes, j: int, size: float, entered: NDArray[np.float64], trace: bool, engine: str
) -> Result:
    schedule, mine = plan.jobs[j].schedule, plan.transfers_of[j]
    end = max(times.done[mine].max(initial=0.0), entered.max())
    crosses = np.diff(plan.routes.first) > 0
    on_wire = float(times.bytes_on_wire[mine][crosses[plan.connection_of[mine]]].sum())
    kept = Trace(times.start[mine], times.sent[mine], times.done[mine]) if trace else None
    counters = {"events": float(times.n_events)}
    return put_together(schedule, engine, size, entered, end, (link_bytes(plan, times, j), on_wire), counters, kept)
