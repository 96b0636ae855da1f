"""Two binary trees at once: each half of the vector is reduced and broadcast over its own tree."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from collectives import collective
from collectives.pieces import USUAL, count_pieces
from commsim.core.cost import LogGP
from commsim.core.program import Program
from commsim.core.schedule import Schedule


def binary_tree(n_ranks: int) -> NDArray[np.int64]:
    """In-order binary tree in which every odd rank is a leaf: rank r hangs at a distance of its lowest set bit.

    Returns
    -------
    int64[n_ranks]
        Parent of each rank, -1 for the root, which is rank 0 and has one child.
    """
    rank = np.arange(n_ranks)
    lowest = rank & -rank
    above = (rank ^ lowest) | (lowest << 1)
    parent = np.where(above < n_ranks, above, rank ^ lowest)
    parent[0] = -1
    return parent


def two_trees(n_ranks: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Parents in the tree and in its twin, where no rank has children in both.

    An even number of ranks takes the whole in-order tree, whose odd ranks are leaves; the twin is its mirror image. An
    odd number takes the tree of one rank more without its root, so that the even ranks are leaves; the twin is shifted
    by one rank, and rank 0 is a leaf of both.
    """
    odd = n_ranks % 2
    parent = binary_tree(n_ranks + odd)[odd:] - odd
    rank = np.arange(n_ranks)
    image = (rank + 1) % n_ranks if odd else n_ranks - 1 - rank
    twin = np.empty_like(parent)
    twin[image] = np.where(parent < 0, -1, image[parent])
    return parent, twin


def depths(parent: NDArray[np.int64]) -> NDArray[np.int64]:
    """Links between each rank and the root."""
    depth = np.zeros(len(parent), np.int64)
    above = parent.copy()
    while (above >= 0).any():
        depth += above >= 0
        above = np.where(above >= 0, parent[above], -1)
    return depth


def hops_up_and_down(n_ranks: int) -> int:
    """D: twice the height of the higher tree."""
    return 2 * max(int(depths(parent).max()) for parent in two_trees(n_ranks))


def double_tree_pieces(n_ranks: int, size: float) -> int:
    """Chunks of each half: the way up and down is the pipeline, and a half of the vector passes each hop."""
    return count_pieces(n_ranks, size / 2, hops_up_and_down(n_ranks)) if n_ranks > 1 else 1


def double_tree_bounds(n_ranks: int, size: float, link: LogGP, n_chunks: int | None = None) -> tuple[float, float]:
    """Bounds on the time on an idle star: 2(p-1)S/(pB) and (k - 1 + D) tau.

    Every wire carries k messages of S/(2k) bytes, one after the other. At most w wires leave or enter a port, so by
    max-min fairness a message gets at least a w-th of it: it has left after w (o + S/(2kB)) and, with at most v
    reducing wires entering a rank, is complete after tau = w (o + S/(2kB)) + L + v gamma S/(2k) from its start. By
    induction over program order, message j on the h-th hop of the way up and down (h < D, twice the height of the
    tree) is complete by (h + j + 1) tau: it starts when message j on hop h-1 is complete and message j-1 on its own
    wire has left. As k grows and L, o and gamma vanish, the upper bound tends to w S/(2B) = 2S/B.

    Returns
    -------
    lower, upper : float, s
    """
    if n_ranks == 1:
        return 0.0, 0.0
    trees = two_trees(n_ranks)
    rank = np.arange(n_ranks)
    children = sum((np.bincount(parent[parent >= 0], minlength=n_ranks) for parent in trees), np.zeros_like(rank))
    degree = children + sum((parent >= 0 for parent in trees), np.zeros_like(rank))
    k = double_tree_pieces(n_ranks, size) if n_chunks is None else n_chunks
    message = size / (2 * k)
    tau = degree.max() * (link.o + message / link.B) + link.L + children.max() * link.gamma * message
    return 2 * (n_ranks - 1) / n_ranks * size / link.B, float((k - 1 + hops_up_and_down(n_ranks)) * tau)


@collective("all_reduce", bounds=double_tree_bounds, pieces=double_tree_pieces)
def double_tree_all_reduce(n_ranks: int, n_chunks: int | None = None) -> Schedule:
    """All-reduce over two pipelined binary trees: between 2(p-1)S/(pB) and (k - 1 + D) tau seconds, tending to 2S/B.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.
    n_chunks : int, optional
        k, chunks in each half of the vector. By default sqrt(S/2 (D - 1) / (o B)) with o B = 16 KiB, and 64 where the
        size is not known.

    Returns
    -------
    Schedule
        One chunk of each half reduced up its tree and broadcast down it, level by level, repeated for every chunk;
        chunks follow each other up and down without waiting.

    Notes
    -----
    tau and D are in :func:`double_tree_bounds`. No rank has children in both trees, so at most four wires leave it.

    References
    ----------
    Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel
    Computing 2009. NCCL uses the same trees across nodes.
    """
    k = USUAL if n_chunks is None else n_chunks
    p = Program(n_ranks, n_chunks=2 * k)
    parents = two_trees(n_ranks)
    parent = np.concatenate(parents)
    rank = np.tile(np.arange(n_ranks), 2)
    depth = np.concatenate([depths(tree) for tree in parents])
    # a channel for each tree: two ranks may be neighbours in both, and must not wait for each other's tree
    tree = np.repeat([0, 1], n_ranks)
    levels = [np.flatnonzero(depth == level) for level in range(1, int(depth.max()) + 1)]
    with p.repeat(k, chunk=1):
        for at in reversed(levels):
            p.reduce(tree[at] * k, src=rank[at], dst=parent[at], channel=tree[at])
        for at in levels:
            p.copy(tree[at] * k, src=parent[at], dst=rank[at], channel=tree[at])
    return p.build()
