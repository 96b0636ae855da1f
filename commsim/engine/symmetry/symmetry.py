"""Symmetry: wires that behave alike are played once.

Wires are put into classes by what they are and by what their transfers wait for, as far back as it goes. Then one of
each class is played, with the weight of all, by the full engine's own kernel. Whether members of a class share links
with others than it does is not asked beforehand: where they do, it is checked at every change of rates that each of
them has a resource of its own which holds it to that rate. Then the rates are max-min fair for all, and these are
unique; else the members are told apart, and it is played again. So what could matter, but does not, costs nothing: in
two trees the position of a leaf matters to nobody, though no two leaves have the same surroundings.

References
----------
Bertsekas and Gallager, "Data Networks", 2nd ed., 1992, section 6.5.2: an allocation is max-min fair if, and only if,
every flow has a bottleneck.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.cost import Framing
from commsim.core.errors import PhysicsError
from commsim.core.network import Network
from commsim.core.result import Result

from ..flow import chunk_bytes, not_negative
from ..flow_state import N_DONE, N_EVENTS, Tables
from ..one_job import one_job_result
from ..trace_files import Columns, TraceFile, keep_trace
from .plan import SymmetricPlan, Wires, plan_symmetric
from .quotient import Quotient

__all__ = ["plan_symmetric", "simulate_symmetric"]

MAX_ROUNDS = 40
"""How often classes are played, and told apart where a check fails."""
TRIAL = 8
"""Classes are first told apart on this part of all repetitions."""


def simulate_symmetric(
    plan: SymmetricPlan,
    size: float,
    *,
    starts: ArrayLike = 0.0,
    framing: Framing | None = None,
    trace: bool | TraceFile = False,
) -> Result | None:
    """Simulate by classes.

    Parameters
    ----------
    plan : SymmetricPlan
        From :func:`commsim.engine.symmetry.plan.plan_symmetric`.
    size, starts, wire, trace
        As in :func:`commsim.engine.flow.simulate_flows`.

    Returns
    -------
    Result or None
        None if ranks start at different times, or there are too many classes.

    Raises
    ------
    InputError
        If the size or a start is not legal.
    PhysicsError
        If transfers never end, or a link would carry more than it can: our bug.
    """
    schedule = plan.job.schedule
    chunk = chunk_bytes(plan.job, float(size))
    starts = np.broadcast_to(not_negative("start", starts), schedule.n_participants)
    if not (starts == starts[0]).all():
        return None
    if not plan.tried:
        plan.lay_out()
    if plan.wires is None:
        return None
    n_bytes = (framing or Framing()).on_wire(plan.wires.full.pattern.transfers["count"] * chunk)
    found = _play(plan, n_bytes, float(starts[0]))
    if found is None:
        return None
    classes, t = found
    if t.counter[N_DONE] != len(t.done):
        raise PhysicsError(f"deadlock: {len(t.done) - t.counter[N_DONE]} transfers never completed")
    return one_job_result(
        plan.network,
        schedule,
        float(size),
        entered=starts,
        last=float(t.done.max()),
        begin=float(starts[0]),
        carried=_link_bytes(plan.network, plan.wires, n_bytes),
        counters={"events": float(t.counter[N_EVENTS]), "classes": float(len(classes.lead))},
        trace=keep_trace(trace, schedule.n_transfers, _times(classes, t)),
    )


def _play(plan: SymmetricPlan, n_bytes: NDArray[np.float64], ready: float) -> tuple[Quotient, Tables] | None:
    """Play the classes, told apart as far as they must be."""
    from ..flow_kernel import simulate

    all_times, now = plan.classes[0].full.pattern.times, 0
    times = max(1, all_times // TRIAL)  # most of what must be told apart shows soon
    for _ in range(MAX_ROUNDS):
        classes = plan.classes[now]
        t = classes.tables(n_bytes, ready, times)
        simulate(t, False)
        if not t.broken.any():
            if times == all_times:
                return classes, t
            times = all_times
            continue
        finer = plan.tell_apart(now, t.broken)
        if finer is None:
            return None
        now = finer
    return None


def _link_bytes(network: Network, wires: Wires, n_bytes: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Bytes that each link carried, and that left senders."""
    pattern, routes = wires.full.pattern, wires.routes
    length = np.diff(routes.first)
    per_wire = np.bincount(pattern.wire, weights=n_bytes, minlength=len(length)) * pattern.times
    n_links = network.n_links if wires.folded is None else wires.folded.network.n_links
    per_link = np.zeros(n_links) + np.bincount(
        routes.link, weights=np.repeat(per_wire, length) * routes.share, minlength=n_links
    )
    return per_link if wires.folded is None else wires.folded.unfold(per_link), float(per_wire[length > 0].sum())


def _times(classes: Quotient, t: Tables) -> Columns:
    """Give every transfer the times of its class."""
    alike, n, each = classes.transfer_of(), len(classes.full.pattern.transfers), int(classes.base[-1])

    def columns(which: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        at = alike[which % n] + which // n * each
        return t.start[at], t.sent[at], t.done[at]

    return columns
