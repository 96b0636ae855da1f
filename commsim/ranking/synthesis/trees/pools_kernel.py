"""Units of arcs with the links that they go over: joined while switches are split off, and taken by trees.

An arc has a queue of parts; a part is some units and a path. A path is one link, or two paths one after the other, so
that joining two is a row of a table and not a longer list of links: among 1,000 ranks there are millions of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel

Numbers = NDArray[np.int64]
Ints = NDArray[np.int32]

# What stands for no part, and in a path of one link for the second half.
NONE = -1


class Pools(NamedTuple):
    """Parts of arcs; changed in place."""

    first: Ints  # [n_arcs], the part of an arc that is taken first, or NONE
    last: Ints  # [n_arcs], the part that is taken last, where there is one
    units: Numbers  # [room for parts], units of a part
    path: Ints  # [room for parts], its path
    next: Ints  # [room for parts], the part of the same arc that is taken after it, or the next free one
    halves: Ints  # [room for paths, 3], the two paths that a path consists of, or its link and NONE; its links
    used: Numbers  # [3], parts, paths, and the first free part or NONE


@kernel
def new_part(pools: Pools, units: int, path: int) -> int:
    """Return the number of a new part, which is in no queue yet."""
    part = int(pools.used[2])
    if part == NONE:
        part = int(pools.used[0])
        pools.used[0] += 1
    else:
        pools.used[2] = pools.next[part]
    pools.units[part], pools.path[part], pools.next[part] = units, path, NONE
    return part


@kernel
def free_part(pools: Pools, part: int) -> None:
    """Give a part back that is in no queue."""
    pools.next[part], pools.used[2] = pools.used[2], part


@kernel
def append_part(pools: Pools, arc: int, part: int) -> None:
    """Put a part behind all others of an arc."""
    pools.next[part] = NONE
    if pools.first[arc] == NONE:
        pools.first[arc] = part
    else:
        pools.next[pools.last[arc]] = part
    pools.last[arc] = part


@kernel
def append_link(pools: Pools, arc: int, link: int, units: int) -> None:
    """Let units of an arc go over a link."""
    path = int(pools.used[1])
    pools.used[1] += 1
    pools.halves[path, 0], pools.halves[path, 1], pools.halves[path, 2] = link, NONE, 1
    append_part(pools, arc, new_part(pools, units, path))


@kernel
def take_parts(pools: Pools, arc: int, units: int) -> int:
    """Take units of an arc, those first that came first, and of the last part what is wanted only.

    Returns
    -------
    int
        The part that was taken last, which the others follow, the latest first; NONE for no units.
    """
    taken = NONE
    while units > 0:
        part = int(pools.first[arc])
        if pools.units[part] > units:
            pools.units[part] -= units
            part = new_part(pools, units, pools.path[part])
        else:
            pools.first[arc] = pools.next[part]
        units -= pools.units[part]
        pools.next[part] = taken
        taken = part
    return taken


@kernel
def join_pairs(pools: Pools, between: Numbers, switch: int, pairs: Numbers) -> None:
    """Let units of arcs to and from a switch become units of arcs past it, over the links of both.

    Parameters
    ----------
    pools : Pools
        Has room for two more parts of each pair, and for a path of each part that they may have.
    between : int64[n_nodes, n_nodes]
        Arc from one node to another.
    switch : int
        Number of the switch.
    pairs : int64[n, 3]
        Source, destination and units.
    """
    for row in range(len(pairs)):
        u, t, units = pairs[row, 0], pairs[row, 1], pairs[row, 2]
        before = take_parts(pools, between[u, switch], units)
        after = take_parts(pools, between[switch, t], units)
        while before != NONE and after != NONE:
            a, b = before, after
            more = pools.units[a] - pools.units[b]
            joined = b if more > 0 else a
            path = pools.used[1]
            x, y = pools.path[a], pools.path[b]
            pools.halves[path, 0], pools.halves[path, 1] = x, y
            pools.halves[path, 2] = pools.halves[x, 2] + pools.halves[y, 2]
            if more >= 0:
                after = pools.next[b]
            if more <= 0:
                before = pools.next[a]
            if more > 0:
                pools.units[a] = more
            elif more < 0:
                pools.units[b] = -more
            else:
                free_part(pools, b)
            if u == t:  # back to where it comes from: thrown away
                free_part(pools, joined)
            else:
                pools.used[1] += 1
                pools.path[joined] = path
                append_part(pools, between[u, t], joined)


@kernel
def n_parts_joined(pools: Pools, between: Numbers, switch: int, pairs: Numbers) -> int:
    """Return the most parts that :func:`join_pairs` may make of these pairs."""
    count = 2 * len(pairs)
    for other in range(len(between)):
        for arc in (between[other, switch], between[switch, other]):
            if arc >= 0:
                part = pools.first[arc]
                while part != NONE:
                    count += 1
                    part = pools.next[part]
    return count


@kernel
def take_arcs(pools: Pools, arcs: Numbers, units: int, taken: Numbers, size: Numbers) -> None:
    """Take as many units of each of several arcs.

    Parameters
    ----------
    pools : Pools
        Has room for one more part of each.
    arcs : int64[n]
        Numbers of the arcs.
    units : int
        Units of each.
    taken : int64[n]
        Gets the part of each arc that was taken first, which the others follow.
    size : int64[2]
        Gets the number of parts and of their links.
    """
    size[0], size[1] = 0, 0
    for i in range(len(arcs)):
        part, behind = take_parts(pools, arcs[i], units), NONE
        while part != NONE:
            size[0] += 1
            size[1] += pools.halves[pools.path[part], 2]
            after = pools.next[part]
            pools.next[part] = behind
            part, behind = after, part
        taken[i] = behind


@kernel
def write_taken(pools: Pools, taken: Numbers, parts: Numbers, links: Numbers) -> None:
    """Write what :func:`take_arcs` has taken, and give its parts back.

    Parameters
    ----------
    pools : Pools
        Where it was taken from.
    taken : int64[n]
        First part of each arc.
    parts : int64[n_parts, 3]
        Gets number in `taken`, units and number of links of each part.
    links : int64[n_links]
        Gets the links of the parts, one part after the other.
    """
    row, end = 0, 0
    for i in range(len(taken)):
        part = taken[i]
        while part != NONE:
            n_links = pools.halves[pools.path[part], 2]
            parts[row, 0], parts[row, 1], parts[row, 2] = i, pools.units[part], n_links
            write_links(pools, pools.path[part], links[end : end + n_links])
            after = pools.next[part]
            free_part(pools, part)
            part = after
            row += 1
            end += n_links


@kernel
def write_links(pools: Pools, path: int, links: Numbers) -> None:
    """Write the links of a path in order: int64[n_links]."""
    # what is still to be written stands at the end, the next one first, and takes as much room as its links or less
    at = len(links) - 1
    links[at] = path
    n = 0
    while n < len(links):
        first, second = pools.halves[links[at], 0], pools.halves[links[at], 1]
        if second == NONE:
            at += 1
            links[n] = first
            n += 1
        else:
            links[at], links[at - 1] = second, first
            at -= 1
