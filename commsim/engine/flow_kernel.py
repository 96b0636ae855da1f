"""The flow engine's event loop: phases of transfers start and finish, rates are shared max-min fair in between.

Phases of slots, and what is to be looked at before time goes on.

Sending: a wire tries its next message, pays the overhead, sends the data.

Receiving: a message arrives, is received, is reduced, and is complete.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from commsim.core.jit import njit_norefcount
from commsim.core.schedule import REDUCE

from .flow_state import (
    DATA,
    IDLE,
    N_BEGINNING,
    N_CHANGED,
    N_DIRTY,
    N_DONE,
    N_EVENTS,
    N_HEAP,
    N_WAITING,
    N_WORK,
    OVERHEAD,
    RECEIVING,
    REDUCING,
)
from .queue_kernel import heap_fix, pop_event, push_event
from .sharing_kernel import share_again
from .users_kernel import enter, leave, mark_broken


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


@njit_norefcount
def push(t: Any, what: int) -> None:
    """Put on the list of what is to be looked at: a wire to try, or n_wires + a slot whose phase has ended."""
    t.work[t.counter[N_WORK]] = what
    t.counter[N_WORK] += 1


@njit_norefcount
def try_later(t: Any, w: int) -> None:
    """Look, before time goes on, whether wire `w` may send its next transfer."""
    if not t.trying[w]:
        t.trying[w] = True
        push(t, w)


@njit_norefcount
def begin(t: Any, s: int, phase: int, work: float) -> None:
    """Begin a phase of slot `s`; one that moves nothing, or uses nothing, ends at once."""
    t.slot[s]["phase"] = phase
    t.slot[s]["work"] = work
    if work == 0.0 or t.slot[s]["begin"] == t.slot[s]["end"]:
        push(t, s + len(t.wire))
    else:
        t.beginning[t.counter[N_BEGINNING]] = s
        t.counter[N_BEGINNING] += 1


@njit_norefcount
def release(t: Any, i: int, kind: int) -> None:
    """Tell the successors that wait for `kind` (0 sent, 1 complete) of transfer `i`."""
    for k in range(t.first[i], t.first[i + 1]):
        if t.successor[k] % 2 == kind:
            j = t.successor[k] // 2
            t.waiting[j] -= 1
            if t.waiting[j] == 0:
                try_later(t, t.wire_of[j])


@njit_norefcount
def try_to_send(t: Any, w: int, now: float) -> None:
    """Send the next transfer of wire `w`, if nothing is in its way."""
    t.trying[w] = False
    t.counter[N_EVENTS] += 1
    i = t.wire[w]["upcoming"]
    if i >= 0 and t.slot[w]["phase"] == IDLE and now >= t.wire[w]["ready"] and t.waiting[i] == 0:
        t.start[i] = now
        t.slot[w]["transfer"] = i
        k = t.wire[w]["next"] + 1  # looked up early: it is far away in memory
        t.wire[w]["following"] = t.queue[k] if k < t.wire[w]["end"] else -1
        work = t.wire[w]["overhead_work"]
        if work > 0.0:
            begin(t, w, OVERHEAD, work)
        else:
            begin(t, w, DATA, t.n_bytes[i])


@njit_norefcount
def end_sending(t: Any, w: int, now: float) -> None:
    """Go from overhead to data, or from data to what may follow it."""
    c = t.counter
    c[N_EVENTS] += 1
    i = t.slot[w]["transfer"]
    if t.slot[w]["phase"] == OVERHEAD:
        begin(t, w, DATA, t.n_bytes[i])
        return
    t.slot[w]["phase"] = IDLE
    t.sent[i] = now
    t.wire[w]["next"] += 1
    t.wire[w]["upcoming"] = t.wire[w]["following"]
    try_later(t, w)
    release(t, i, 0)
    if t.wire[w]["latency"] == 0.0:
        arrive(t, w, now)
    elif t.wire[w]["arrived"] == t.wire[w]["next"] - 1:  # else an earlier one is on its way, and will call this one
        c[N_WAITING] = push_event(t.event_time, t.event_code, c[N_WAITING], now + t.wire[w]["latency"], 2 * w + 1)


@njit_norefcount
def arrive(t: Any, w: int, now: float) -> None:
    """Take what has arrived over wire `w`, and wait for the next that is on its way."""
    c = t.counter
    c[N_EVENTS] += 1
    t.wire[w]["arrived"] += 1
    k = t.wire[w]["arrived"]
    if k < t.wire[w]["next"] and t.wire[w]["latency"] > 0.0:
        then = t.sent[t.queue[k]] + t.wire[w]["latency"]
        c[N_WAITING] = push_event(t.event_time, t.event_code, c[N_WAITING], then, 2 * w + 1)
    receive(t, w, now)


@njit_norefcount
def receive(t: Any, w: int, now: float) -> None:
    """Receive what has arrived over wire `w`, one after the other; it is complete where that costs nothing."""
    s = len(t.wire) + w
    while t.slot[s]["phase"] == IDLE and t.wire[w]["receive"] < t.wire[w]["arrived"]:
        i = t.queue[t.wire[w]["receive"]]
        t.slot[s]["transfer"] = i
        work = t.wire[w]["receive_work"]
        if work > 0.0:
            begin(t, s, RECEIVING, work)
        elif t.op[i] == REDUCE and t.wire[w]["reduces"]:
            begin(t, s, REDUCING, t.n_bytes[i])
        else:
            _complete(t, w, i, now)


@njit_norefcount
def end_receiving(t: Any, s: int, now: float) -> None:
    """Go from receiving to reducing, or on to the next transfer."""
    t.counter[N_EVENTS] += 1
    w = s - len(t.wire)
    i = t.slot[s]["transfer"]
    if t.slot[s]["phase"] == RECEIVING and t.op[i] == REDUCE and t.wire[w]["reduces"]:
        begin(t, s, REDUCING, t.n_bytes[i])
    else:
        t.slot[s]["phase"] = IDLE
        _complete(t, w, i, now)
        receive(t, w, now)


@njit_norefcount
def _complete(t: Any, w: int, i: int, now: float) -> None:
    t.done[i] = now
    t.wire[w]["receive"] += 1
    t.counter[N_DONE] += 1
    release(t, i, 1)
