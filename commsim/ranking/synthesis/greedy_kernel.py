"""Greedy sending of chunks to all ranks: whenever a way is free, the rarest chunk that is of use goes over it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel

Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]

# A rank's neighbours reach it in up to so many times the time of the nearest.
NEIGHBOURS = 1.5


class RankRoutes(NamedTuple):
    """One way from a rank to each rank that it reaches past switches only."""

    src: Numbers  # [n_ways]
    dst: Numbers  # [n_ways]
    first: Numbers  # [n_ways + 1], rows of `link`
    link: Numbers  # [sum of lengths]
    busy: Floats  # [sum of lengths], s that one chunk keeps the link for
    takes: Floats  # [n_ways], s from the start of a chunk to its arrival, if nothing is in its way
    between: Floats  # [n_ranks, n_ranks], the same by ranks; infinite without a way


@kernel
def send_rarest(
    ways: RankRoutes, order: Numbers, patience: float, seed: int, free: Floats, have: Floats, sent: Floats
) -> int:
    """Send until every rank has every chunk; return the number of messages, or -1 if that never happens.

    Time goes from event to event. At each, ways are asked in a given order. A way that is free takes, of the chunks
    that its sender has and its receiver neither has nor waits for, one that the fewest of the receiver's neighbours
    have, and of those one that the fewest ranks have; but not if the receiver is better served by another rank that
    has the chunk or waits for it. What crosses a slow link is thus spread at once, however common it is beyond.

    Parameters
    ----------
    ways : RankRoutes
        Ways that chunks can take.
    order : int64[n_ways]
        Order in which the ways are asked.
    patience : float
        A way is refused if it takes more than so many times what the best one takes, waiting included.
    seed : int
        Seed of the choice among chunks that are equally rare.
    free : float64[n_links], s
        Zeros; gets when each link is free again.
    have : float64[n_ranks, n_chunks], s
        0 where a rank has a chunk, else infinite; gets when it arrives.
    sent : float64[n_messages, 4]
        Gets way, chunk, start and arrival of each message, by start.
    """
    n_ranks, n_chunks = have.shape
    holders, near = np.zeros(n_chunks, np.int64), np.zeros((n_ranks, n_chunks), np.int64)
    reach = np.full(n_ranks, np.inf)  # those that reach a rank in so short a time are its neighbours
    for v in range(n_ranks):
        for r in range(n_ranks):
            reach[v] = min(reach[v], NEIGHBOURS * ways.between[r, v])
    missing = 0
    for c in range(n_chunks):
        for r in range(n_ranks):
            if have[r, c] < np.inf:
                holders[c] += 1
                _count_near(ways, reach, near, r, c)
            else:
                missing += 1
    n_sent, now, state = 0, 0.0, seed
    while missing > 0:
        for i in range(len(order)):
            w = order[i]
            open_now = True
            for e in range(ways.first[w], ways.first[w + 1]):
                open_now &= free[ways.link[e]] <= now
            if not open_now:
                continue
            u, v = ways.src[w], ways.dst[w]
            state = (state * 1103515245 + 12345) % 2147483648
            begin = state % n_chunks  # so that equally rare ones are taken in no fixed order
            best = -1
            for j in range(n_chunks):
                c = (begin + j) % n_chunks
                wanted = have[u, c] <= now and have[v, c] == np.inf
                rarer = best < 0 or (near[v, c], holders[c]) < (near[v, best], holders[best])
                if wanted and rarer and _serves(ways, have, now, patience, w, c):
                    best = c
            if best < 0:
                continue
            for e in range(ways.first[w], ways.first[w + 1]):
                free[ways.link[e]] = now + ways.busy[e]
            have[v, best] = now + ways.takes[w]
            holders[best] += 1
            _count_near(ways, reach, near, v, best)
            missing -= 1
            sent[n_sent, 0], sent[n_sent, 1], sent[n_sent, 2], sent[n_sent, 3] = w, best, now, have[v, best]
            n_sent += 1
        then = np.inf
        for e in range(len(free)):
            if free[e] > now:
                then = min(then, free[e])
        for r in range(n_ranks):
            for c in range(n_chunks):
                if have[r, c] > now:
                    then = min(then, have[r, c])
        if missing > 0 and then == np.inf:
            return -1
        now = then
    return n_sent


@kernel
def _count_near(ways: RankRoutes, reach: Floats, near: Numbers, r: int, c: int) -> None:
    """Count a rank that has, or waits for, a chunk at all whose neighbour it is."""
    for v in range(len(near)):
        if ways.between[r, v] <= reach[v]:
            near[v, c] += 1


@kernel
def _serves(ways: RankRoutes, have: Floats, now: float, patience: float, w: int, c: int) -> bool:
    """Whether no other rank can bring the chunk so much sooner that it is worth the wait."""
    v = ways.dst[w]
    soonest = ways.takes[w]
    for r in range(len(have)):
        if have[r, c] < np.inf:
            soonest = min(soonest, max(have[r, c] - now, 0.0) + ways.between[r, v])
    return bool(ways.takes[w] <= soonest * patience)
