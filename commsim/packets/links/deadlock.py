"""Links that pause each other for ever (PFC deadlock): found while a run goes on, and named.

A link is paused for a class while the next node holds more than `xon` bytes of that class that came over it. They wait
in queues of that node's links; what waits before a link that itself never goes on never leaves. The links for which
that is true are the largest set of paused links that would each still hold too much if all queues but the set's were
empty.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from commsim.core.network import Network
from commsim.packets.codes import CONTRIBUTION
from commsim.packets.packet_rows import RunState


def deadlocked(fabric: RunState) -> list[int]:
    """Find a cycle of links that pause each other for ever.

    Parameters
    ----------
    fabric : RunState
        All state of links and packets.

    Returns
    -------
    list of int
        Links, in the kernels' order of numbers, each of which waits for the next; empty where every pause may end.
    """
    link = fabric.link
    closed = np.where(link["pause_pending"], 0, link["paused"] & link["pausing"])
    stuck = {(int(i), c) for i in closed.nonzero()[0] for c in range(fabric.state["n_classes"]) if closed[i] >> c & 1}
    if not stuck:
        return []
    waits = {one: _waiting(fabric, *one) for one in stuck}
    while True:
        kept: dict[tuple[int, int], int] = defaultdict(int)
        for one in stuck:
            for came_over, n_bytes in waits[one].items():
                kept[came_over, one[1]] += n_bytes
        freed = {one for one in stuck if kept[one] <= link["xon"][one[0]]}
        if not freed:
            break
        stuck -= freed
    if not stuck:
        return []
    # each of them waits for another one of them, so going on must come back
    path = [min(stuck)]
    while True:
        last, rank = path[-1]
        after = min(one for one in stuck if one[1] == rank and waits[one].get(last, 0) > 0)
        if after in path:
            return [number for number, _ in path[path.index(after) :]]
        path.append(after)


def _waiting(fabric: RunState, number: int, rank: int) -> dict[int, int]:
    """Sum the bytes of a class in a link's queue by the link that they came over."""
    found: dict[int, int] = defaultdict(int)
    link = fabric.link[number]
    for p in (int(link["serving"]), int(link["low_head"])):
        while p >= 0:
            packet = fabric.packet[p]
            of_job = packet["kind"] >= CONTRIBUTION
            mine = fabric.stream["priority"][packet["stream"]] if of_job else fabric.flow["rank"][packet["flow"]]
            if mine == rank and (of_job or packet["number"] >= 0):
                found[int(packet["came_over"])] += int(packet["size"])
            p = -1 if p == link["serving"] else int(packet["next"])
    return found


def cycle_text(cycle: list[int], network: Network) -> str:
    """Write a cycle of links by the nodes that it goes through."""
    nodes = [network.nodes[network.src[i]] for i in cycle]
    return " -> ".join([*nodes, network.nodes[network.dst[cycle[-1]]]])
