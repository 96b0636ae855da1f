"""From times to a result: sizes and starts are checked before, what links carried after, in every way of computing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.errors import InputError, PhysicsError
from commsim.core.network import Network
from commsim.core.operations import OPERATIONS
from commsim.core.result import Result, Trace
from commsim.core.schedule import Schedule

if TYPE_CHECKING:
    from .flow_job import FlowJob
    from .flow_plan import FlowPlan
    from .flow_times import FlowTimes

# Relative slack of every check against physics.
SLACK = 1e-9
# Part of a resource that may be asked for at once; what is above 1 is rounding.
FULL = 1.0 + 1e-11


def not_negative(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return `values` as floats; the kernels trust that none is negative or not finite.

    Raises
    ------
    InputError
        If one is.
    """
    array = np.asarray(values, np.float64)
    good = (array >= 0) & np.isfinite(array)
    if not good.all():
        raise InputError(f"{name} must be 0 or more and finite, got {array[~good][0]}")
    return array


def chunk_bytes(job: FlowJob, size: float) -> float:
    """Bytes of one chunk of a job's data.

    Raises
    ------
    InputError
        If the size is not positive and finite; 0 is legal for what carries no bytes.
    """
    operation = job.schedule.operation
    may_be_empty = operation != "custom" and OPERATIONS[operation].signals
    if not (size > 0 or (size == 0 and may_be_empty)) or not np.isfinite(size):
        raise InputError(f"size must be positive and finite, got {size}")
    return size / job.schedule.n_chunks


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
    from .flow_times import link_bytes

    return _put_together(schedule, engine, size, entered, end, (link_bytes(plan, times, j), on_wire), counters, kept)


def _put_together(
    schedule: Schedule,
    engine: str,
    size: float,
    entered: NDArray[np.float64],
    end: float,
    carried: tuple[NDArray[np.float64], float],
    counters: Mapping[str, float],
    trace: Trace | None,
) -> Result:
    took = float(end - entered.min()), float(end - entered.max())
    counters = {**counters, "transfers": float(schedule.n_transfers)}
    name, operation, n_ranks = schedule.name, schedule.operation, schedule.n_ranks
    return Result(name, operation, engine, n_ranks, size, *took, *carried, counters=counters, trace=trace)


def one_job_result(
    network: Network,
    schedule: Schedule,
    size: float,
    *,
    entered: NDArray[np.float64],
    last: float,
    begin: float = 0.0,
    carried: tuple[NDArray[np.float64], float],
    counters: Mapping[str, float],
    trace: Trace | None = None,
) -> Result:
    """Check the links, and put the result together.

    Parameters
    ----------
    network : Network
        Network that the job ran on.
    schedule, size
        What ran, and on how many bytes.
    entered : float64[n_participants], s
        Time at which each participant began.
    last, begin : float, s
        Time at which the last transfer was complete, and the time before which none used a link.
    carried : (float64[n_links], float), bytes
        What each link carried, headers included, and the sum of all messages that used one.
    counters : mapping of str to float
        Counters beside the number of transfers.
    trace : Trace, optional
        Times of every transfer.

    Raises
    ------
    PhysicsError
        If a link carried more than it can. This is a bug in commsim.
    """
    ranks = entered[: schedule.n_ranks]
    end = max(last, float(ranks.max()))
    check_links(network, carried[0], end - begin, SLACK * (end - begin))
    return _put_together(schedule, "flow", size, ranks, end, carried, counters, trace)


def check_links(network: Network, carried: NDArray[np.float64], seconds: float, slack: float) -> None:
    """Raise if a link carried more bytes than it can in this time: what every way of computing ends with.

    Raises
    ------
    PhysicsError
        Naming the link.
    """
    used = np.flatnonzero(carried)  # of millions of links few are
    busy = carried[used] / network.bandwidth[used]
    if busy.max(initial=0.0) > seconds + slack:
        worst = int(busy.argmax())
        raise PhysicsError(
            f"link {network.link_name(int(used[worst]))} carried {busy[worst]} s of bytes in {seconds} s"
        )
