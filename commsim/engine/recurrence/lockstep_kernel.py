"""A kernel that finds which messages of a hop share links, and at which rate if all of them are sent together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import Records, kernel
from commsim.engine.flow_job import FULL

SAME = 1.0 + 1e-12
# What is asked of a resource, and in which hop that was; from 1.
USE = np.dtype([("asked", np.float64), ("hop", np.int64)])


@kernel
def _root(above: NDArray[np.int32], r: int) -> int:
    """Find the representative of the set that `r` is in; shortens the way to it."""
    top = r
    while above[top] != top:
        top = above[top]
    while above[r] != top:
        above[r], r = top, above[r]
    return top


@kernel
def _join(
    connection: NDArray[np.int32],
    per_byte: NDArray[np.float64],
    rows: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]],
    held: NDArray[np.bool_],
    tables: tuple[Records, NDArray[np.int32], NDArray[np.int32], NDArray[np.float64], NDArray[np.float64]],
) -> bool:
    """Join the resources that are asked for too much by messages of one hop, if each of these uses several of them.

    `tables` are ``(use, above, number, weight, slowest)``; written for these resources: representative, -1, what a byte
    takes if all users get the same rate, and at the representative the most of these. False if one is a held port.
    """
    first, resource, part = rows
    use, above, number, weight, slowest = tables
    for w in connection:
        for e in range(first[w], first[w + 1]):
            r = resource[e]
            above[r], number[r], weight[r], slowest[r] = r, -1, 0.0, 0.0
            if held.shape[0] and held[e] and use[r]["asked"] > FULL:
                return False
    for w in connection:
        one = -1
        for e in range(first[w], first[w + 1]):
            r = resource[e]
            if use[r]["asked"] > FULL:
                weight[r] += part[e] * per_byte[w]
                other = _root(above, r)
                one = one if one >= 0 else other
                above[other] = one
    for w in connection:
        for e in range(first[w], first[w + 1]):
            r = resource[e]
            if use[r]["asked"] > FULL:
                top = _root(above, r)
                slowest[top] = max(slowest[top], weight[r])
    return True


@kernel
def find_lockstep_groups(
    connection: NDArray[np.int32],
    hop: NDArray[np.int64],
    per_byte: NDArray[np.float64],
    rows: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]],
    held: NDArray[np.bool_],
    n_resources: int,
    pace: NDArray[np.float64],
    group: NDArray[np.int32],
) -> int:
    """Find what shares links when all messages of a hop are sent together.

    Resources that are asked for too much join messages to groups. In a group all messages must get the same rate:
    what the resource with the most users gives to each; and each must have such a resource on its path. Then this is
    the max-min fair allocation, for as long as all of them are on their way.

    Parameters
    ----------
    connection : int32[n], hop : int64[n_hops + 1]
        Wires of messages, hop by hop, and where each hop begins.
    per_byte : float64[n_connections], s
        Time of a byte without others.
    rows : (int64[n_connections + 1], int32[m], float64[m])
        Rows of resources of each connection, and the part of them that it asks for without others.
    held : bool[m]
        Rows that are a port which overheads occupy; or empty. These cannot be shared in step.
    n_resources : int
        Resources.
    pace : float64[n], group : int32[n]
        Written: what a byte of each message takes, and the number of its group, or -1.

    Returns
    -------
    int
        LockstepGroups, or -1 if some messages of a hop do not share in that way.
    """
    first, resource, part = rows
    use = np.zeros(n_resources, USE)
    above, number = np.empty(n_resources, np.int32), np.empty(n_resources, np.int32)
    weight, slowest = np.empty(n_resources), np.empty(n_resources)
    last_hop = np.full(per_byte.shape[0], -1, np.int32)
    n_groups = 0
    for h in range(hop.shape[0] - 1):
        crowded = repeated = False
        for i in range(hop[h], hop[h + 1]):
            w = connection[i]
            pace[i], group[i] = per_byte[w], -1
            repeated |= last_hop[w] == h
            if last_hop[w] == h:
                continue
            last_hop[w] = h
            for e in range(first[w], first[w + 1]):
                r = resource[e]
                if use[r]["hop"] != h + 1:
                    use[r]["hop"], use[r]["asked"] = h + 1, 0.0
                use[r]["asked"] += part[e]
                crowded |= use[r]["asked"] > FULL
        if not crowded:
            continue
        if repeated:
            return -1
        mine, tables = connection[hop[h] : hop[h + 1]], (use, above, number, weight, slowest)
        if not _join(mine, per_byte, rows, held, tables):
            return -1
        for i in range(hop[h], hop[h + 1]):
            w, top, most = connection[i], -1, 0.0
            for e in range(first[w], first[w + 1]):
                r = resource[e]
                if use[r]["asked"] > FULL:
                    most = max(most, weight[r])
                    top = _root(above, r)
            if top >= 0:
                if most * SAME < slowest[top] or slowest[top] * SAME < per_byte[w]:
                    return -1
                if number[top] < 0:
                    number[top] = n_groups
                    n_groups += 1
                pace[i], group[i] = slowest[top], number[top]
    return n_groups
