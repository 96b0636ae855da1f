"""Drawn occupancies of long tensors, in segments that are drawn again whenever they are looked at."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.limits import expect

from .bitmap import WORD
from .generate import bytes_of_draw, checked_counts, drawn_occupancy, set_bits, zipf_keys
from .long_occupancy import AnyOccupancy, make_occupancy
from .occupancy import packed, unpacked

# Memory that the draw of a whole tensor may take, bytes, and blocks of a segment.
WHOLE, SEGMENT = 2.0**27, 2**20
# Seconds to draw a block of a segment: in all, and if it is not zero; a key of zipf; and how often that is done.
PER_BLOCK, PER_DRAW, PER_KEY, TIMES = 1e-9, 20e-9, 25e-9, 3
# Intervals in which keys of zipf are counted, from the least logarithm of a number to the largest.
INTERVALS, LEAST, MOST = 2**16, -50.0, 5.0

# From a segment to the words of its blocks, uint64[n_ranks, n].
Draw: TypeAlias = Callable[[int], NDArray[np.uint64]]


def draw_segments(
    n_ranks: int,
    n_elements: int,
    *,
    density: float,
    block: int = 1,
    pattern: str = "random",
    seed: int = 0,
    exponent: float = 1.0,
) -> AnyOccupancy:
    """Draw the non-zero blocks of each rank, of long tensors in segments.

    Segments are of 2^20 blocks. Each has its share of a rank's blocks, rounded, except by zipf, and rank r draws those
    of segment s from ``numpy.random.default_rng([r, seed, s])``. A draw that takes at most 128 MiB is that of the whole
    tensor.

    Parameters
    ----------
    n_ranks, n_elements, density, block, pattern, seed, exponent
        Same as in :func:`.generate.drawn_occupancy`.

    Raises
    ------
    InputError
        As :func:`.generate.drawn_occupancy`.
    """
    n_blocks, count = checked_counts(n_ranks, n_elements, density, block, pattern, seed, exponent)
    if bytes_of_draw(n_ranks, n_blocks, count, pattern) <= WHOLE:
        return drawn_occupancy(
            n_ranks, n_elements, density=density, block=block, pattern=pattern, seed=seed, exponent=exponent
        )
    zipf = pattern == "zipf"
    once, more = (n_blocks * PER_KEY, 2) if zipf else (n_blocks * PER_BLOCK + count * PER_DRAW, 0)
    expect((TIMES + more) * n_ranks * once,
           f"drawing {density:.3g} of {n_blocks:.2g} blocks for each of {n_ranks} ranks",
           "a smaller size, a smaller density or fewer ranks")  # fmt: skip
    draw = (
        _popular(n_ranks, n_blocks, count, seed, exponent) if zipf else _shares(n_ranks, n_blocks, count, pattern, seed)
    )
    kept = functools.lru_cache(maxsize=2)(draw)  # blocks of another size may begin inside a segment
    return make_occupancy(n_ranks, n_elements, block, functools.partial(_piece, kept))


def drawn_parts(
    n_ranks: int,
    parts: Sequence[tuple[float, float]],
    *,
    block: int = 1,
    pattern: str = "random",
    seed: int = 0,
    exponent: float = 1.0,
) -> AnyOccupancy:
    """Draw the occupancy of an array of several tensors, each with a density of its own.

    Parameters
    ----------
    n_ranks : int
        Ranks.
    parts : sequence of (float, float)
        Elements and density of each tensor, in the order of the array. A block that two share counts to the one that
        has more of it.
    block, pattern, exponent
        Same as in :func:`.generate.drawn_occupancy`.
    seed : int
        Seed of the first tensor's draws; the next has the next one.

    Raises
    ------
    InputError
        If a density is not in 0..1, or as :func:`.generate.drawn_occupancy`.
    """
    elements, densities = np.array(parts, np.float64).reshape(-1, 2).T
    if not ((densities >= 0) & (densities <= 1)).all():
        raise InputError(f"a density is 0..1, got {densities.min():g}..{densities.max():g}")
    n_elements = max(1, round(float(elements.sum())))
    ends = np.rint(np.cumsum(elements) / block).astype(np.int64)
    ends[-1] = -(-n_elements // block)
    n_blocks = np.diff(np.minimum(ends, ends[-1]), prepend=0)
    # A tensor may be smaller than half a block, and have none; one may be all zeros.
    own = [
        (begin, draw_segments(n_ranks, n, density=d, pattern=pattern, seed=seed + i, exponent=exponent))
        for i, (begin, n, d) in enumerate(
            zip(np.cumsum(n_blocks) - n_blocks, n_blocks.tolist(), densities, strict=True)
        )
        if n and d
    ]

    def make(first: int, stop: int) -> NDArray[np.uint64]:
        bits = np.zeros((n_ranks, stop - first), np.bool_)
        for begin, part in own:
            low, high = max(first - begin, 0), min(stop - begin, part.n_blocks)
            if low >= high:
                continue
            at = low // WORD * WORD
            words = part.piece(at, min(-(-high // WORD) * WORD, part.n_blocks))
            for row, of_rank in zip(bits, words, strict=True):
                row[low + begin - first : high + begin - first] = unpacked(of_rank, high - at)[low - at :]
        return packed(bits)

    return make_occupancy(n_ranks, n_elements, block, make)


def _shares(n_ranks: int, n_blocks: int, count: int, pattern: str, seed: int) -> Draw:
    """Return what draws the words of a segment, in which each rank has its share of blocks."""
    n_draws = 1 if pattern == "overlapping" else n_ranks

    def draw(segment: int) -> NDArray[np.uint64]:
        first, stop = segment * SEGMENT, min((segment + 1) * SEGMENT, n_blocks)
        words = np.zeros((n_ranks, -(-(stop - first) // WORD)), np.uint64)
        if pattern == "disjoint":  # what any rank has, which the ranks take in turn
            low, high = (n_ranks * count * at // n_blocks for at in (first, stop))
            order = np.random.default_rng([0, seed, segment]).permutation(stop - first)[: high - low]
            for rank in range(n_ranks):
                set_bits(words[rank], order[(rank - low) % n_ranks :: n_ranks])
            return words
        share = count * stop // n_blocks - count * first // n_blocks
        for rank in range(n_draws):
            rng = np.random.default_rng([rank, seed, segment])
            set_bits(words[rank], rng.choice(stop - first, share, replace=False, shuffle=False))
        words[n_draws:] = words[0]
        return words

    return draw


def _popular(n_ranks: int, n_blocks: int, count: int, seed: int, exponent: float) -> Draw:
    """Return what draws the words of a segment by zipf: blocks whose keys are among a rank's smallest of all."""

    def keys(rank: int, segment: int) -> NDArray[np.float64]:
        n = min(SEGMENT, n_blocks - segment * SEGMENT)
        return zipf_keys(np.random.default_rng([rank, seed, segment]), segment * SEGMENT, n, exponent)

    def all_keys(rank: int) -> Iterator[NDArray[np.float64]]:
        return (keys(rank, segment) for segment in range(-(-n_blocks // SEGMENT)))

    most = MOST + exponent * float(np.log(n_blocks))
    largest = [_smallest(functools.partial(all_keys, rank), count, most) for rank in range(n_ranks)]

    def draw(segment: int) -> NDArray[np.uint64]:
        return np.concatenate([packed((keys(rank, segment) <= key)[np.newaxis]) for rank, key in enumerate(largest)])

    return draw


def _smallest(keys: Callable[[], Iterator[NDArray[np.float64]]], count: int, most: float) -> float:
    """Return the largest of the `count` smallest keys, of which only those of one interval are held."""
    if not count:
        return -np.inf

    def interval(part: NDArray[np.float64]) -> NDArray[np.int64]:
        return ((part.clip(LEAST, most) - LEAST) * ((INTERVALS - 1) / (most - LEAST))).astype(np.int64)

    up_to = np.cumsum(sum(np.bincount(interval(part), minlength=INTERVALS) for part in keys()))
    at = int(np.searchsorted(up_to, count))
    inside = np.concatenate([part[interval(part) == at] for part in keys()])
    place = count - 1 - (int(up_to[at - 1]) if at else 0)
    return float(np.partition(inside, place)[place])


def _piece(draw: Draw, first: int, stop: int) -> NDArray[np.uint64]:
    """Draw the words of some blocks."""
    segments = range(first // SEGMENT, -(-stop // SEGMENT))
    begin = (first - segments.start * SEGMENT) // WORD
    words = np.concatenate([draw(segment) for segment in segments], axis=1)
    words = np.ascontiguousarray(words[:, begin : begin + -(-(stop - first) // WORD)])
    words.setflags(write=False)
    return words
