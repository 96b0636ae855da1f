"""All rates from the beginning: all are raised together, and the users of each resource that is full are frozen."""

from __future__ import annotations

from commsim.core.jit import njit_called, njit_norefcount
from commsim.engine.queue_kernel import heap_fix

from .group_state import Groups
from .groups_kernel import note_changed, put_in, tick
from .rows_kernel import begin_row, cross, put_in_order


@njit_called
def fill_all(g: Groups, now: float) -> None:
    """Find all rates from the beginning. Flows without a group have what they have left in ``g.end``."""
    _open_all(g, now)
    n_heap = 0
    for q in range(len(g.row)):
        if g.n_open[q] > 0:
            n_heap = heap_fix(g.fill_heap, n_heap, g.fill_at, g.fill_place, q, float(_full_at(g, q)))
    rate = 0
    while n_heap > 0 and not g.counter["is_full"]:
        q = g.fill_heap[0]
        bound = g.fill_at[q]
        n_heap = heap_fix(g.fill_heap, n_heap, g.fill_at, g.fill_place, q, -1.0)
        if g.n_open[q] == 0:
            continue
        full = _full_at(g, q)
        if float(full) > bound and n_heap > 0 and float(full) > g.fill_at[g.fill_heap[0]]:
            n_heap = heap_fix(g.fill_heap, n_heap, g.fill_at, g.fill_place, q, float(full))
            continue
        rate = max(rate, full)
        _freeze_users(g, q, rate, now)
    _lay_out_rows(g)


@njit_norefcount
def _full_at(g: Groups, q: int) -> int:
    """Rate at which resource `q` is full, while all is filled."""
    full: int = g.capacity[q] if q == g.cap else max(g.left[q], 0) // g.n_open[q]
    return full


@njit_norefcount
def _open_all(g: Groups, now: float) -> None:
    """Take all flows from their groups, and all rows from their resources."""
    c = g.counter
    c["n_fills"] += 1
    for i in range(c["n_rows"]):
        if g.n_in_heap[i] > 0:
            tick(g, i, now)
            base = g.first[g.resource[i]]
            for at in range(base, base + g.n_in_heap[i]):
                s = g.member[at]
                g.end[s] -= g.clock[i]
                g.group[s] = -1
                for e in range(g.low[s], g.high[s]):
                    g.user_group[g.place[e]] = -1
        for k in range(g.n_crossed[i]):
            g.crossing[i, g.crossed[i, k]] = 0
        g.n_crossed[i] = 0
        g.changed[i], g.finish[i], g.resource[i], g.rest[i] = False, float("inf"), -1, 0
    c["n_rows"] = c["n_free"] = c["n_order"] = c["n_changed"] = 0
    for q in range(len(g.row)):
        g.row[q], g.left[q], g.n_open[q] = -1, g.capacity[q], g.n_users[q]
    if g.cap >= 0:
        begin_row(g, g.cap)


@njit_norefcount
def _freeze_users(g: Groups, q: int, rate: int, now: float) -> None:
    """Make the users of resource `q` without a group its members."""
    i = g.row[q] if g.row[q] >= 0 else begin_row(g, q)
    if i < 0:
        return
    g.rate[i], g.clock[i], g.since[i] = rate, 0.0, now
    put_in_order(g, i)
    note_changed(g, i)
    for at in range(g.first[q], g.first[q] + g.n_users[q]):
        s = g.user[at]
        if g.group[s] >= 0:
            continue
        g.group[s] = i
        g.n_members[i] += 1
        put_in(g, i, s, g.end[s])
        for e in range(g.low[s], g.high[s]):
            p = g.link[e]
            g.user_group[g.place[e]] = i
            g.n_open[p] -= 1
            if p != q:
                g.left[p] -= rate


@njit_norefcount
def _lay_out_rows(g: Groups) -> None:
    """Say what of each resource with members is taken by others, and which of them; bounds are exact."""
    c = g.counter
    c["growth"] = 1.0
    for i in range(c["n_rows"]):
        g.noted[i], g.rest[i] = g.rate[i], g.left[g.resource[i]]
        base = g.first[g.resource[i]]
        for at in range(base, base + g.n_in_heap[i]):
            s = g.member[at]
            for e in range(g.low[s], g.high[s]):
                j = g.row[g.link[e]]
                if j >= 0 and j != i:
                    cross(g, i, j)
    for q in range(len(g.row)):
        g.bound[q] = 0.0 if g.row[q] >= 0 else float(g.capacity[q] - g.left[q])
