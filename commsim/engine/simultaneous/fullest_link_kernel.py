"""Kernel that proves when the last of unequal flows leaves: when the link with most bytes has carried them.

All flows start together, so a link has fewer and fewer of them, and a flow gets at least the least that one of its
links has for each of those that may still be there. The kernel goes through time in steps, with what each flow has left
at most, and proves that the fullest link is never idle. If it were not full, each of its flows would have its
bottleneck elsewhere, and get at least what the links beside it have for each: so it is full if that is, together, more
than it can carry. When it alone has flows left, it is full by itself, if those beside it are as fast. Flows that get
less than others because of one and the same link beside it get the same.

References
----------
Bertsekas and Gallager, "Data Networks", 2nd ed., 1992, section 6.5.2 (every flow has a bottleneck).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel, njit_norefcount

Floats = NDArray[np.float64]
Wholes = NDArray[np.int64]
Numbers = NDArray[np.int32]

# Steps of time until the fullest link has carried all; there are fewer while no flow leaves.
N_STEPS = 256
# Bounds are this much less favourable than they need be, and less than this is rounding.
CAUTION, ROUNDING = 1e-9, 1e-13
# What is known of a flow when others have left: it has left too, is as far as any of its link, or may be behind.
GONE, IN_STEP, BEHIND = range(3)
# Links that may have kept a flow behind, where it is not one: none, or several.
NO_LINK, SEVERAL_LINKS = -1, -2


class FlowBounds(NamedTuple):
    """Flows, and what bounds them at some moment."""

    first: Wholes  # [n_flows + 1], rows of
    link: Numbers  # [m], links of each
    n_bytes: Floats  # [n_flows]
    left: Floats  # [n_flows], bytes that it has left at most
    rate: Floats  # [n_flows], B/s that it gets at least
    beside: Floats  # [n_flows], the same as far as other links than the fullest one decide
    state: NDArray[np.uint8]  # [n_flows]
    by: Numbers  # [n_flows], link that may have kept it behind, or NO_LINK, or SEVERAL_LINKS
    n_there: Wholes  # [n_links], flows that may still be there
    each: Floats  # [n_links], what a link has for each of these
    mine: Numbers  # flows of the fullest link that may still be there,
    others: Numbers  # all others,
    n: Wholes  # [2], and how many these two are


@kernel
def fullest_is_last(
    capacity: Floats,
    first: Wholes,
    link: Numbers,
    n_bytes: Floats,
    fullest: int,
    state: NDArray[np.uint8],
    by: Numbers,
) -> float:
    """Prove that a link is full from the beginning until all flows have left.

    Parameters
    ----------
    capacity : float64[n_links], bytes/s
        Capacity of each link.
    first : int64[n_flows + 1], link : int32[m]
        Rows of the links of each flow.
    n_bytes : float64[n_flows], bytes
        More than 0.
    fullest : int
        The link whose bytes take longest.
    state : uint8[n_flows]
        Written: ``GONE``, ``IN_STEP`` or ``BEHIND``.
    by : int32[n_flows]
        Written, for flows of the fullest link: the only other link that may have given them less than to those in
        step, else ``NO_LINK`` or ``SEVERAL_LINKS``.

    Returns
    -------
    float
        When all flows of other links have left, s, or later; infinite without a proof.
    """
    n_flows, n_links = n_bytes.shape[0], capacity.shape[0]
    t = FlowBounds(
        first, link, n_bytes, n_bytes.copy(), np.zeros(n_flows), np.zeros(n_flows), state, by,
        np.zeros(n_links, np.int64), np.zeros(n_links), np.empty(n_flows, np.int32), np.empty(n_flows, np.int32),
        np.zeros(2, np.int64),
    )  # fmt: skip
    until = _begin(t, fullest) / capacity[fullest]
    for k in range(t.n[0]):
        for e in range(first[t.mine[k]], first[t.mine[k] + 1]):
            if capacity[link[e]] < capacity[fullest]:
                return np.inf
    now = served = 0.0
    while t.n[1] > 0:
        soonest = _bound_rates(t, capacity, fullest)
        most = _most(t, capacity[fullest], served)
        if most == 0.0 or now > until:
            return np.inf
        step = max(soonest, until / N_STEPS)
        for k in range(t.n[0]):
            f = t.mine[k]
            if t.beside[f] < most * (1.0 - ROUNDING):
                _note_behind(t, f, fullest, most)
            if n_bytes[f] > served:
                step = min(step, max((n_bytes[f] - served) / most, until * ROUNDING))
        now += step
        served += most * step * (1.0 + ROUNDING)
        t.n[0] = _go_on(t, t.mine, t.n[0], step)
        t.n[1] = _go_on(t, t.others, t.n[1], step)
    return now


@njit_norefcount
def _begin(t: FlowBounds, fullest: int) -> float:
    """List the flows of the fullest link, and all others; return its bytes."""
    total = 0.0
    for f in range(len(t.left)):
        is_mine = False
        for e in range(t.first[f], t.first[f + 1]):
            t.n_there[t.link[e]] += 1
            is_mine = is_mine or t.link[e] == fullest
        t.state[f], t.by[f] = IN_STEP if is_mine else BEHIND, NO_LINK
        if is_mine:
            total += t.left[f]
            t.mine[t.n[0]] = f
            t.n[0] += 1
        else:
            t.others[t.n[1]] = f
            t.n[1] += 1
    return total


@njit_norefcount
def _bound_rates(t: FlowBounds, capacity: Floats, fullest: int) -> float:
    """Find what each flow gets at least from now on, and how soon one may have left by that."""
    for p in range(len(capacity)):
        t.each[p] = capacity[p] / max(t.n_there[p], 1)
    soonest = np.inf
    for k in range(t.n[1]):
        f = t.others[k]
        rate = np.inf
        for e in range(t.first[f], t.first[f + 1]):
            rate = min(rate, t.each[t.link[e]])
        t.rate[f] = rate * (1.0 - CAUTION)
        soonest = min(soonest, t.left[f] / t.rate[f])
    for k in range(t.n[0]):
        f = t.mine[k]
        beside = capacity[fullest]
        for e in range(t.first[f], t.first[f + 1]):
            if t.link[e] != fullest:
                beside = min(beside, t.each[t.link[e]])
        t.beside[f], t.rate[f] = beside, min(beside, t.each[fullest]) * (1.0 - CAUTION)
        soonest = min(soonest, t.left[f] / t.rate[f])
    return soonest


@njit_norefcount
def _most(t: FlowBounds, capacity: float, served: float) -> float:
    """Return the most that a flow of the fullest link may get, B/s; 0 if that link may not be full.

    No flow of it was served more than `served` bytes. Those that must still be there get the same, or what the links
    beside it have for each if that is less; so the same cannot be more than what fills the link with these.
    """
    worth, n = 0.0, 0
    for k in range(t.n[0]):
        if t.n_bytes[t.mine[k]] > served:
            worth += t.beside[t.mine[k]]
            n += 1
    if worth < capacity * (1.0 - ROUNDING):
        return 0.0
    most, before = capacity / n, 0.0
    while most > before * (1.0 + ROUNDING):
        less, n_less = 0.0, 0
        for k in range(t.n[0]):
            f = t.mine[k]
            if t.n_bytes[f] > served and t.beside[f] < most:
                less += t.beside[f]
                n_less += 1
        before = most
        if n_less < n:
            most = (capacity - less) / (n - n_less)
    return most


@njit_norefcount
def _note_behind(t: FlowBounds, f: int, fullest: int, most: float) -> None:
    """Note that flow `f` of the fullest link may get less than `most`, and because of which links."""
    t.state[f] = BEHIND
    for e in range(t.first[f], t.first[f + 1]):
        p = t.link[e]
        if p != fullest and t.each[p] < most * (1.0 - ROUNDING):
            t.by[f] = p if t.by[f] == NO_LINK or t.by[f] == p else SEVERAL_LINKS


@njit_norefcount
def _go_on(t: FlowBounds, flows: Numbers, n: int, step: float) -> int:
    """Serve `n` listed flows for a step of time; keep those that may still be there, and return how many."""
    kept = 0
    for k in range(n):
        f = flows[k]
        t.left[f] -= t.rate[f] * step
        if t.left[f] > t.n_bytes[f] * ROUNDING:
            flows[kept] = f
            kept += 1
        else:
            t.state[f] = GONE
            for e in range(t.first[f], t.first[f + 1]):
                t.n_there[t.link[e]] -= 1
    return kept
