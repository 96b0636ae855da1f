"""A switch within a span: its arrivals in the order of time, the link that each takes, and what its links send."""

from __future__ import annotations

import numpy as np

from commsim.core.jit import njit_norefcount

from .fabric_state import ADAPTIVE, DATA, FLOWLET, N_BINS, N_FLOWLETS, Fabric
from .port_kernel import draw, enqueue, mix, serve, start


@njit_norefcount
def pass_on(fabric: Fabric, switch: int) -> None:
    """Take a switch's arrivals of the present span to its queues; its links are served up to each of them.

    Parameters
    ----------
    fabric : Fabric
        All state; changed in place.
    switch : int
        Its number among the switches.
    """
    state, packet = fabric.state, fabric.packet
    _sort(fabric, switch)
    for place in range(N_BINS):
        p = fabric.bins[place]
        fabric.bins[place] = -1
        while p >= 0:
            after, now = packet[p]["after"], packet[p]["when"]
            i = _choose(fabric, switch, p)
            serve(fabric, i, now)
            enqueue(fabric, i, p)
            if fabric.link[i]["serving"] < 0:
                start(fabric, i, now)
            state["n_hops"] += 1
            p = after


@njit_norefcount
def _sort(fabric: Fabric, switch: int) -> None:
    """Sort the arrivals of a switch by time; of equal times, in the order of its links."""
    state, packet, bins = fabric.state, fabric.packet, fabric.bins
    end = state["now"] + state["span"]
    scale = N_BINS / state["span"]
    for i in range(fabric.inlet[switch], fabric.inlet[switch + 1]):
        link = fabric.link[fabric.inlets[i]]
        p = link["pipe_head"]
        while p >= 0 and packet[p]["when"] < end:
            after, when = packet[p]["after"], packet[p]["when"]
            place = min(N_BINS - 1, int((when - state["now"]) * scale))
            before, at = -1, bins[place]
            if at >= 0 and packet[bins[N_BINS + place]]["when"] <= when:
                before, at = bins[N_BINS + place], -1
            while at >= 0 and packet[at]["when"] <= when:
                before, at = at, packet[at]["after"]
            packet[p]["after"] = at
            if before < 0:
                bins[place] = p
            else:
                packet[before]["after"] = p
            if at < 0:
                bins[N_BINS + place] = p
            p = after
        link["pipe_head"] = p


@njit_norefcount
def _choose(fabric: Fabric, switch: int, p: int) -> int:
    """Choose the link that a packet takes: the receiver's, or one of those that lead to its switch."""
    one, state = fabric.packet[p], fabric.state
    target = one["target"]
    if fabric.edge_switch[target] == switch:
        return int(fabric.host[target]["down"])
    row = switch * state["n_edges"] + fabric.edge[target]
    first, count = fabric.way[row], fabric.way[row + 1] - fabric.way[row]
    if count == 1:
        return int(fabric.ways[first])
    balancing = fabric.rules["balancing"]
    if balancing == ADAPTIVE and one["kind"] == DATA:
        return _least_loaded(fabric, first, count, one["when"])
    if balancing == FLOWLET and one["kind"] == DATA:
        # a pause longer than the paths differ lets a message change its path without reordering
        let = fabric.flowlet[switch * N_FLOWLETS + one["flow"] % N_FLOWLETS]
        if let["link"] < 0 or one["when"] - let["when"] > fabric.rules["flowlet_gap"]:
            let["link"] = _least_loaded(fabric, first, count, one["when"])
        let["when"] = one["when"]
        return int(let["link"])
    # the two directions of a message are different connections to a hash, as their targets differ
    key = (np.uint64(one["flow"]) << np.uint64(20) ^ np.uint64(target)) << np.uint64(16) ^ np.uint64(one["entropy"])
    return int(fabric.ways[first + np.int64(mix(key ^ fabric.salt[switch]) % np.uint64(count))])


@njit_norefcount
def _least_loaded(fabric: Fabric, first: int, count: int, now: int) -> int:
    """Compare the queues of some of the links, drawn at random, and take the shortest."""
    best, least = -1, 0
    for _ in range(fabric.rules["choices"]):
        i = fabric.ways[first + min(count - 1, int(draw(fabric) * count))]
        serve(fabric, i, now)
        queued = fabric.link[i]["low"] + fabric.link[i]["high"]
        if best < 0 or queued < least:
            best, least = i, queued
    return int(best)
