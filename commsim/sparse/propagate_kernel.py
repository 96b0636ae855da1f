"""Kernel that executes a schedule on sets of blocks.

A set is a row of words that several addresses may share: a copy passes on the number of the row, and a reduction
writes in place where no other address holds the row. So what is broadcast costs nothing, however many receive it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import Records, kernel, long_loops
from commsim.core.schedule import REDUCE

from .block_sets import UNLIMITED

UNWRITTEN, MIXED = 1, 2
# One set: addresses and messages under way that hold it, its blocks (-1 when not counted yet), and its chunk.
ROW = np.dtype([("holders", np.int64), ("size", np.int64), ("chunk", np.int32), ("next_free", np.int32)], align=True)

Rows = Records
Words = NDArray[np.uint64]


@long_loops
@kernel
def propagate_sets(
    transfers: Rows,
    read: NDArray[np.int64],
    write: NDArray[np.int64],
    sizes: NDArray[np.int64],
    words: Words,
    held_by: tuple[NDArray[np.int32], NDArray[np.int32]],
    last_chunk: int,
    seen: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], int, int]:
    """Execute all hops on sets of blocks, none of which is cut.

    Parameters
    ----------
    transfers : TRANSFER[n]
        Transfers in program order.
    read, write : int64[n]
        First address that each reads and writes, numbered through all participants.
    sizes : int64[n_chunks]
        Blocks of each chunk.
    words : uint64[2 * n_rows, n_words]
        Sets that are held at the start, and as many rows again; written over.
    held_by : (int32[n_addresses], int32[n_rows])
        Row of each address, -1 for none, written over; and chunk of each row.
    last_chunk : int
        Chunk whose last block is the tensor's last.
    seen : int64[n_sets, 3]
        Gains, for each set that a message has, its blocks, those of the set that it is added to, and 1 if the tensor's
        last block is among its own: what :func:`cut_messages` needs. Empty where nothing is cut.

    Returns
    -------
    blocks, covers : int64[n]
        Blocks in each message, and in the chunks that it represents.
    n_last : int64[n, 2]
        How often the tensor's last block is among these, and those: a message may hold several lists of one chunk.
    fault, where : int
        0, or what is wrong with which transfer.
    """
    n = transfers.shape[0]
    row_of, chunk_of = held_by
    rows, words = _start(chunk_of, row_of, words)
    free = chunk_of.shape[0]
    blocks, covers, n_last = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros((n, 2), np.int64)
    begin = before = 0
    while begin < n:
        end, n_held = begin, 0
        while end < n and transfers[end]["hop"] == transfers[begin]["hop"]:
            n_held += transfers[end]["count"]
            end += 1
        held = np.empty(n_held, np.int32)
        h = 0
        for i in range(begin, end):
            for a in range(read[i], read[i] + transfers[i]["count"]):
                r = row_of[a]
                if r < 0:
                    return blocks, covers, n_last, UNWRITTEN, i
                size = _size(rows, words, sizes, r)
                held[h] = r
                rows[r]["holders"] += 1
                blocks[i] += size
                chunk = rows[r]["chunk"]
                covers[i] += sizes[chunk]
                has_last = False
                if chunk == last_chunk:
                    bit = sizes[chunk] - 1
                    n_last[i, 1] += 1
                    has_last = (words[r, bit // 64] >> np.uint64(bit % 64)) & np.uint64(1) != 0
                    n_last[i, 0] += has_last
                if len(seen):
                    seen[before + h, 0] += size
                    seen[before + h, 2] += has_last
                h += 1
        h = 0
        for i in range(begin, end):
            for a in range(write[i], write[i] + transfers[i]["count"]):
                r = held[h]
                if transfers[i]["op"] == REDUCE and row_of[a] >= 0:
                    into = row_of[a]
                    if rows[into]["chunk"] != rows[r]["chunk"]:
                        return blocks, covers, n_last, MIXED, i
                    if len(seen):
                        seen[before + h, 1] += _size(rows, words, sizes, into)
                    rows, words, free, row_of[a] = _unite(rows, words, free, sizes, into, r)
                else:
                    if row_of[a] >= 0:
                        free = _let_go(rows, row_of[a], free)
                    row_of[a] = r
                    rows[r]["holders"] += 1
                h += 1
        for h in range(n_held):
            free = _let_go(rows, held[h], free)
        begin, before = end, before + n_held
    return blocks, covers, n_last, 0, -1


@kernel
def cut_messages(
    transfers: Rows,
    read: NDArray[np.int64],
    write: NDArray[np.int64],
    limits: NDArray[np.int64],
    seen: NDArray[np.int64],
    is_held: NDArray[np.bool_],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find what messages have where what transfers write is cut, from what they would have if nothing was.

    Parameters
    ----------
    transfers, read, write, seen
        Same as in :func:`propagate_sets`, which has filled the last.
    limits : int64[n]
        Blocks that what a transfer writes is cut to.
    is_held : bool[n_addresses]
        Whether each address holds a set at the start; written over.

    Returns
    -------
    blocks, n_last : int64[n]
        Blocks in each message, and how often the tensor's last is among them. Where the first depends on values, since
        the message holds a sum of sets that were cut to fewer blocks than it may have, ``-1 - i`` for the transfer i
        that added these.
    """
    n = transfers.shape[0]
    cap_of, caps = np.full(is_held.shape[0], UNLIMITED, np.int64), np.empty(seen.shape[0], np.int64)
    blocks, n_last = np.zeros(n, np.int64), np.zeros(n, np.int64)
    begin = before = 0
    while begin < n:
        end, h = begin, before
        while end < n and transfers[end]["hop"] == transfers[begin]["hop"]:
            for a in range(read[end], read[end] + transfers[end]["count"]):
                caps[h] = cap_of[a]
                if blocks[end] < 0 or caps[h] < 0:
                    blocks[end] = min(blocks[end], caps[h])
                else:
                    blocks[end] += min(seen[h, 0], caps[h])
                if seen[h, 0] <= caps[h]:
                    n_last[end] += seen[h, 2]
                h += 1
            end += 1
        h = before
        for i in range(begin, end):
            for a in range(write[i], write[i] + transfers[i]["count"]):
                if transfers[i]["op"] == REDUCE and is_held[a]:
                    if cap_of[a] < 0 or caps[h] < 0:
                        cap_of[a] = min(cap_of[a], caps[h])
                    elif _is_cut(cap_of[a], limits[i], seen[h, 1]) or _is_cut(caps[h], limits[i], seen[h, 0]):
                        cap_of[a] = -1 - i
                    else:
                        cap_of[a] = limits[i]
                else:
                    is_held[a] = True
                    cap_of[a] = min(caps[h], limits[i])
                h += 1
        begin, before = end, h
    return blocks, n_last


@kernel
def _start(chunk_of: NDArray[np.int32], row_of: NDArray[np.int32], words: Words) -> tuple[Rows, Words]:
    """Return the table of rows, and their words, which have as many again to come."""
    n = chunk_of.shape[0]
    rows = np.zeros(words.shape[0], ROW)
    for r in range(words.shape[0]):
        rows[r]["next_free"] = r + 1
    for r in range(n):
        rows[r]["chunk"], rows[r]["size"] = chunk_of[r], -1
    for r in row_of:
        if r >= 0:
            rows[r]["holders"] += 1
    return rows, words


@kernel
def _enlarged(rows: Rows, words: Words) -> tuple[Rows, Words]:
    """Return copies of twice the size; memory beyond is not touched until it is used."""
    n = rows.shape[0]
    more_rows, more_words = np.zeros(2 * n, ROW), np.empty((2 * n, words.shape[1]), np.uint64)
    for r in range(n):
        more_rows[r] = rows[r]
        for w in range(words.shape[1]):
            more_words[r, w] = words[r, w]
    for r in range(n, 2 * n):
        more_rows[r]["next_free"] = r + 1
    return more_rows, more_words


@kernel
def _size(rows: Rows, words: Words, sizes: NDArray[np.int64], r: int) -> int:
    """Count the blocks of a set, once."""
    if rows[r]["size"] < 0:
        total = np.uint64(0)
        for j in range((sizes[rows[r]["chunk"]] + 63) // 64):
            x = words[r, j]
            x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
            x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
            x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
            x = x + (x >> np.uint64(8))
            x = x + (x >> np.uint64(16))
            total += (x + (x >> np.uint64(32))) & np.uint64(127)
        rows[r]["size"] = np.int64(total)
    return int(rows[r]["size"])


@kernel
def _is_cut(cap: int, limit: int, size: int) -> bool:
    """Whether a set was really cut to `cap`, and more is to be kept now: which blocks are left is not known then."""
    return bool(cap < limit and cap < size)


@kernel
def _unite(
    rows: Rows, words: Words, free: int, sizes: NDArray[np.int64], into: int, r: int
) -> tuple[Rows, Words, int, int]:
    """Unite two sets: in the row `into` if only one address holds it, else in a new one; return which."""
    target = into
    if into == r:
        return rows, words, free, target
    if rows[into]["holders"] > 1:
        if free == rows.shape[0]:
            rows, words = _enlarged(rows, words)
        target, free = free, rows[free]["next_free"]
        rows[target]["chunk"], rows[target]["holders"] = rows[into]["chunk"], 1
        rows[into]["holders"] -= 1
    for j in range((sizes[rows[into]["chunk"]] + 63) // 64):
        words[target, j] = words[into, j] | words[r, j]
    rows[target]["size"] = -1
    return rows, words, free, target


@kernel
def _let_go(rows: Rows, r: int, free: int) -> int:
    """Take one holder from a row, and return the first free row: this one when it has no holder left."""
    rows[r]["holders"] -= 1
    if rows[r]["holders"]:
        return free
    rows[r]["next_free"] = free
    return r
