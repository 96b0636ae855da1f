"""Sending: a wire tries its next message, pays the overhead, sends the data."""

from __future__ import annotations

from typing import Any

from commsim.core.jit import njit_norefcount

from .flow_state import DATA, IDLE, N_EVENTS, N_WAITING, OVERHEAD
from .phases_kernel import begin, release, try_later
from .queue_kernel import push_event
from .receiving_kernel import arrive


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
