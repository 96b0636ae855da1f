"""Max-min fair sharing, again only where something changed.

A slot's *level* is its rate per weight. Progressive filling raises all levels together until a resource is full and
freezes the slots that use it, and so on. So the rates below a level do not depend on what happens above it: when slots
leave, only levels at or above theirs can change; when a slot enters, only levels at or above the least that it can
get, which is the smallest capacity per weight among its resources. All lower levels stay.

References
----------
Bertsekas and Gallager, "Data Networks", 2nd ed., 1992, section 6.5.2 (progressive filling).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel

from .flow_state import OVERHEAD, RECEIVING, REDUCING
from .queue_kernel import pop_event, push_event

TIE = 1.0 + 1e-12  # levels this close are one level: they differ by rounding only
SLACK = 1.0 - 1e-9  # a little more is looked at than need be, so that rounding cannot hide a slot
NEW = -1.0  # level of a slot that has just entered
LAST = 2**31 - 1
FROZEN, WAITING, OPEN = range(3)
Table = NDArray[Any]


@kernel
def entries_of(slot: Table, s: int) -> tuple[int, int]:
    """Range of the entries that the slot uses in its phase."""
    phase = slot[s]["phase"]
    if phase == OVERHEAD:
        return slot[s]["begin"], slot[s]["port"]
    if phase == RECEIVING:
        return slot[s]["begin"], slot[s]["end"] - 1
    if phase == REDUCING:
        return slot[s]["end"] - 1, slot[s]["end"]
    return slot[s]["begin"], slot[s]["end"]


@kernel
def enter(slot: Table, entry: Table, resource: Table, s: int, dirty: NDArray[np.int32], n_dirty: int) -> int:
    """Put slot `s` on the lists of its resources, and mark these; return how many are marked."""
    slot[s]["level"] = NEW
    begin, end = entries_of(slot, s)
    for e in range(begin, end):
        r = entry[e]["resource"]
        head = resource[r]["head"]
        entry[e]["next"] = head
        entry[e]["previous"] = -1
        if head >= 0:
            entry[head]["previous"] = e
        resource[r]["head"] = e
        resource[r]["users"] += slot[s]["weight"] * entry[e]["share"]
        if not resource[r]["dirty"]:
            resource[r]["dirty"] = True
            dirty[n_dirty] = r
            n_dirty += 1
    return n_dirty


@kernel
def leave(slot: Table, entry: Table, resource: Table, s: int, dirty: NDArray[np.int32], n_dirty: int) -> int:
    """Take slot `s` off the lists of its resources, and mark these; return how many are marked."""
    begin, end = entries_of(slot, s)
    for e in range(begin, end):
        r, after, before = entry[e]["resource"], entry[e]["next"], entry[e]["previous"]
        if before >= 0:
            entry[before]["next"] = after
        else:
            resource[r]["head"] = after
        if after >= 0:
            entry[after]["previous"] = before
        if resource[r]["head"] >= 0:
            resource[r]["users"] -= slot[s]["weight"] * entry[e]["share"]
        else:
            resource[r]["users"] = 0.0
        if not resource[r]["dirty"]:
            resource[r]["dirty"] = True
            dirty[n_dirty] = r
            n_dirty += 1
    return n_dirty


@kernel
def _least_level(slot: Table, entry: Table, resource: Table, s: int) -> float:
    """Find the least level that slot `s` can get: its smallest capacity per weight of all that use the resource."""
    least = np.inf
    begin, end = entries_of(slot, s)
    for e in range(begin, end):
        r = entry[e]["resource"]
        least = min(least, resource[r]["capacity"] / resource[r]["users"])
    return least


@kernel
def _is_alone(slot: Table, entry: Table, resource: Table, s: int) -> bool:
    """Whether slot `s` shares none of its resources."""
    begin, end = entries_of(slot, s)
    for e in range(begin, end):  # noqa: SIM110 - Numba compiles no generator expressions
        if resource[entry[e]["resource"]]["head"] != e or entry[e]["next"] >= 0:
            return False
    return True


@kernel
def share_again(
    tables: tuple[Table, Table, Table],
    lists: tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]],
    scratch: tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64], NDArray[np.int64]],
    lowest: float,
    now: float,
    solve: int,
    several_priorities: bool,
) -> int:
    """Give the slots near the marked resources their new levels, and bring their work up to date.

    Parameters
    ----------
    tables : (slot, entry, resource)
        Tables of flow_state, modified in place.
    lists : (int32[n], int32[m], int32[n_slots])
        Marked resources, slots that have just entered, and (written) slots whose level changed.
    scratch : (int32[n_slots], int32[n_resources], float64[n_resources], int64[n_resources])
        Workspace: members and resources of a component, and a heap of resources.
    lowest : float
        Least level of the slots that have just left.
    now : float, s
        Time.
    solve : int
        Number of this solve, different each time.
    several_priorities : bool
        Whether classes of priority must be filled one after the other; then every level may change.

    Returns
    -------
    int
        Slots whose level changed, at the start of ``lists[2]``.
    """
    slot, entry, resource = tables
    dirty, entered, changed = lists
    members, reached = scratch[0], scratch[1]
    n_changed = 0
    for s in entered:
        least = _least_level(slot, entry, resource, s)
        if _is_alone(slot, entry, resource, s):
            slot[s]["level"] = least
            slot[s]["since"] = now
            changed[n_changed] = s
            n_changed += 1
            begin, end = entries_of(slot, s)
            for e in range(begin, end):
                resource[entry[e]["resource"]]["component"] = solve
        else:
            lowest = min(lowest, least)
    lowest = 0.0 if several_priorities else lowest * SLACK
    for r in dirty:
        resource[r]["dirty"] = False
        head = resource[r]["head"]
        if head < 0 or NEW != slot[entry[head]["slot"]]["level"] < lowest:
            continue  # lists are in falling order of level: nobody here can change
        if resource[r]["component"] != solve:
            n_members, n_reached = _component(tables, r, members, reached, lowest, solve)
            while _open_class(tables, members[:n_members], reached[:n_reached]):
                n_changed = _fill(tables, reached[:n_reached], scratch[2], scratch[3], now, changed, n_changed)
    return n_changed


@kernel
def _component(
    tables: tuple[Table, Table, Table],
    seed: int,
    members: NDArray[np.int32],
    reached: NDArray[np.int32],
    lowest: float,
    solve: int,
) -> tuple[int, int]:
    """Collect what is joined to resource `seed` through slots whose level is at least `lowest`.

    Returns
    -------
    n_members, n_reached : int
        Slots, at the start of `members`, and resources, at the start of `reached`, with ``free`` set to what the
        slots below `lowest` leave over.
    """
    slot, entry, resource = tables
    n_members = 0
    n_reached = 1
    reached[0] = seed
    resource[seed]["component"] = solve
    k = 0
    while k < n_reached:
        r = reached[k]
        k += 1
        # What the slots below leave over is added up in whole units of 2^-61 of the capacity, rounded up to a power of
        # two: sums of floats would depend on the order of the list, and that on the order of the jobs.
        unit = math.ldexp(1.0, math.frexp(resource[r]["capacity"])[1] - 61)
        taken = 0
        e = resource[r]["head"]
        while e >= 0:
            s = entry[e]["slot"]
            if NEW != slot[s]["level"] < lowest:
                taken += int(slot[s]["level"] * slot[s]["weight"] * entry[e]["share"] / unit)
            elif slot[s]["component"] != solve:
                slot[s]["component"] = solve
                slot[s]["state"] = WAITING
                members[n_members] = s
                n_members += 1
                begin, end = entries_of(slot, s)
                for other in range(begin, end):
                    q = entry[other]["resource"]
                    if resource[q]["component"] != solve:
                        resource[q]["component"] = solve
                        reached[n_reached] = q
                        n_reached += 1
            e = entry[e]["next"]
        resource[r]["free"] = max(resource[r]["capacity"] - taken * unit, 0.0)
    return n_members, n_reached


@kernel
def _open_class(tables: tuple[Table, Table, Table], members: NDArray[np.int32], reached: NDArray[np.int32]) -> int:
    """Open the levels of the waiting slots that go first, add up their demand on each resource, and count them."""
    slot, entry, resource = tables
    for r in reached:
        resource[r]["demand"] = 0.0
        resource[r]["n_open"] = 0
    first = LAST
    for s in members:
        if slot[s]["state"] == WAITING:
            first = min(first, slot[s]["priority"])
    n_open = 0
    for s in members:
        if slot[s]["state"] == WAITING and slot[s]["priority"] == first:
            slot[s]["state"] = OPEN
            n_open += 1
            begin, end = entries_of(slot, s)
            for e in range(begin, end):
                resource[entry[e]["resource"]]["demand"] += slot[s]["weight"] * entry[e]["share"]
                resource[entry[e]["resource"]]["n_open"] += 1
    return n_open


@kernel
def _to_front(entry: Table, resource: Table, r: int, e: int) -> None:
    """Move entry `e` to the front of the list of resource `r`."""
    head, after, before = resource[r]["head"], entry[e]["next"], entry[e]["previous"]
    if head == e:
        return
    entry[before]["next"] = after
    if after >= 0:
        entry[after]["previous"] = before
    entry[e]["next"], entry[e]["previous"] = head, -1
    entry[head]["previous"] = e
    resource[r]["head"] = e


@kernel
def _fill(
    tables: tuple[Table, Table, Table],
    reached: NDArray[np.int32],
    full_at: NDArray[np.float64],
    which: NDArray[np.int64],
    now: float,
    changed: NDArray[np.int32],
    n_changed: int,
) -> int:
    """Raise the levels of all open slots together, freezing those that use a resource when it is full.

    The heap (`full_at`, `which`) says at which level each resource is full. Freezing a slot can only raise that
    level for its other resources, so an entry of the heap is a lower bound, looked at again when it comes out.

    Levels are frozen in rising order, each at the front of its lists, before the lower ones that were kept: so lists
    stay in falling order of level, up to ties.
    """
    slot, entry, resource = tables
    n_heap = 0
    for r in reached:
        if resource[r]["n_open"] > 0:
            n_heap = push_event(full_at, which, n_heap, resource[r]["free"] / resource[r]["demand"], r)
    level = 0.0
    while n_heap:
        bound = full_at[0]
        r = which[0]
        n_heap = pop_event(full_at, which, n_heap)
        if resource[r]["n_open"] == 0:
            continue
        full = resource[r]["free"] / resource[r]["demand"]
        if full > bound * TIE and n_heap and full > full_at[0]:
            n_heap = push_event(full_at, which, n_heap, full, r)
            continue
        level = full if full > level * TIE else level
        e = resource[r]["head"]
        while e >= 0:
            s = entry[e]["slot"]
            e = entry[e]["next"]
            if slot[s]["state"] == OPEN:
                slot[s]["state"] = FROZEN
                begin, end = entries_of(slot, s)
                for other in range(begin, end):
                    q = entry[other]["resource"]
                    _to_front(entry, resource, q, other)
                    used = slot[s]["weight"] * entry[other]["share"]
                    resource[q]["free"] = max(resource[q]["free"] - level * used, 0.0)
                    resource[q]["demand"] -= used
                    resource[q]["n_open"] -= 1
                old = slot[s]["level"]
                if old == NEW or level > old * TIE or level * TIE < old:
                    if old != NEW:
                        slot[s]["work"] = max(slot[s]["work"] - old * slot[s]["weight"] * (now - slot[s]["since"]), 0.0)
                    slot[s]["level"] = level
                    slot[s]["since"] = now
                    changed[n_changed] = s
                    n_changed += 1
    return n_changed
