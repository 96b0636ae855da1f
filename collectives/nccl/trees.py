"""NCCL's trees and chains: up to a root, down from it, or both at once, chunk by chunk.

References
----------
NCCL 2.30.7, ``src/graph/trees.cc``: a binary tree over the nodes whose inner members and leaves alternate; the second
one is its mirror image for an even number of nodes, and shifted by one for an odd one.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collectives.dense.double_tree import binary_tree, depths
from commsim.core.program import Program

from .pieces import Pieces

Parents = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class ChannelTree:
    """A tree over all participants that carries some pieces of a channel.

    Parameters
    ----------
    parent : int64[n_participants]
        Parent of each participant; -1 for the root, and -2 for those outside the tree.
    channel : int
        Channel of the pieces.
    place : int
        Index of the piece within a loop.
    rank : int
        Rank whose part the piece belongs to, where parts lie `Pieces.width` apart.
    """

    parent: Parents
    channel: int
    place: int = 0
    rank: int = 0


def node_trees(n_nodes: int) -> tuple[Parents, Parents]:
    """Return the parents in both trees over the nodes."""
    first = binary_tree(n_nodes)
    node = np.arange(n_nodes)
    image = (node + 1) % n_nodes if n_nodes % 2 else n_nodes - 1 - node
    second = np.empty_like(first)
    second[image] = np.where(first < 0, -1, image[first])
    return first, second


@functools.cache
def busiest_share(n_nodes: int) -> float:
    """Return what the busiest machine sends of an all-reduce whose halves take the two trees, in parts of its bytes.

    Of each half a machine sends once to its parent and once to each child, and receives as much: two machines have one
    neighbour in either tree, three have three in both together, and of more an inner machine has three and one.
    """
    links = np.zeros(n_nodes, np.int64)
    for parent in node_trees(n_nodes):
        below = np.flatnonzero(parent >= 0)
        links[below] += 1
        np.add.at(links, parent[below], 1)
    return float(links.max() / 2)


@functools.cache
def tree_depth(n_nodes: int) -> int:
    """Return the links from the furthest machine to the root: log2, or one more where their number is no power of 2."""
    return max(int(depths(parent).max()) for parent in node_trees(n_nodes))


def over_machines(machines: Sequence[Sequence[int]], nodes: Parents, rail: int, n: int) -> Parents:
    """Hang a chain through each machine below its member on a rail, and these members below each other as nodes are.

    Parameters
    ----------
    machines : sequence of sequence of int
        Ranks of each.
    nodes : int64[n_machines]
        Parent of each machine.
    rail : int
        Rail at which a chain begins.
    n : int
        Participants.
    """
    parent = np.full(n, -2, np.int64)
    sizes = np.array([len(machine) for machine in machines])
    begin, size = (np.repeat(column, sizes) for column in (np.cumsum(sizes) - sizes, sizes))
    place = np.arange(len(begin)) - begin
    rank = np.concatenate(machines)[begin + (place + rail) % size]  # of each machine from that of the rail on
    parent[rank[1:]] = rank[:-1]
    heads = rank[place == 0]
    parent[heads] = np.where(nodes >= 0, heads[nodes], -1)
    return parent


def chain(order: NDArray[np.int64], root: int) -> Parents:
    """Return the parents in a chain that runs from the root through the ranks in the order of a ring."""
    turned = np.roll(order, -int(np.flatnonzero(order == root)[0]))
    parent = np.full(len(order), -1, np.int64)
    parent[turned[1:]] = turned[:-1]
    return parent


def write_trees(
    p: Program, trees: Sequence[ChannelTree], pieces: Pieces, *, up: bool, down: bool, apart: int = 0,
    in_turn: bool = False,
) -> None:  # fmt: skip
    """Write all loops: each piece is added up from the leaves to the root, and copied from the root to the leaves.

    Parameters
    ----------
    p : Program
        Program to write to.
    trees : sequence of ChannelTree
        Every channel has one, or one for each place of a piece.
    pieces : Pieces
        Places of a loop lie one behind the other.
    up, down : bool
        Whether to write the way up, and the way down.
    apart : int
        What is added to the channels on the way down, where connections would else carry both ways of several trees.
    in_turn : bool
        Whether a rank sends all pieces up before it takes the first from above: RCCL has all threads on one way
        (``src/device/all_reduce.h``, runTreeUpDown), where NCCL has some on either.
    """
    if in_turn:  # the last piece comes down first: a connection keeps its order, so that the others wait for it
        write_trees(p, trees, pieces, up=up, down=False)
        up = False
    for loops, times, step in reversed(pieces.runs) if in_turn else pieces.runs:
        of_channel = {loop.channel: loop for loop in loops}
        begins = step * (times - 1) if in_turn else 0
        rows = [
            (tree.parent, tree.rank * pieces.width + loop.first + tree.place * loop.count + begin + begins, count,
             tree.channel)
            for tree in trees
            if (loop := of_channel.get(tree.channel)) is not None
            for begin, count in loop.slices
        ]  # fmt: skip
        hops = levels(rows)
        with p.repeat(times, chunk=-step if in_turn else step):
            for ends in reversed(hops) if up else ():
                p.reduce(ends[2], src=ends[0], dst=ends[1], count=ends[3], channel=ends[4])
            for ends in hops if down else ():
                p.copy(ends[2], src=ends[1], dst=ends[0], count=ends[3], channel=ends[4] + apart)


def levels(rows: Sequence[tuple[Parents, int, int, int]]) -> list[tuple[NDArray[np.int64], ...]]:
    """Return the hops of pieces over their trees, those to the roots first.

    Parameters
    ----------
    rows : sequence of (int64[n_participants], int, int, int)
        Parents, first chunk, number of chunks and channel of each piece.

    Returns
    -------
    list of (int64[n], int64[n], int64[n], int64[n], int64[n])
        For each level the child, the parent, first chunk, number of chunks, and channel of each hop.
    """
    depth_of = {
        id(parent): np.where(parent == -2, 0, depths(np.maximum(parent, -1)))
        for parent in {id(row[0]): row[0] for row in rows}.values()
    }
    by_level: dict[int, list[tuple[NDArray[np.int64], NDArray[np.int64], int, int, int]]] = {}
    for parent, first, count, channel in rows:
        depth = depth_of[id(parent)]
        for level in range(1, int(depth.max()) + 1):
            below = np.flatnonzero(depth == level)
            by_level.setdefault(level, []).append((below, parent[below], first, count, channel))
    return [_columns(by_level[level]) for level in sorted(by_level)]


def _columns(
    rows: Sequence[tuple[NDArray[np.int64], NDArray[np.int64], int, int, int]],
) -> tuple[NDArray[np.int64], ...]:
    n = [len(row[0]) for row in rows]
    ends = [np.concatenate([row[i] for row in rows]) for i in (0, 1)]
    return *ends, *(np.repeat([row[i] for row in rows], n) for i in (2, 3, 4))
