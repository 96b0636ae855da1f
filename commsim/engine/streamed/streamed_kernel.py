"""The event loop of rings: as :mod:`commsim.engine.flow_kernel`, but what is next follows from counts of messages.

Of a connection's row, ``upcoming`` is the ring connection that it sends, ``receive`` the ring connection that it
receives, and ``arrived`` counts the messages that have arrived and are not yet received.

What happens to a message on uncontended ring connections is known as soon as it comes to the first of them, so it goes
over all of them at once, and the next event is that it comes to a ring connection that may have to share.
"""

from __future__ import annotations

import numpy as np

from commsim.core.jit import njit_norefcount
from commsim.engine.flow_kernel import add_event, allocate, begin, begin_batch, try_later
from commsim.engine.flow_state import DATA, IDLE, OVERHEAD, RECEIVING, REDUCING, FlowState
from commsim.engine.queue_kernel import pop_event

from .ring_connections import RingConnections


@njit_norefcount
def stream(t: FlowState, q: RingConnections) -> None:
    """Simulate all ring connections; fills their ``begun_at``, ``sent_at`` and ``done_at``.

    All that happens at one time is one batch, as in :func:`commsim.engine.flow_kernel.simulate`.

    Parameters
    ----------
    t : FlowState
        State of the connections and of what they share; has no transfers, and room for one event more than connections
        per ring connection.
    q : RingConnections
        What the connections carry.
    """
    c = t.counter
    n_connections = len(t.connection)
    _set_out(t, q)
    for w in range(n_connections):
        add_event(t, t.connection[w]["ready"], 2 * w)
    while c["n_heap"] > 0 or c["n_waiting"] > 0:
        now = begin_batch(t, np.inf, False)
        if now == np.inf:
            break
        while c["n_waiting"] > 0 and t.event_time[0] <= now:
            code = t.event_code[0]
            c["n_waiting"] = pop_event(t.event_time, t.event_code, c["n_waiting"])
            if code % 2 == 0:
                try_later(t, code // 2)
            else:
                _arrive(t, q, code // 2, now)
        while c["n_work"] > 0:
            c["n_work"] -= 1
            subject = t.work[c["n_work"]]
            if subject < n_connections:
                _try(t, q, subject, now)
            elif subject < 2 * n_connections:
                _end_sending(t, q, subject - n_connections, now)
            else:
                _end_receiving(t, q, subject - n_connections, now)
        allocate(t, now, False)


@njit_norefcount
def _try(t: FlowState, q: RingConnections, w: int, now: float) -> None:
    """Send the next message of connection `w`, if nothing is in its way."""
    t.trying[w] = False
    t.counter["n_events"] += 1
    k = t.connection[w]["upcoming"]
    if k < 0 or t.flow[w]["phase"] != IDLE or now < t.connection[w]["ready"]:
        return
    if q.row[k]["sent"] == 0:
        if q.row[k]["waiting"] > 0:
            return
        q.row[k]["begun_at"] = now
    elif q.row[k]["supplied"] < q.row[k]["sent"]:
        return
    work = t.connection[w]["overhead_work"]
    if work > 0.0:
        begin(t, w, OVERHEAD, work)
    else:
        begin(t, w, DATA, q.row[k]["n_bytes"])


@njit_norefcount
def _end_sending(t: FlowState, q: RingConnections, w: int, now: float) -> None:
    """Go from overhead to data, or from data to what may follow it."""
    c = t.counter
    c["n_events"] += 1
    k = t.connection[w]["upcoming"]
    if t.flow[w]["phase"] == OVERHEAD:
        begin(t, w, DATA, q.row[k]["n_bytes"])
        return
    t.flow[w]["phase"] = IDLE
    q.row[k]["sent"] += 1
    if q.row[k]["sent"] == q.row[k]["n_rounds"]:
        q.row[k]["sent_at"] = now
        _release(t, q, k, 0)
    beside = q.row[k]["beside"]
    t.connection[w]["upcoming"] = beside if q.row[beside]["sent"] < q.row[beside]["n_rounds"] else q.row[k]["next"]
    try_later(t, w)
    if t.connection[w]["latency"] == 0.0:
        _arrive(t, q, w, now)
    else:
        add_event(t, now + t.connection[w]["latency"], 2 * w + 1)


@njit_norefcount
def _arrive(t: FlowState, q: RingConnections, w: int, now: float) -> None:
    """Take a message that has arrived over connection `w`; an uncontended one's is complete."""
    t.counter["n_events"] += 1
    k = t.connection[w]["receive"]
    if q.row[k]["uncontended"]:
        _supply(t, q, q.row[k]["follower"])
    else:
        t.connection[w]["arrived"] += 1
        _receive(t, q, w, now)


@njit_norefcount
def _receive(t: FlowState, q: RingConnections, w: int, now: float) -> None:
    """Receive what has arrived over connection `w`, one after the other; it is complete where that costs nothing."""
    s = len(t.connection) + w
    while t.flow[s]["phase"] == IDLE and t.connection[w]["arrived"] > 0:
        t.connection[w]["arrived"] -= 1
        k = t.connection[w]["receive"]
        work = t.connection[w]["receive_work"]
        if work > 0.0:
            begin(t, s, RECEIVING, work)
        elif t.connection[w]["reduces"] and q.run_reduces[q.row[k]["run"]]:
            begin(t, s, REDUCING, q.row[k]["n_bytes"])
        else:
            _complete(t, q, w, now)


@njit_norefcount
def _end_receiving(t: FlowState, q: RingConnections, s: int, now: float) -> None:
    """Go from receiving to reducing, or on to the next message."""
    t.counter["n_events"] += 1
    w = s - len(t.connection)
    k = t.connection[w]["receive"]
    if t.flow[s]["phase"] == RECEIVING and t.connection[w]["reduces"] and q.run_reduces[q.row[k]["run"]]:
        begin(t, s, REDUCING, q.row[k]["n_bytes"])
    else:
        t.flow[s]["phase"] = IDLE
        _complete(t, q, w, now)
        _receive(t, q, w, now)


@njit_norefcount
def _complete(t: FlowState, q: RingConnections, w: int, now: float) -> None:
    """Hand a complete message on, and let go what has waited for it."""
    k = t.connection[w]["receive"]
    _count(t, q, k)
    _hand_on(t, q, k, now, now)
    if q.row[k]["done"] == q.row[k]["n_rounds"]:
        q.row[k]["done_at"] = now
        _release(t, q, k, 1)
    beside = q.row[k]["beside"]
    t.connection[w]["receive"] = beside if q.row[beside]["done"] < q.row[beside]["n_rounds"] else q.row[k]["next"]


@njit_norefcount
def _count(t: FlowState, q: RingConnections, k: int) -> None:
    """Count a message of ring connection `k` as complete."""
    t.counter["n_done"] += 1
    q.row[k]["done"] += 1
    if q.row[k]["done"] == q.run_end[q.row[k]["run"]]:
        q.row[k]["run"] += 1


@njit_norefcount
def _supply(t: FlowState, q: RingConnections, k: int) -> None:
    """Count a message that has come to where ring connection `k` starts, and look whether it may leave."""
    q.row[k]["supplied"] += 1
    if q.row[k]["supplied"] == q.row[k]["sent"]:
        try_later(t, q.row[k]["connection"])


@njit_norefcount
def _set_out(t: FlowState, q: RingConnections) -> None:
    """Send the first messages of uncontended ring connections, those first that must not be overtaken."""
    for k in range(len(q.row)):
        before = q.row[k]["feeder"]
        while not q.row[k]["uncontended"] and q.row[before]["uncontended"]:
            ready = t.connection[q.row[before]["connection"]]["ready"]
            _hand_on(t, q, before, _pass_on(t, q, before, ready), -1.0)
            before = q.row[before]["feeder"]


@njit_norefcount
def _hand_on(t: FlowState, q: RingConnections, k: int, then: float, now: float) -> None:
    """Give a message, complete on ring connection `k` at `then`, to the followers, up to one that may have to share."""
    follower = q.row[k]["follower"]
    while q.row[follower]["uncontended"] and q.row[follower]["sent"] < q.row[follower]["n_rounds"]:
        k = follower
        then = _pass_on(t, q, k, then)
        follower = q.row[k]["follower"]
    if q.row[follower]["uncontended"]:
        return
    if then == now:
        _supply(t, q, follower)
    else:
        add_event(t, then, 2 * q.row[k]["connection"] + 1)


@njit_norefcount
def _pass_on(t: FlowState, q: RingConnections, k: int, since: float) -> float:
    """Send a message over the uncontended ring connection `k`, where it is `since` then; return when it is complete.

    The sums are those of the event engine, term by term, so that they round alike.
    """
    t.counter["n_events"] += 4  # as many as it is elsewhere
    gone = max(since, q.row[k]["free_at"]) + q.row[k]["overhead"] + q.row[k]["send"]
    q.row[k]["free_at"] = gone
    q.row[k]["sent"] += 1
    complete: float = max(gone + t.connection[q.row[k]["connection"]]["latency"], q.row[k]["done_at"])
    if q.run_reduces[q.row[k]["run"]]:
        complete += q.row[k]["reduce"]
    q.row[k]["done_at"] = complete
    _count(t, q, k)
    return complete


@njit_norefcount
def _release(t: FlowState, q: RingConnections, k: int, kind: int) -> None:
    """Tell those that wait until the last message of ring connection `k` is sent (`kind` 0) or complete (1)."""
    for i in range(q.first[k], q.first[k + 1]):
        if q.after[i] % 2 == kind:
            waits = q.after[i] // 2
            q.row[waits]["waiting"] -= 1
            if q.row[waits]["waiting"] == 0:
                try_later(t, q.row[waits]["connection"])
