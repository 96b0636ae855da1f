"""The event loop of rings: as :mod:`commsim.engine.flow_kernel`, but what is next follows from counts of messages.

Of a wire's row, ``upcoming`` is the leg that it sends, ``receive`` the leg that it receives, and ``arrived`` counts the
messages that have arrived and are not yet received.

What happens to a message on lone legs is known as soon as it comes to the first of them, so it goes over all of them at
once, and the next event is that it comes to a leg that may have to share.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from commsim.core.jit import njit_norefcount

from .flow_kernel import allocate, begin, begin_batch, try_later
from .flow_state import DATA, IDLE, N_DONE, N_EVENTS, N_HEAP, N_WAITING, N_WORK, OVERHEAD, RECEIVING, REDUCING
from .queue_kernel import pop_event, push_event


@njit_norefcount
def stream(t: Any, q: Any) -> None:
    """Play all legs; fills their ``begun_at``, ``sent_at`` and ``done_at``.

    All that happens at one time is one batch, as in :func:`commsim.engine.flow_kernel.simulate`.

    Parameters
    ----------
    t : Tables
        State of the wires and of what they share; has no transfers, and room for one event more than wires per leg.
    q : Legs
        What the wires carry.
    """
    c = t.counter
    n_wires = len(t.wire)
    _set_out(t, q)
    for w in range(n_wires):
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
                _arrive(t, q, code // 2, now)
        while c[N_WORK] > 0:
            c[N_WORK] -= 1
            subject = t.work[c[N_WORK]]
            if subject < n_wires:
                _try(t, q, subject, now)
            elif subject < 2 * n_wires:
                _end_sending(t, q, subject - n_wires, now)
            else:
                _end_receiving(t, q, subject - n_wires, now)
        allocate(t, now, False)


@njit_norefcount
def _try(t: Any, q: Any, w: int, now: float) -> None:
    """Send the next message of wire `w`, if nothing is in its way."""
    t.trying[w] = False
    t.counter[N_EVENTS] += 1
    k = t.wire[w]["upcoming"]
    if k < 0 or t.slot[w]["phase"] != IDLE or now < t.wire[w]["ready"]:
        return
    if q.leg[k]["sent"] == 0:
        if q.leg[k]["waiting"] > 0:
            return
        q.leg[k]["begun_at"] = now
    elif q.leg[k]["supplied"] < q.leg[k]["sent"]:
        return
    work = t.wire[w]["overhead_work"]
    if work > 0.0:
        begin(t, w, OVERHEAD, work)
    else:
        begin(t, w, DATA, q.leg[k]["n_bytes"])


@njit_norefcount
def _end_sending(t: Any, q: Any, w: int, now: float) -> None:
    """Go from overhead to data, or from data to what may follow it."""
    c = t.counter
    c[N_EVENTS] += 1
    k = t.wire[w]["upcoming"]
    if t.slot[w]["phase"] == OVERHEAD:
        begin(t, w, DATA, q.leg[k]["n_bytes"])
        return
    t.slot[w]["phase"] = IDLE
    q.leg[k]["sent"] += 1
    if q.leg[k]["sent"] == q.leg[k]["n_rounds"]:
        q.leg[k]["sent_at"] = now
        t.wire[w]["upcoming"] = q.leg[k]["next"]
        _release(t, q, k, 0)
    try_later(t, w)
    if t.wire[w]["latency"] == 0.0:
        _arrive(t, q, w, now)
    else:
        c[N_WAITING] = push_event(t.event_time, t.event_code, c[N_WAITING], now + t.wire[w]["latency"], 2 * w + 1)


@njit_norefcount
def _arrive(t: Any, q: Any, w: int, now: float) -> None:
    """Take a message that has arrived over wire `w`; a lone one's is complete."""
    t.counter[N_EVENTS] += 1
    k = t.wire[w]["receive"]
    if q.leg[k]["lone"]:
        _supply(t, q, q.leg[k]["follower"])
    else:
        t.wire[w]["arrived"] += 1
        _receive(t, q, w, now)


@njit_norefcount
def _receive(t: Any, q: Any, w: int, now: float) -> None:
    """Receive what has arrived over wire `w`, one after the other; it is complete where that costs nothing."""
    s = len(t.wire) + w
    while t.slot[s]["phase"] == IDLE and t.wire[w]["arrived"] > 0:
        t.wire[w]["arrived"] -= 1
        k = t.wire[w]["receive"]
        work = t.wire[w]["receive_work"]
        if work > 0.0:
            begin(t, s, RECEIVING, work)
        elif t.wire[w]["reduces"] and q.run_reduces[q.leg[k]["run"]]:
            begin(t, s, REDUCING, q.leg[k]["n_bytes"])
        else:
            _complete(t, q, w, now)


@njit_norefcount
def _end_receiving(t: Any, q: Any, s: int, now: float) -> None:
    """Go from receiving to reducing, or on to the next message."""
    t.counter[N_EVENTS] += 1
    w = s - len(t.wire)
    k = t.wire[w]["receive"]
    if t.slot[s]["phase"] == RECEIVING and t.wire[w]["reduces"] and q.run_reduces[q.leg[k]["run"]]:
        begin(t, s, REDUCING, q.leg[k]["n_bytes"])
    else:
        t.slot[s]["phase"] = IDLE
        _complete(t, q, w, now)
        _receive(t, q, w, now)


@njit_norefcount
def _complete(t: Any, q: Any, w: int, now: float) -> None:
    """Hand a complete message on, and let go what has waited for it."""
    k = t.wire[w]["receive"]
    _count(t, q, k)
    _hand_on(t, q, k, now, now)
    if q.leg[k]["done"] == q.leg[k]["n_rounds"]:
        q.leg[k]["done_at"] = now
        t.wire[w]["receive"] = q.leg[k]["next"]
        _release(t, q, k, 1)


@njit_norefcount
def _count(t: Any, q: Any, k: int) -> None:
    """Count a message of leg `k` as complete."""
    t.counter[N_DONE] += 1
    q.leg[k]["done"] += 1
    if q.leg[k]["done"] == q.run_end[q.leg[k]["run"]]:
        q.leg[k]["run"] += 1


@njit_norefcount
def _supply(t: Any, q: Any, k: int) -> None:
    """Count a message that has come to where leg `k` starts, and look whether it may leave."""
    q.leg[k]["supplied"] += 1
    if q.leg[k]["supplied"] == q.leg[k]["sent"]:
        try_later(t, q.leg[k]["wire"])


@njit_norefcount
def _set_out(t: Any, q: Any) -> None:
    """Send the first messages of lone legs; those go first that what comes behind must not overtake."""
    for k in range(len(q.leg)):
        before = q.leg[k]["feeder"]
        while not q.leg[k]["lone"] and q.leg[before]["lone"]:
            ready = t.wire[q.leg[before]["wire"]]["ready"]
            _hand_on(t, q, before, _pass_on(t, q, before, ready), -1.0)
            before = q.leg[before]["feeder"]


@njit_norefcount
def _hand_on(t: Any, q: Any, k: int, then: float, now: float) -> None:
    """Give a message that is complete on leg `k` at time `then` to the followers, up to one that may have to share."""
    c = t.counter
    follower = q.leg[k]["follower"]
    while q.leg[follower]["lone"] and q.leg[follower]["sent"] < q.leg[follower]["n_rounds"]:
        k = follower
        then = _pass_on(t, q, k, then)
        follower = q.leg[k]["follower"]
    if q.leg[follower]["lone"]:
        return
    if then == now:
        _supply(t, q, follower)
    else:
        c[N_WAITING] = push_event(t.event_time, t.event_code, c[N_WAITING], then, 2 * q.leg[k]["wire"] + 1)


@njit_norefcount
def _pass_on(t: Any, q: Any, k: int, since: float) -> float:
    """Send a message over the lone leg `k`, where it is `since` then; return when it is complete.

    The sums are those of the full engine, term by term, so that they round alike.
    """
    t.counter[N_EVENTS] += 4  # as many as it is elsewhere
    gone = max(since, q.leg[k]["free_at"]) + q.leg[k]["overhead"] + q.leg[k]["send"]
    q.leg[k]["free_at"] = gone
    q.leg[k]["sent"] += 1
    complete: float = max(gone + t.wire[q.leg[k]["wire"]]["latency"], q.leg[k]["done_at"])
    if q.run_reduces[q.leg[k]["run"]]:
        complete += q.leg[k]["reduce"]
    q.leg[k]["done_at"] = complete
    _count(t, q, k)
    return complete


@njit_norefcount
def _release(t: Any, q: Any, k: int, kind: int) -> None:
    """Tell the legs that wait until the last message of leg `k` is sent (`kind` 0) or complete (1)."""
    for i in range(q.first[k], q.first[k + 1]):
        if q.after[i] % 2 == kind:
            waits = q.after[i] // 2
            q.leg[waits]["waiting"] -= 1
            if q.leg[waits]["waiting"] == 0:
                try_later(t, q.leg[waits]["wire"])
