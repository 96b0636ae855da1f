"""Kernel for the rates of flows that are all there at once: one progressive filling, of bundles that share a path.

The event engine's filling takes a row for each flow and link: 30 times as long for 1,024 ranks (docs/data/scale.md).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel, njit_norefcount
from commsim.engine.flow_state import Floats, Numbers, Offsets, Rows
from commsim.engine.queue_kernel import heap_fix

TIE = 1.0 + 1e-12  # fair rates this close are one fair rate, as in the sharing kernels


LINK_ROW = np.dtype(
    [
        ("free", np.int64),  # capacity not yet given away, in units so small that sums are exact
        ("unit", np.float64),
        ("per_unit", np.float64),
        ("demand", np.float64),  # what its unfrozen flows take per fair rate,
        ("n_unfrozen", np.int32),  # and how many they are
    ],
    align=True,
)


class BundleState(NamedTuple):
    """Flows in bundles, and what is left for those that are not frozen."""

    first: Offsets  # [n_bundles + 1], rows of
    link: Numbers  # [m], links of each bundle,
    share: Floats  # [m], and their shares; [1] where all are the same
    bundle: Numbers  # [n_flows]
    head: Numbers  # [n_flows], or -1
    member_first: Offsets  # [n_bundles + 1], rows of
    member: Numbers  # flows of each bundle
    fair_rate: Floats  # [n_flows], 0 before it is frozen
    n_left: Offsets  # [n_bundles], unfrozen flows of each
    of_link: Rows  # LINK_ROW[n_links]


@kernel
def rows_of(key: NDArray[np.int32], n_keys: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Group things by a key, -1 for none: the things of key k are ``thing[first[k]:first[k + 1]]``, in order."""
    first = np.zeros(n_keys + 1, np.int64)
    for k in key:
        if k >= 0:
            first[k + 1] += 1
    for k in range(n_keys):
        first[k + 1] += first[k]
    place = first[:n_keys].copy()
    thing = np.empty(first[n_keys], np.int32)
    for i in range(key.shape[0]):
        if key[i] >= 0:
            thing[place[key[i]]] = i
            place[key[i]] += 1
    return first, thing


@kernel
def fair_rates_of_flows(
    capacity: NDArray[np.float64],
    routes: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]],
    bundle: NDArray[np.int32],
    head: NDArray[np.int32],
    cap: float,
) -> NDArray[np.float64]:
    """Rate of each of many flows of equal weight: max-min fair, by progressive filling.

    Flows of a *bundle* share all of their path but the first link, its *head*. A resource that is full freezes bundles
    as wholes, so that a bundle costs about as much as one flow.

    Parameters
    ----------
    capacity : float64[n_links], bytes/s
        Capacity of each link.
    routes : (int64[n_bundles + 1], int32[m], float64[m] or float64[1])
        Links of each bundle, and their shares, or that of all.
    bundle, head : int32[n_flows]
        Bundle of each flow, and the link that it takes before, or -1. No link is both a head and in a bundle.
    cap : float, bytes/s
        Most that a flow may get.

    Returns
    -------
    float64[n_flows], bytes/s
    """
    first, link, share = routes
    n_links, n_bundles = capacity.shape[0], first.shape[0] - 1
    member_first, member = rows_of(bundle, n_bundles)
    head_first, of_head = rows_of(head, n_links)
    owner, n_left = np.empty(link.shape[0], np.int32), np.empty(n_bundles, np.int64)
    for b in range(n_bundles):
        owner[first[b] : first[b + 1]] = b
        n_left[b] = member_first[b + 1] - member_first[b]
    flow_link_first, flow_link = rows_of(link, n_links)

    fair_rate, of_link = np.zeros(bundle.shape[0]), np.zeros(n_links, LINK_ROW)
    for q in range(n_links):
        unit = math.ldexp(1.0, math.frexp(capacity[q])[1] - 61)
        of_link[q]["unit"], of_link[q]["per_unit"] = unit, 1.0 / unit
        of_link[q]["free"] = np.int64(capacity[q] / unit)
        of_link[q]["n_unfrozen"] = of_link[q]["demand"] = head_first[q + 1] - head_first[q]
        for k in range(flow_link_first[q], flow_link_first[q + 1]):
            b = owner[flow_link[k]]
            of_link[q]["n_unfrozen"] += n_left[b]
            of_link[q]["demand"] += n_left[b] * share[min(flow_link[k], share.shape[0] - 1)]
    t = BundleState(first, link, share, bundle, head, member_first, member, fair_rate, n_left, of_link)

    full_at, place, heap = np.empty(n_links), np.full(n_links, -1, np.int32), np.empty(n_links, np.int32)
    n_heap = 0
    for i in range(n_links):
        q = n_links - 1 - i
        if of_link[q]["n_unfrozen"] > 0:
            n_heap = heap_fix(heap, n_heap, full_at, place, q, capacity[q] / of_link[q]["demand"])
    reached = 0.0
    while n_heap > 0:
        q = heap[0]
        bound = full_at[q]
        n_heap = heap_fix(heap, n_heap, full_at, place, q, -1.0)
        if of_link[q]["n_unfrozen"] == 0:
            continue
        full = max(of_link[q]["free"], 0) * of_link[q]["unit"] / of_link[q]["demand"]
        if full > bound * TIE and n_heap > 0 and full > full_at[heap[0]]:
            n_heap = heap_fix(heap, n_heap, full_at, place, q, full)
            continue
        reached = full if full > reached * TIE else reached
        if reached >= cap:
            break
        for k in range(flow_link_first[q], flow_link_first[q + 1]):
            freeze_bundle(t, owner[flow_link[k]], reached)
        for k in range(head_first[q], head_first[q + 1]):
            freeze_flow(t, of_head[k], reached)
    for f in range(fair_rate.shape[0]):
        if fair_rate[f] == 0.0:
            fair_rate[f] = cap
    return fair_rate


@njit_norefcount
def _take(t: BundleState, q: int, n: int, each: float, share: float) -> None:
    """Let `n` unfrozen flows have `each` of what a link has left."""
    t.of_link[q]["free"] -= int(n * each * t.of_link[q]["per_unit"])
    t.of_link[q]["n_unfrozen"] -= n
    t.of_link[q]["demand"] -= n * share


@njit_norefcount
def freeze_bundle(t: BundleState, b: int, fair_rate: float) -> None:
    """Freeze the unfrozen flows of bundle `b`, together on what they share."""
    n = t.n_left[b]
    if n == 0:
        return
    t.n_left[b] = 0
    for k in range(t.member_first[b], t.member_first[b + 1]):
        f = t.member[k]
        if t.fair_rate[f] == 0.0:
            t.fair_rate[f] = fair_rate
            if t.head[f] >= 0:
                _take(t, t.head[f], 1, fair_rate, 1.0)
    for k in range(t.first[b], t.first[b + 1]):
        share = t.share[min(k, t.share.shape[0] - 1)]
        _take(t, t.link[k], n, fair_rate * share, share)


@njit_norefcount
def freeze_flow(t: BundleState, f: int, fair_rate: float) -> None:
    """Freeze one flow that its head limits."""
    if t.fair_rate[f] > 0.0:
        return
    t.fair_rate[f] = fair_rate
    _take(t, t.head[f], 1, fair_rate, 1.0)
    b = t.bundle[f]
    t.n_left[b] -= 1
    for k in range(t.first[b], t.first[b + 1]):
        share = t.share[min(k, t.share.shape[0] - 1)]
        _take(t, t.link[k], 1, fair_rate * share, share)
