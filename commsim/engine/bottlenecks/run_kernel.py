"""The event engine's loop with groups: what ends and begins at one time, then the rates, then the next ends."""

from __future__ import annotations

import numpy as np

from commsim.core.jit import long_loops, njit_norefcount
from commsim.engine.flow_kernel import prepare, push, take_events
from commsim.engine.flow_state import FlowState
from commsim.engine.users_kernel import end_link, first_link

from .fill_kernel import fill_all
from .group_state import BLOCK_BITS, Groups
from .groups_kernel import join, leave_group, put_in, take_out, tick, use, use_no_more
from .levels_kernel import settle

# Part of the flows, one in so many, that enter and leave at once from which on all rates are found from the beginning.
MANY = 8


@long_loops
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
    while True:
        now = end_flows(t, g)
        if now == np.inf:
            break
        take_events(t, now)
        regroup(t, g, now)


@njit_norefcount
def end_flows(t: FlowState, g: Groups) -> float:
    """Find when something happens next, and end all phases that end then; the flows stay in their groups so far."""
    now = first_end(g)
    if t.counter["n_waiting"] > 0:
        now = min(now, t.event_time[0])
    t.counter["n_beginning"] = 0
    end_members(g, now)
    for k in range(g.counter["n_ended"]):
        push(t, g.ended[k] + len(t.connection))
    return now


@njit_norefcount
def first_end(g: Groups) -> float:
    """Find when the first flow ends, and the earliest end of each block of rows."""
    now, n = np.inf, g.counter["n_rows"]
    for b in range((n >> BLOCK_BITS) + 1):
        earliest = np.inf
        for i in range(b << BLOCK_BITS, min((b + 1) << BLOCK_BITS, n)):
            earliest = min(earliest, g.finish[i])
        g.earliest[b] = earliest
        now = min(now, earliest)
    return now


@njit_norefcount
def end_members(g: Groups, now: float) -> None:
    """Take the flows that end by time `now` out of their groups' heaps, and list them; blocks are looked through."""
    c = g.counter
    c["n_ended"] = 0
    for b in range((c["n_rows"] >> BLOCK_BITS) + 1 if now < np.inf else 0):
        for i in range(b << BLOCK_BITS, min((b + 1) << BLOCK_BITS, c["n_rows"]) if g.earliest[b] <= now else 0):
            while g.finish[i] <= now:
                s = g.member[g.first[g.resource[i]]]
                take_out(g, i, s)
                g.has_ended[s] = True
                g.ended[c["n_ended"]] = s
                c["n_ended"] += 1
                find_end(g, i)


@njit_norefcount
def find_end(g: Groups, i: int) -> None:
    """Find when the first member of group `i` ends."""
    g.finish[i] = np.inf
    if g.n_in_heap[i] > 0 and g.rate[i] > 0:
        s = g.member[g.first[g.resource[i]]]
        left = max(g.end[s] - g.clock[i], 0.0)
        g.finish[i] = g.since[i] + left / (g.rate[i] * g.unit)


@njit_norefcount
def find_ends(g: Groups) -> None:
    """Find when the first member ends of all groups that have changed."""
    c = g.counter
    for k in range(c["n_changed"]):
        i = g.changing[k]
        g.changed[i] = False
        find_end(g, i)
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
