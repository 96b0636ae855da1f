"""The event engine's loop with groups: what ends and begins at one time, then the rates, then the next ends."""

from __future__ import annotations

import numpy as np

from commsim.core.jit import njit_norefcount
from commsim.engine.flow_kernel import prepare, push, take_events
from commsim.engine.flow_state import FlowState
from commsim.engine.queue_kernel import heap_fix
from commsim.engine.users_kernel import end_link, first_link

from .group_state import Groups
from .groups_kernel import join, leave_group, put_in, take_out, tick, use, use_no_more
from .levels_kernel import fill_all, settle

# Part of the flows, one in so many, that enter and leave at once from which on all rates are found from the beginning.
MANY = 8


@njit_norefcount
def simulate_groups(t: FlowState, g: Groups) -> None:
    """Simulate all transfers; fills ``t.start``, ``t.sent`` and ``t.done`` as the event engine's kernel does.

    Parameters
    ----------
    t : FlowState
        State of connections and transfers; its tables of users and resources are not used.
    g : Groups
        State of the groups.
    """
    prepare(t)
    c = t.counter
    while g.counter["n_heap"] > 0 or c["n_waiting"] > 0:
        now = end_flows(t, g)
        if now == np.inf:
            break
        take_events(t, now)
        regroup(t, g, now)


@njit_norefcount
def end_flows(t: FlowState, g: Groups) -> float:
    """Find when something happens next, and end all phases that end then; the flows stay in their groups so far."""
    c = g.counter
    now = first_end(g)
    if t.counter["n_waiting"] > 0:
        now = min(now, t.event_time[0])
    t.counter["n_beginning"] = c["n_ended"] = 0
    while now < np.inf and first_end(g) <= now:
        q = g.finish_heap[0]
        s = g.member[g.first[q]]
        take_out(g, q, s)
        g.has_ended[s] = True
        g.ended[c["n_ended"]] = s
        c["n_ended"] += 1
        push(t, s + len(t.connection))
        find_ends(g)
    return now


@njit_norefcount
def first_end(g: Groups) -> float:
    """Find when the first flow ends; a group whose first ends later enters the heap only when it comes out."""
    c = g.counter
    while c["n_heap"] > 0:
        q = g.finish_heap[0]
        first: float = g.finish[q]
        if first == g.finish_key[q]:
            return first
        c["n_heap"] = heap_fix(
            g.finish_heap, c["n_heap"], g.finish_key, g.finish_place, q, first if first < np.inf else -1.0
        )
    return np.inf


@njit_norefcount
def find_ends(g: Groups) -> None:
    """Find when the first member ends of all groups that have changed."""
    c = g.counter
    for k in range(c["n_changed"]):
        q = g.changing[k]
        g.changed[q] = False
        g.finish[q] = np.inf
        if g.n_in_heap[q] > 0 and g.rate[q] > 0:
            left = max(g.end[g.member[g.first[q]]] - g.clock[q], 0.0)
            g.finish[q] = g.since[q] + left / (g.rate[q] * g.unit)
        if g.finish[q] < np.inf and (g.finish_place[q] < 0 or g.finish[q] < g.finish_key[q]):
            c["n_heap"] = heap_fix(g.finish_heap, c["n_heap"], g.finish_key, g.finish_place, q, g.finish[q])
    c["n_changed"] = 0


@njit_norefcount
def regroup(t: FlowState, g: Groups, now: float) -> None:
    """Let flows that end leave and those that begin enter, where they are not the same, and find the rates."""
    n_new = _go_on(t, g, now)
    n_gone = 0
    for k in range(g.counter["n_ended"]):
        if g.has_ended[g.ended[k]]:
            n_gone += 1
    if n_new + n_gone > 0:
        many = (n_new + n_gone) * MANY > g.counter["n_active"]
        for k in range(g.counter["n_ended"]):
            s = g.ended[k]
            if g.has_ended[s]:
                g.has_ended[s] = False
                use_no_more(g, s)
                leave_group(g, s, now)
        for k in range(t.counter["n_beginning"]):
            s = t.beginning[k]
            if s >= 0:
                _enter(t, g, s, now, many)
        if many:
            fill_all(g, now)
        else:
            settle(g, now)
    find_ends(g)


@njit_norefcount
def _go_on(t: FlowState, g: Groups, now: float) -> int:
    """Let flows that end and begin again with the same resources go on, which changes no rate; count the others."""
    n_new = 0
    for k in range(t.counter["n_beginning"]):
        s = t.beginning[k]
        if g.has_ended[s] and g.low[s] == first_link(t, s) and g.high[s] == end_link(t, s):
            g.has_ended[s] = False
            tick(g, g.group[s], now)
            put_in(g, g.group[s], s, t.flow[s]["work"])
            t.beginning[k] = -1
        else:
            n_new += 1
    return n_new


@njit_norefcount
def _enter(t: FlowState, g: Groups, s: int, now: float, many: bool) -> None:
    """Bring flow `s` in; where many come, groups are made anew."""
    use(g, s, first_link(t, s), end_link(t, s))
    if many:
        g.end[s] = t.flow[s]["work"]
    else:
        join(g, s, now, t.flow[s]["work"])
