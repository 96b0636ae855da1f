"""Links that pause each other for ever (PFC deadlock): found while a run goes on, and named.

A link is paused while the next node holds more than `xon` bytes that came over it. They wait in queues of that node's
links; what waits before a link that itself never goes on never leaves. The links of which that is true are the largest
set of paused links each of which would still hold too much if all queues but the set's were empty.
"""

from __future__ import annotations

from collections import defaultdict

from commsim.core.network import Network

from . import packet_state as s


def deadlocked(links: s.Links) -> list[int]:
    """Find a cycle of links that pause each other for ever.

    Parameters
    ----------
    links : Links
        All state of links and packets.

    Returns
    -------
    list of int
        Links in the order in which each waits for the next; empty where every pause may end.
    """
    link = links.link
    stuck = {int(i) for i in (link["paused"] & ~link["pause_pending"] & link["pausing"]).nonzero()[0]}
    if not stuck:
        return []
    waits = {i: _waiting(links, i) for i in stuck}
    while True:
        kept: dict[int, int] = defaultdict(int)
        for i in stuck:
            for came_over, n_bytes in waits[i].items():
                kept[came_over] += n_bytes
        freed = {i for i in stuck if kept[i] <= link["xon"][i]}
        if not freed:
            break
        stuck -= freed
    if not stuck:
        return []
    # each of them waits for another one of them, so going on must come back
    path = [min(stuck)]
    while True:
        after = min(i for i in stuck if waits[i].get(path[-1], 0) > 0)
        if after in path:
            return path[path.index(after) :]
        path.append(after)


def _waiting(links: s.Links, number: int) -> dict[int, int]:
    """Sum the bytes in a link's queue by the link that they came over."""
    found: dict[int, int] = defaultdict(int)
    p = int(links.link["head"][number])
    while p >= 0:
        packet = links.packet[p]
        found[int(packet["came_over"])] += int(packet["size"])
        p = int(packet["next"])
    return found


def named(cycle: list[int], network: Network) -> str:
    """Write a cycle of links by the nodes that it goes through."""
    nodes = [network.nodes[network.src[i]] for i in cycle]
    return " -> ".join([*nodes, network.nodes[network.dst[cycle[-1]]]])
