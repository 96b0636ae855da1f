"""The flow engine's event loop: phases of transfers start and finish, rates are shared max-min fair in between."""

from __future__ import annotations

from typing import Any

import numpy as np

from commsim.core.jit import njit_norefcount

from .flow_state import N_BEGINNING, N_CHANGED, N_DIRTY, N_HEAP, N_WAITING, N_WORK
from .phases_kernel import push, try_later
from .queue_kernel import heap_fix, pop_event, push_event
from .receiving_kernel import arrive, end_receiving
from .sending_kernel import end_sending, try_to_send
from .sharing.representative_kernel import mark_broken
from .sharing.sharing_kernel import share_again
from .sharing.users_kernel import enter, leave


@njit_norefcount
def simulate(t: Any, several_priorities: bool) -> None:
    """Play all transfers; fills ``t.start``, ``t.sent`` and ``t.done``.

    All that happens at one time is one batch: what ends, what that allows to begin, and then one new allocation of
    rates, so the order in which equal-time events were inserted cannot matter.

    Parameters
    ----------
    t : Tables
        All state. Afterwards the counters say how many transfers are complete (fewer than all: a deadlock), and how
        often a phase started or ended.
    several_priorities : bool
        Whether slots have different priorities.
    """
    c = t.counter
    n_wires = len(t.wire)
    for w in range(n_wires):
        t.wire[w]["upcoming"] = t.queue[t.wire[w]["next"]] if t.wire[w]["next"] < t.wire[w]["end"] else -1
        c[N_WAITING] = push_event(t.event_time, t.event_code, c[N_WAITING], t.wire[w]["ready"], 2 * w)
    while c[N_HEAP] > 0 or c[N_WAITING] > 0:
        now = begin_batch(t)
        if now == np.inf:
            break
        while c[N_WAITING] > 0 and t.event_time[0] <= now:
            code = t.event_code[0]
            c[N_WAITING] = pop_event(t.event_time, t.event_code, c[N_WAITING])
            if code % 2 == 0:
                try_later(t, code // 2)
            else:
                arrive(t, code // 2, now)
        while c[N_WORK] > 0:
            c[N_WORK] -= 1
            subject = t.work[c[N_WORK]]
            if subject < n_wires:
                try_to_send(t, subject, now)
            elif subject < 2 * n_wires:
                end_sending(t, subject - n_wires, now)
            else:
                end_receiving(t, subject - n_wires, now)
        allocate(t, now, several_priorities)


@njit_norefcount
def begin_batch(t: Any) -> float:
    """Find when something happens next, and let all phases that end then leave; infinity where nothing will."""
    c = t.counter
    now: float = first_finish(t)
    if c[N_WAITING] > 0:
        now = min(now, t.event_time[0])
    c[N_BEGINNING] = 0
    while now < np.inf and first_finish(t) <= now:
        s = t.finish_heap[0]
        c[N_HEAP] = heap_fix(t.finish_heap, c[N_HEAP], t.finish_key, t.finish_place, s, -1.0)
        leave(t, s)
        push(t, s + len(t.wire))
    return now


@njit_norefcount
def allocate(t: Any, now: float, several_priorities: bool) -> None:
    """Let the slots that begin enter, share again, and queue everybody whose rate has changed."""
    c = t.counter
    for k in range(c[N_BEGINNING]):
        enter(t, t.beginning[k])
    if c[N_BEGINNING] + c[N_DIRTY] == 0:
        return
    share_again(t, now, several_priorities)
    if t.stands[0]:
        mark_broken(t)
    for k in range(c[N_CHANGED]):
        s = t.changed[k]
        t.slot[s]["changed"] = False
        rate = t.slot[s]["level"] * t.slot[s]["weight"]
        t.finish[s] = now + t.slot[s]["work"] / rate if rate > 0.0 else np.inf
        if t.finish_place[s] < 0 or t.finish[s] < t.finish_key[s]:
            c[N_HEAP] = heap_fix(t.finish_heap, c[N_HEAP], t.finish_key, t.finish_place, s, t.finish[s])


@njit_norefcount
def first_finish(t: Any) -> float:
    """Find when the first slot finishes; the heap is told of one that finishes later only when it comes out."""
    c = t.counter
    while c[N_HEAP] > 0:
        s = t.finish_heap[0]
        first: float = t.finish[s]
        if first == t.finish_key[s]:
            return first
        heap_fix(t.finish_heap, c[N_HEAP], t.finish_key, t.finish_place, s, first)
    return np.inf
