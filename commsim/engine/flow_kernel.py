"""The flow engine's event loop: phases of transfers start and finish, rates are shared max-min fair in between."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel
from commsim.core.schedule import REDUCE

from .flow_state import DATA, IDLE, OVERHEAD, RECEIVING, REDUCING
from .queue_kernel import heap_fix, pop_event, push_event
from .sharing_kernel import enter, leave, share_again

TRY, ARRIVE, DONE, ENDED = range(4)
Table = NDArray[Any]


@kernel
def simulate(
    transfer: Table,
    wire: Table,
    slot: Table,
    entry: Table,
    resource: Table,
    queue: NDArray[np.int32],
    successors: tuple[NDArray[np.int64], NDArray[np.int32]],
    several_priorities: bool,
) -> tuple[int, int]:
    """Play all transfers; fills ``start``, ``sent`` and ``done`` of `transfer`.

    All that happens at one time is one batch: what ends, what that allows to begin, and then one new allocation of
    rates, so the order in which equal-time events were inserted cannot matter.

    Parameters
    ----------
    transfer, wire, slot, entry, resource : structured arrays
        Tables of flow_state, modified in place.
    queue : int32[n_transfers]
        Transfers by wire, in program order.
    successors : (int64[n_transfers + 1], int32[m])
        Rows of 2 * successor + (1 when it waits for completion, 0 when it waits for sending).
    several_priorities : bool
        Whether slots have different priorities.

    Returns
    -------
    n_done, n_events : int
        Completed transfers (fewer than all: a deadlock), and batches times what ended in them.
    """
    n_transfers, n_wires = transfer.shape[0], wire.shape[0]
    heap = np.empty(2 * n_wires, np.int32)  # slots by finish time
    n_heap = 0
    event_time = np.empty(n_transfers + n_wires + 1)  # arrivals and late starts
    event_code = np.empty(n_transfers + n_wires + 1, np.int64)
    n_events_waiting = 0
    work = np.empty(4 * n_transfers + 4 * n_wires + successors[1].shape[0] + 16, np.int64)  # 4 * id + what to do
    beginning = np.empty(2 * n_wires, np.int32)
    dirty = np.empty(resource.shape[0], np.int32)
    changed = np.empty(2 * n_wires, np.int32)
    tables = (slot, entry, resource)
    scratch = (
        np.empty(2 * n_wires, np.int32),
        np.empty(resource.shape[0], np.int32),
        np.empty(resource.shape[0]),
        np.empty(resource.shape[0], np.int64),
    )
    n_done = n_events = n_batches = 0
    for w in range(n_wires):
        n_events_waiting = push_event(event_time, event_code, n_events_waiting, wire[w]["ready"], 4 * w + TRY)

    while n_heap or n_events_waiting:
        now = slot[heap[0]]["finish"] if n_heap else np.inf
        if n_events_waiting:
            now = min(now, event_time[0])
        if now == np.inf:
            break
        n_work = n_beginning = n_dirty = 0
        lowest = np.inf  # rates below this level stay as they are
        while n_heap and slot[heap[0]]["finish"] <= now:
            s = heap[0]
            n_heap = heap_fix(heap, n_heap, slot, s, -1.0)
            lowest = min(lowest, slot[s]["level"])
            n_dirty = leave(slot, entry, resource, s, dirty, n_dirty)
            work[n_work] = 4 * s + ENDED
            n_work += 1
        while n_events_waiting and event_time[0] <= now:
            work[n_work] = event_code[0]
            n_work += 1
            n_events_waiting = pop_event(event_time, event_code, n_events_waiting)

        while n_work:
            n_work -= 1
            subject, what = work[n_work] // 4, work[n_work] % 4
            n_events += 1
            s = -1  # a slot that begins a phase
            phase = IDLE
            if what == TRY:
                w = subject
                k = wire[w]["next"]
                if slot[w]["phase"] == IDLE and k < wire[w]["end"] and now >= wire[w]["ready"]:
                    i = queue[k]
                    if transfer[i]["waiting"] == 0:
                        transfer[i]["start"] = now
                        slot[w]["transfer"] = i
                        s, phase = w, OVERHEAD
            elif what == ENDED and subject < n_wires:
                w = subject
                if slot[w]["phase"] == OVERHEAD:
                    s, phase = w, DATA
                else:
                    i = slot[w]["transfer"]
                    slot[w]["phase"] = IDLE
                    transfer[i]["sent"] = now
                    wire[w]["next"] += 1
                    work[n_work] = 4 * w + TRY
                    n_work = _release(transfer, successors, i, 0, work, n_work + 1)
                    if wire[w]["latency"] > 0.0:
                        n_events_waiting = push_event(
                            event_time, event_code, n_events_waiting, now + wire[w]["latency"], 4 * w + ARRIVE
                        )
                    else:
                        work[n_work] = 4 * w + ARRIVE
                        n_work += 1
            elif what == ENDED:
                w = subject - n_wires
                i = slot[subject]["transfer"]
                if slot[subject]["phase"] == RECEIVING and transfer[i]["op"] == REDUCE and wire[w]["reduces"]:
                    s, phase = subject, REDUCING
                else:
                    slot[subject]["phase"] = IDLE
                    wire[w]["receive"] += 1
                    work[n_work] = 4 * i + DONE
                    n_work += 1
                    s, phase = _receive_next(wire, slot, queue, w)
            elif what == ARRIVE:
                w = subject
                wire[w]["arrived"] += 1
                s, phase = _receive_next(wire, slot, queue, w)
            else:
                transfer[subject]["done"] = now
                n_done += 1
                n_work = _release(transfer, successors, subject, 1, work, n_work)
            if s >= 0:
                i = slot[s]["transfer"]
                slot[s]["phase"] = phase
                slot[s]["work"] = _work_of(transfer, wire, phase, i)
                if slot[s]["work"] == 0.0 or slot[s]["begin"] == slot[s]["end"]:
                    work[n_work] = 4 * s + ENDED
                    n_work += 1
                else:
                    beginning[n_beginning] = s
                    n_beginning += 1

        beginning[:n_beginning].sort()  # lists of resources keep a canonical order, so sums round the same way
        for s in beginning[:n_beginning]:
            n_dirty = enter(slot, entry, resource, s, dirty, n_dirty)
        n_batches += 1
        lists = (dirty[:n_dirty], beginning[:n_beginning], changed)
        n_changed = share_again(tables, lists, scratch, lowest, now, n_batches, several_priorities)
        for s in changed[:n_changed]:
            rate = slot[s]["level"] * slot[s]["weight"]
            n_heap = heap_fix(heap, n_heap, slot, s, now + slot[s]["work"] / rate if rate > 0.0 else np.inf)
    return n_done, n_events


@kernel
def _work_of(transfer: Table, wire: Table, phase: int, i: int) -> float:
    """Bytes that a phase of transfer `i` has to move through its resources."""
    work: float = transfer[i]["bytes"]
    if phase == OVERHEAD:
        work = wire[transfer[i]["wire"]]["overhead_work"]
    elif phase == RECEIVING:
        work = wire[transfer[i]["wire"]]["receive_work"]
    return work


@kernel
def _release(
    transfer: Table,
    successors: tuple[NDArray[np.int64], NDArray[np.int32]],
    i: int,
    kind: int,
    work: NDArray[np.int64],
    n_work: int,
) -> int:
    """Tell the successors that wait for `kind` (0 sent, 1 complete) of transfer `i`."""
    first, code = successors
    for k in range(first[i], first[i + 1]):
        if code[k] % 2 == kind:
            j = code[k] // 2
            transfer[j]["waiting"] -= 1
            if transfer[j]["waiting"] == 0:
                work[n_work] = 4 * transfer[j]["wire"] + TRY
                n_work += 1
    return n_work


@kernel
def _receive_next(wire: Table, slot: Table, queue: NDArray[np.int32], w: int) -> tuple[int, int]:
    """Choose what the receiving end of wire `w` does next: (slot, phase), or (-1, IDLE) when it is busy or done."""
    s = wire.shape[0] + w
    k = wire[w]["receive"]
    if slot[s]["phase"] != IDLE or k == wire[w]["arrived"]:
        return -1, IDLE
    slot[s]["transfer"] = queue[k]
    return s, RECEIVING
