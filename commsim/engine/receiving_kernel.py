"""Receiving: a message arrives, is received, is reduced, and is complete."""

from __future__ import annotations

from typing import Any

from commsim.core.jit import njit_norefcount
from commsim.core.schedule import REDUCE

from .flow_state import IDLE, N_DONE, N_EVENTS, N_WAITING, RECEIVING, REDUCING
from .phases_kernel import begin, release
from .queue_kernel import push_event


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
