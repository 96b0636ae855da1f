"""The event engine's loop: phases of transfers start and finish, rates are shared max-min fair in between.

A connection tries its next message, pays the overhead, and sends the data; the message arrives, is received, is
reduced, and is complete.
"""

from __future__ import annotations

import numpy as np

from commsim.core.jit import njit_norefcount
from commsim.core.schedule import REDUCE

from .flow_state import (
    DATA,
    IDLE,
    OVERHEAD,
    RECEIVING,
    REDUCING,
    FlowState,
)
from .max_min_kernel import share_again
from .queue_kernel import heap_fix, pop_event, push_event
from .users_kernel import end_link, enter, first_link, leave, mark_broken


def simulate(t: FlowState, several_priorities: bool) -> None:
    """Simulate all transfers, by two kernels that flaps call, too; fills ``t.start``, ``t.sent`` and ``t.done``.

    All that happens at one time is one batch: what ends, what that allows to begin, and then one new allocation of
    rates, so the order in which equal-time events were inserted cannot matter.

    Parameters
    ----------
    t : FlowState
        All state. Afterwards the counters say how many transfers are complete (fewer than all: a deadlock), and how
        often a phase started or ended.
    several_priorities : bool
        Whether flows have different priorities.
    """
    prepare(t)
    go_on_until(t, several_priorities, np.inf)


@njit_norefcount
def prepare(t: FlowState) -> None:
    """Let every connection try its first message when both its ends have entered."""
    for w in range(len(t.connection)):
        t.connection[w]["upcoming"] = (
            t.queue[t.connection[w]["next"]] if t.connection[w]["next"] < t.connection[w]["end"] else -1
        )
        add_event(t, t.connection[w]["ready"], 2 * w)


@njit_norefcount
def go_on_until(t: FlowState, several_priorities: bool, until: float) -> None:
    """Simulate all that happens before time `until`; the arguments are those of :func:`simulate`."""
    c = t.counter
    while c["n_heap"] > 0 or c["n_waiting"] > 0:
        now = begin_batch(t, until, several_priorities)
        if now == np.inf:
            break
        take_events(t, now)
        allocate(t, now, several_priorities)


@njit_norefcount
def take_events(t: FlowState, now: float) -> None:
    """Handle the events that are due at time `now`, and all that follows from them at once."""
    c = t.counter
    n_connections = len(t.connection)
    while c["n_waiting"] > 0 and t.event_time[0] <= now:
        code = t.event_code[0]
        c["n_waiting"] = pop_event(t.event_time, t.event_code, c["n_waiting"])
        if code % 2 == 0:
            try_later(t, code // 2)
        else:
            arrive(t, code // 2, now)
    while c["n_work"] > 0:
        c["n_work"] -= 1
        subject = t.work[c["n_work"]]
        if subject < n_connections:
            try_to_send(t, subject, now)
        elif subject < 2 * n_connections:
            end_sending(t, subject - n_connections, now)
        else:
            end_receiving(t, subject - n_connections, now)


@njit_norefcount
def begin_batch(t: FlowState, until: float, several_priorities: bool) -> float:
    """Find when something happens next, and let all phases that end then leave.

    Parameters
    ----------
    t : FlowState
        All state.
    until : float, s
        Time before which something must happen; else nothing changes, and the answer is infinity.
    several_priorities : bool
        Whether flows have different priorities.
    """
    c = t.counter
    now: float = first_finish(t)
    if c["n_waiting"] > 0:
        now = min(now, t.event_time[0])
    c["n_beginning"] = 0
    if now >= until:
        return np.inf
    while now < np.inf and first_finish(t) <= now:
        s = t.finish_heap[0]
        c["n_heap"] = heap_fix(t.finish_heap, c["n_heap"], t.finish_key, t.finish_place, s, -1.0)
        leave(t, s, several_priorities)
        push(t, s + len(t.connection))
    return now


@njit_norefcount
def allocate(t: FlowState, now: float, several_priorities: bool) -> None:
    """Let the flows that begin enter, share again, and queue the ends of all whose rate has changed."""
    c = t.counter
    for k in range(c["n_beginning"]):
        enter(t, t.beginning[k])
    if c["n_beginning"] + c["n_dirty"] == 0:
        return
    share_again(t, now, several_priorities)
    if t.has_representatives[0]:
        mark_broken(t)
    for k in range(c["n_changed"]):
        s = t.changed[k]
        t.flow[s]["changed"] = False
        rate = t.flow[s]["fair_rate"] * t.flow[s]["weight"]
        t.finish[s] = now + t.flow[s]["work"] / rate if rate > 0.0 else np.inf
        if t.finish_place[s] < 0 or t.finish[s] < t.finish_key[s]:
            c["n_heap"] = heap_fix(t.finish_heap, c["n_heap"], t.finish_key, t.finish_place, s, t.finish[s])


@njit_norefcount
def first_finish(t: FlowState) -> float:
    """Find when the first flow finishes; one that finishes later enters the heap only when it comes out."""
    c = t.counter
    while c["n_heap"] > 0:
        s = t.finish_heap[0]
        first: float = t.finish[s]
        if first == t.finish_key[s]:
            return first
        heap_fix(t.finish_heap, c["n_heap"], t.finish_key, t.finish_place, s, first)
    return np.inf


@njit_norefcount
def push(t: FlowState, what: int) -> None:
    """Append to the work list: a connection to try, or n_connections + a flow whose phase has ended."""
    t.work[t.counter["n_work"]] = what
    t.counter["n_work"] += 1


@njit_norefcount
def add_event(t: FlowState, at: float, code: int) -> None:
    """Queue an event: 2 * connection to try it, and 1 more for an arrival over it."""
    t.counter["n_waiting"] = push_event(t.event_time, t.event_code, t.counter["n_waiting"], at, code)


@njit_norefcount
def try_later(t: FlowState, w: int) -> None:
    """Look, before time goes on, whether connection `w` may send its next transfer."""
    if not t.trying[w]:
        t.trying[w] = True
        push(t, w)


@njit_norefcount
def begin(t: FlowState, s: int, phase: int, work: float) -> None:
    """Begin a phase of flow `s`; one that moves nothing, or uses nothing, ends at once."""
    t.flow[s]["phase"] = phase
    t.flow[s]["work"] = work
    if work == 0.0 or first_link(t, s) == end_link(t, s):
        push(t, s + len(t.connection))
    else:
        t.beginning[t.counter["n_beginning"]] = s
        t.counter["n_beginning"] += 1


@njit_norefcount
def release(t: FlowState, i: int, kind: int) -> None:
    """Tell the successors that wait for `kind` (0 sent, 1 complete) of transfer `i`."""
    for k in range(t.first[i], t.first[i + 1]):
        if t.successor[k] % 2 == kind:
            j = t.successor[k] // 2
            t.waiting[j] -= 1
            if t.waiting[j] == 0:
                try_later(t, t.connection_of[j])


@njit_norefcount
def try_to_send(t: FlowState, w: int, now: float) -> None:
    """Send the next transfer of connection `w`, if nothing is in its way."""
    t.trying[w] = False
    t.counter["n_events"] += 1
    i = t.connection[w]["upcoming"]
    if i >= 0 and t.flow[w]["phase"] == IDLE and now >= t.connection[w]["ready"] and t.waiting[i] == 0:
        t.start[i] = now
        t.flow[w]["transfer"] = i
        k = t.connection[w]["next"] + 1  # looked up early: it is far away in memory
        t.connection[w]["following"] = t.queue[k] if k < t.connection[w]["end"] else -1
        work = t.connection[w]["overhead_work"]
        if work > 0.0:
            begin(t, w, OVERHEAD, work)
        else:
            begin(t, w, DATA, t.n_bytes[i])


@njit_norefcount
def end_sending(t: FlowState, w: int, now: float) -> None:
    """Go from overhead to data, or from data to what may follow it."""
    c = t.counter
    c["n_events"] += 1
    i = t.flow[w]["transfer"]
    if t.flow[w]["phase"] == OVERHEAD:
        begin(t, w, DATA, t.n_bytes[i])
        return
    t.flow[w]["phase"] = IDLE
    t.sent[i] = now
    t.connection[w]["next"] += 1
    t.connection[w]["upcoming"] = t.connection[w]["following"]
    try_later(t, w)
    release(t, i, 0)
    last = t.connection[w]["arrived"] == t.connection[w]["next"] - 1  # else one is on its way, and will call this one
    latency = flight_of(t, w, i)
    if last and latency == 0.0:
        arrive(t, w, now)
    elif last:
        add_event(t, now + latency, 2 * w + 1)


@njit_norefcount
def flight_of(t: FlowState, w: int, i: int) -> float:
    """How long transfer `i` of connection `w` is under way after it was sent."""
    latency: float = t.flight[i] if len(t.flight) > 0 else t.connection[w]["latency"]
    return latency


@njit_norefcount
def arrive(t: FlowState, w: int, now: float) -> None:
    """Take what has arrived over connection `w`, and wait for the next that is on its way."""
    c = t.counter
    c["n_events"] += 1
    t.connection[w]["arrived"] += 1
    k = t.connection[w]["arrived"]
    if k < t.connection[w]["next"]:
        then = t.sent[t.queue[k]] + flight_of(t, w, t.queue[k])
        add_event(t, max(now, then), 2 * w + 1)  # messages of a connection arrive in order
    receive(t, w, now)


@njit_norefcount
def receive(t: FlowState, w: int, now: float) -> None:
    """Receive what has arrived over connection `w`, one after the other; it is complete where that costs nothing."""
    s = len(t.connection) + w
    while t.flow[s]["phase"] == IDLE and t.connection[w]["receive"] < t.connection[w]["arrived"]:
        i = t.queue[t.connection[w]["receive"]]
        t.flow[s]["transfer"] = i
        work = t.connection[w]["receive_work"]
        if work > 0.0:
            begin(t, s, RECEIVING, work)
        elif t.op[i] == REDUCE and t.connection[w]["reduces"]:
            begin(t, s, REDUCING, t.n_bytes[i])
        else:
            _complete(t, w, i, now)


@njit_norefcount
def end_receiving(t: FlowState, s: int, now: float) -> None:
    """Go from receiving to reducing, or on to the next transfer."""
    t.counter["n_events"] += 1
    w = s - len(t.connection)
    i = t.flow[s]["transfer"]
    if t.flow[s]["phase"] == RECEIVING and t.op[i] == REDUCE and t.connection[w]["reduces"]:
        begin(t, s, REDUCING, t.n_bytes[i])
    else:
        t.flow[s]["phase"] = IDLE
        _complete(t, w, i, now)
        receive(t, w, now)


@njit_norefcount
def _complete(t: FlowState, w: int, i: int, now: float) -> None:
    t.done[i] = now
    t.connection[w]["receive"] += 1
    t.counter["n_done"] += 1
    release(t, i, 1)
