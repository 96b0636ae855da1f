"""Layouts: how blocks and chunks lie in a buffer, and which block ends up where out of place.

Most follow from the numbers of ranks and chunks; an operation with unequal blocks has a layout, a
tuple of whole numbers that a schedule carries. Which numbers, the operation says:

``none``
    No numbers.
``ranks``
    Chunks of each rank's block, one number per rank.
``pairs``
    Chunks from rank i to rank j, row by row of i.
``grid``
    Sides of the grid that the ranks are numbered on, the last side fastest.
``runs``
    Runs of chunks, four numbers each: the rank that has them, the rank that they go to, the first chunk, how many. The
    runs of a receiver lie in its buffer one behind the other, in the order of the layout.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .errors import InputError

Layout = tuple[int, ...]
LayoutKind = Literal["none", "ranks", "pairs", "grid", "runs"]
Numbers = NDArray[np.int64]
Moved = tuple[Numbers, Numbers, Numbers, Numbers]
# From some ranks, the numbers of all ranks and of chunks and the layout to all chunks that end in these ranks' output:
# (rank, chunk, rank that it comes from, chunk there), rank by rank, chunks from 0 on.
Moves = Callable[[Numbers, int, int, Layout], Moved]


def n_blocks(kind: LayoutKind, n_ranks: int, layout: Layout) -> int:
    """Chunks that a layout cuts the data into; 1 without one.

    Parameters
    ----------
    kind : {"none", "ranks", "pairs", "grid", "runs"}
        What the numbers of the layout mean.
    n_ranks : int
        Ranks.
    layout : tuple of int
        The numbers.

    Raises
    ------
    InputError
        If the layout does not fit the number of ranks.
    """
    if kind == "none":
        if layout:
            raise InputError(f"this operation takes no layout, got {_layout_text(layout)}")
        return 1
    if kind == "grid":
        if not layout or min(layout) < 1 or math.prod(layout) != n_ranks:
            raise InputError(f"dims must be sides of a grid of {n_ranks} ranks, got {_layout_text(layout)}")
        return 2 * len(layout)
    if kind == "runs":
        return _chunks_of_runs(n_ranks, layout)
    wanted = n_ranks if kind == "ranks" else n_ranks**2
    if len(layout) != wanted or min(layout) < 0 or max(layout) < 1:
        per = "rank" if kind == "ranks" else "pair of ranks"
        raise InputError(
            f"counts must be {wanted} whole numbers, one for each {per}, not negative and not all 0, "
            f"got {_layout_text(layout)}"
        )
    if kind == "ranks":
        return sum(layout)
    counts = np.reshape(layout, (n_ranks, n_ranks))
    return int(max(counts.sum(axis=0).max(), counts.sum(axis=1).max()))


def _chunks_of_runs(n_ranks: int, layout: Layout) -> int:
    """Return the most chunks that a rank has or receives."""
    if not layout or len(layout) % 4:
        raise InputError(f"runs must be groups of four whole numbers, got {len(layout)} numbers")
    src, dst, first, count = np.reshape(np.array(layout, np.int64), (-1, 4)).T
    ends = np.concatenate((src, dst))
    if ends.min() < 0 or ends.max() >= n_ranks or first.min() < 0 or count.min() < 1:
        raise InputError(f"runs must be between ranks 0..{n_ranks - 1}, from chunk 0 on and of at least 1 chunk")
    return int(max((first + count).max(), np.bincount(dst, count).max()))


def home_of_chunks(n_ranks: int, n_chunks: int, layout: Layout = ()) -> Numbers:
    """Rank in whose block each chunk lies: blocks are equal, or of as many chunks as the layout says.

    Parameters
    ----------
    n_ranks, n_chunks : int
        Sizes of the problem.
    layout : tuple of int
        Chunks of each rank's block; by default equal blocks.
    """
    if layout:
        return np.repeat(np.arange(n_ranks), layout)
    return np.arange(n_chunks) * n_ranks // n_chunks


def from_every_rank(ranks: Numbers, n_ranks: int, n_chunks: int, layout: Layout) -> Moved:  # noqa: ARG001
    """All-to-all: block i of rank r's output is block r of rank i."""
    rank, chunk = _all_chunks(ranks, n_chunks)
    width = n_chunks // n_ranks
    return rank, chunk, chunk // width, rank * width + chunk % width


def from_every_rank_v(ranks: Numbers, n_ranks: int, n_chunks: int, layout: Layout) -> Moved:  # noqa: ARG001
    """All-to-all-v: what each rank sends to r, one block behind the other, each as long as the layout says."""
    counts = np.reshape(np.array(layout, np.int64), (n_ranks, n_ranks))
    begins = np.cumsum(counts, axis=1) - counts
    to = counts[:, ranks].T  # [rank, origin]
    lengths = to.ravel()
    origin = np.repeat(np.tile(np.arange(n_ranks), len(ranks)), lengths)
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    rank = np.repeat(ranks, to.sum(axis=1))
    first = np.cumsum(to.sum(axis=1)) - to.sum(axis=1)
    chunk = np.arange(len(rank)) - np.repeat(first, to.sum(axis=1))
    return rank, chunk, origin, begins[origin, rank] + within


def from_the_previous_rank(ranks: Numbers, n_ranks: int, n_chunks: int, layout: Layout) -> Moved:  # noqa: ARG001
    """Send-receive: rank r's output is the input of rank r-1."""
    rank, chunk = _all_chunks(ranks, n_chunks)
    return rank, chunk, (rank - 1) % n_ranks, chunk


def from_neighbours(ranks: Numbers, n_ranks: int, n_chunks: int, layout: Layout) -> Moved:  # noqa: ARG001
    """Neighbour exchange: along dimension d, block 2d is what the rank below sent up, and 2d+1 what the one above sent.

    What a rank sends down is its block 2d, and what it sends up its block 2d+1.
    """
    rank, chunk = _all_chunks(ranks, n_chunks)
    width = n_chunks // (2 * len(layout))
    block = chunk // width
    return rank, chunk, neighbour(rank, block, layout), (block ^ 1) * width + chunk % width


def to_experts(ranks: Numbers, n_ranks: int, n_chunks: int, layout: Layout) -> Moved:  # noqa: ARG001
    """Dispatch: the runs that go to a rank lie in its output one behind the other."""
    src, dst, first, count = np.reshape(np.array(layout, np.int64), (-1, 4)).T
    order = np.argsort(dst, kind="stable")
    order = order[np.isin(dst[order], ranks)]
    src, dst, first, count = src[order], dst[order], first[order], count[order]
    within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    of_rank = np.bincount(dst, count, n_ranks).astype(np.int64)
    begins = np.cumsum(of_rank) - of_rank
    rank = np.repeat(dst, count)
    chunk = np.arange(len(rank)) - begins[rank]
    return rank, chunk, np.repeat(src, count), np.repeat(first, count) + within


def from_experts(ranks: Numbers, n_ranks: int, n_chunks: int, layout: Layout) -> Moved:
    """Combine, the way back: a chunk is the sum of all chunks that it was sent as; each has a row."""
    expert, at, rank, chunk = to_experts(np.arange(n_ranks), n_ranks, n_chunks, layout)
    order = np.lexsort((at, expert, chunk, rank))
    order = order[np.isin(rank[order], ranks)]
    return rank[order], chunk[order], expert[order], at[order]


def neighbour(rank: Numbers, block: Numbers, dims: Layout) -> Numbers:
    """Neighbour of a rank on the grid, along dimension block // 2: below for even blocks, above for odd ones.

    Parameters
    ----------
    rank, block : int64[n]
        Ranks, and which of their blocks.
    dims : tuple of int
        Sides of the grid.
    """
    sides = np.array(dims)
    strides = np.append(np.cumprod(sides[:0:-1])[::-1], 1)
    side, stride = sides[block // 2], strides[block // 2]
    place = rank // stride % side
    there: Numbers = rank + ((place + 2 * (block % 2) - 1) % side - place) * stride
    return there


def _all_chunks(ranks: Numbers, n_chunks: int) -> tuple[Numbers, Numbers]:
    return np.repeat(ranks, n_chunks), np.tile(np.arange(n_chunks), len(ranks))


def _layout_text(layout: Layout) -> str:
    return "x".join(map(str, layout)) or "none"


def chunk_bounds(n_elements: int, n_chunks: int) -> NDArray[np.int64]:
    """Bounds of the chunks: chunk c is elements ``bounds[c]:bounds[c + 1]``, and sizes differ by one at most.

    Parameters
    ----------
    n_elements : int
        Elements of the buffer; with fewer than `n_chunks` some chunks are empty.
    n_chunks : int
        Pieces.

    Returns
    -------
    int64[n_chunks + 1]
        ``c * n_elements // n_chunks``. The bounds of every b-th chunk are those of ``n_chunks / b`` chunks, so the
        blocks of ranks do not depend on how finely an algorithm cuts them.
    """
    return np.arange(n_chunks + 1, dtype=np.int64) * n_elements // n_chunks
