"""Flows that all start together, such as a direct all-to-all.

If they are of one size, one allocation of rates says when each of them ends: the fastest leave first, and the rates of
slower ones do not depend on them (see the sharing kernel), so nothing changes from the start to the end. If they are
not, rates change at every departure (see the departures kernel).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.cost import Framing
from commsim.core.result import Result

from ..flow import chunk_bytes, not_negative
from ..one_job import one_job_result
from ..trace_files import Columns, TraceFile, keep_trace
from .plan import TogetherPlan, plan_together

__all__ = ["plan_together", "simulate_together"]

Times = NDArray[np.float64]


def simulate_together(
    plan: TogetherPlan,
    size: float,
    *,
    starts: ArrayLike = 0.0,
    framing: Framing | None = None,
    trace: bool | TraceFile = False,
) -> Result | None:
    """Say when each transfer ends.

    Parameters
    ----------
    plan : TogetherPlan
        From :func:`commsim.engine.simultaneous.plan.plan_together`.
    size, starts, wire, trace
        As in :func:`commsim.engine.flow.simulate_flows`.

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
        If a link would carry more than it can: our bug.
    """
    job, schedule = plan.job, plan.job.schedule
    chunk = chunk_bytes(job, float(size))
    starts = np.broadcast_to(not_negative("start", starts), schedule.n_participants)
    alike = bool((starts == starts[0]).all())
    ready = starts[:1] if alike else np.unique(np.maximum(starts[plan.src], starts[plan.dst])[plan.crosses])
    if len(plan.crosses) and len(ready) > 1:
        return None
    if job.messages is None:
        payload = (
            (plan.count * chunk)[plan.row[plan.crosses]] if len(np.unique(plan.count)) > 1 else plan.count[:1] * chunk
        )
    else:
        payload = not_negative("payload", job.messages(float(size)))[plan.crosses]
    n_bytes = (framing or Framing()).on_wire(payload)
    took = _took(plan, n_bytes)
    return None if took is None else _result(plan, float(size), starts, n_bytes, took, float(ready[:1].sum()), trace)


def _took(plan: TogetherPlan, n_bytes: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Find how long after its overhead each flow has left, or None."""
    if not len(plan.rate):
        return plan.rate
    if n_bytes[0] > 0 and (n_bytes == n_bytes[0]).all():
        return n_bytes[:1] / plan.rate
    if (n_bytes == 0).any() or plan.job.rate_cap < np.inf or (plan.bundles.share != 1).any():
        return None

    from .departures_kernel import play_departures

    first, link = plan.bundles.rows()
    used, number = np.unique(link, return_inverse=True)
    took, found = play_departures(plan.bundles.capacity[used], (first, number.astype(np.int32)), n_bytes, plan.rate)
    return took if found else None


def _result(
    plan: TogetherPlan,
    size: float,
    starts: Times,
    n_bytes: Times,
    took: Times,
    ready: float,
    trace: bool | TraceFile,
) -> Result:
    schedule, bundles = plan.job.schedule, plan.bundles
    sent = (ready + plan.overhead) + took
    done = sent + bundles.latency
    last = max(float(done.max(initial=0.0)), float(starts[plan.src].max()), float(starts[plan.dst].max()))
    return one_job_result(
        plan.network,
        schedule,
        size,
        entered=starts,
        last=last,
        begin=ready,
        carried=(bundles.link_bytes(n_bytes), float(np.broadcast_to(n_bytes, len(plan.crosses)).sum())),
        counters={"events": 2.0 * schedule.n_transfers},
        trace=keep_trace(trace, schedule.n_transfers, _times(plan, starts, sent, done)),
    )


def _times(
    plan: TogetherPlan, starts: NDArray[np.float64], sent: NDArray[np.float64], done: NDArray[np.float64]
) -> Columns:
    flow = np.full(len(plan.src), -1)
    flow[plan.crosses] = np.arange(len(plan.crosses))
    if not len(plan.crosses):
        sent = done = np.zeros(1)

    def columns(which: NDArray[np.int64]) -> tuple[Times, Times, Times]:
        start = np.maximum(starts[plan.src[which]], starts[plan.dst[which]])
        at = flow[which]
        return start, np.where(at >= 0, sent[at], start), np.where(at >= 0, done[at], start)

    return columns
