"""Drawn occupancies and gradients: how non-zero blocks lie without real gradients."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import DTypeLike, NDArray

from commsim.core.errors import InputError, unknown_name
from commsim.core.limits import expect, expect_bytes

from .bitmap import WORD
from .occupancy import Occupancy

Pattern = Literal["random", "overlapping", "disjoint", "zipf"]
PATTERNS: tuple[str, ...] = get_args(Pattern)
# Largest drawn data: blocks of a rank, and bits of all ranks (8 GiB).
MOST_BLOCKS, MOST_BITS = 2**32, 2**36
# Seconds to draw and sort in a block: of a permutation of all blocks, and one by one, as NumPy draws up to one in 50.
PER_BLOCK, PER_DRAW, FEW = 70e-9, 150e-9, 50
# Draws whose bits are set at once, and blocks whose keys are computed at once.
PIECE = 2**16
# Bytes meanwhile: of a permutation a number for each block, of single draws one for each and the table to find it; of
# zipf a key and a place for each block.
PERMUTED_BYTES, DRAWN_BYTES, ZIPF_BYTES = 8, 24, 16


def drawn_occupancy(
    n_ranks: int,
    n_elements: int,
    *,
    density: float,
    block: int = 1,
    pattern: str = "random",
    seed: int = 0,
    exponent: float = 1.0,
) -> Occupancy:
    """Draw exactly ``round(density * n_blocks)`` non-zero blocks for each rank; of a small tensor that may be none.

    Rank r draws from ``numpy.random.default_rng([r, seed])``, which with seed 0 is ``default_rng(r)``, by
    ``choice(n_blocks, k, replace=False, shuffle=False)``.

    Parameters
    ----------
    n_ranks, n_elements : int
        Ranks, and elements of the tensor.
    density : float
        Share of blocks that are not zero, above 0 and at most 1.
    block : int
        Elements of a block.
    pattern : {"random", "overlapping", "disjoint", "zipf"}
        Each rank draws for itself; all have the blocks that rank 0 draws; no two ranks share a block; or each draws
        for itself with block b as likely as ``(b + 1) ** -exponent``, as rows of an embedding by popularity.
    seed : int
        Seed of the draws.
    exponent : float
        Exponent of zipf.

    Raises
    ------
    InputError
        If the density is not in (0, 1], the pattern is unknown, disjoint blocks do not fit, or the data is too large to
        draw.

    References
    ----------
    sands-lab/omnireduce-experiments, benchmark/benchmark.py: random by seed = rank, overlapping, disjoint.
    """
    n_blocks, count = checked_counts(n_ranks, n_elements, density, block, pattern, seed, exponent)
    permuted = pattern == "zipf" or count * FEW > n_blocks
    n_draws = 1 if pattern in ("disjoint", "overlapping") else n_ranks
    expect(n_draws * (n_blocks * PER_BLOCK if permuted else count * PER_DRAW),
           f"drawing {density:.3g} of {n_blocks:.2g} blocks for each of {n_ranks} ranks",
           "a smaller size, a smaller density or fewer ranks")  # fmt: skip
    expect_bytes(bytes_of_draw(n_ranks, n_blocks, count, pattern),
                 f"{density:.3g} of {n_blocks:.2g} blocks for each of {n_ranks} ranks",
                 "a smaller size, larger blocks or fewer ranks")  # fmt: skip
    words = np.zeros((n_ranks, -(-n_blocks // WORD)), np.uint64)
    if pattern == "disjoint":
        order = np.random.default_rng([0, seed]).permutation(n_blocks)
        for rank in range(n_ranks):
            set_bits(words[rank], order[rank * count : (rank + 1) * count])
    elif pattern == "zipf":
        for rank in range(n_ranks):
            keys = zipf_keys(np.random.default_rng([rank, seed]), 0, n_blocks, exponent)
            set_bits(words[rank], np.argpartition(keys, count - 1)[:count])
    else:
        for rank in range(n_draws):
            drawn = np.random.default_rng([rank, seed]).choice(n_blocks, count, replace=False, shuffle=False)
            set_bits(words[rank], drawn)
        words[n_draws:] = words[0]
    words.setflags(write=False)
    return Occupancy(n_elements, block, words)


def checked_counts(
    n_ranks: int, n_elements: int, density: float, block: int, pattern: str, seed: int, exponent: float
) -> tuple[int, int]:
    """Return the blocks of a tensor, and how many of them are drawn for each rank.

    Parameters
    ----------
    n_ranks, n_elements, density, block, pattern, seed, exponent
        Same as in :func:`drawn_occupancy`.

    Raises
    ------
    InputError
        If these are none that can be drawn.
    """
    if n_ranks < 1 or n_elements < 1 or block < 1 or seed < 0:
        raise InputError(
            "a drawn occupancy needs n_ranks, n_elements and block of at least 1 and seed of at least 0, got "
            f"{n_ranks}, {n_elements}, {block} and {seed}"
        )
    n_blocks = -(-n_elements // block)
    if n_blocks > MOST_BLOCKS or n_ranks * n_blocks > MOST_BITS:
        raise InputError(f"{n_ranks} ranks with {n_blocks} blocks each of drawn data do not fit into memory")
    if not 0 < density <= 1:
        raise InputError(f"density must be above 0 and at most 1, got {density}")
    if pattern not in PATTERNS:
        raise unknown_name("pattern", pattern, PATTERNS)
    if pattern == "zipf" and not 0 <= exponent < 100:
        raise InputError(f"the exponent of zipf must be at least 0 and below 100, got {exponent}")
    count = round(density * n_blocks)
    if pattern == "disjoint" and n_ranks * count > n_blocks:
        raise InputError(f"{n_ranks} ranks cannot have {count} of {n_blocks} blocks each without sharing any")
    return n_blocks, count


def bytes_of_draw(n_ranks: int, n_blocks: int, count: int, pattern: str) -> float:
    """Memory that it takes to draw the words of all ranks, bytes."""
    each = n_blocks * PERMUTED_BYTES if count * FEW > n_blocks else count * DRAWN_BYTES
    return n_ranks * n_blocks / 8 + (n_blocks * ZIPF_BYTES if pattern == "zipf" else each)


def drawn_gradients(
    occupancy: Occupancy, *, seed: int = 0, dtype: DTypeLike = np.float32, whole: bool = False
) -> NDArray[Any]:
    """Draw a gradient for each rank that has exactly the given non-zero blocks.

    Parameters
    ----------
    occupancy : Occupancy
        Blocks that are not zero.
    seed : int
        Rank r draws from ``numpy.random.default_rng([r, seed, 1])``.
    dtype : dtype
        Data type of the values.
    whole : bool
        Whole numbers 1..8 with a sign in place of a normal distribution: their float sums are exact.

    Returns
    -------
    [n_ranks, n_elements]
        No element of a non-zero block is 0.
    """
    kind = np.dtype(dtype)
    if kind.kind not in "if":
        raise InputError(f"gradients are floats or signed integers, got {kind}")
    out = np.zeros((occupancy.n_ranks, occupancy.n_elements), kind)
    for rank in range(occupancy.n_ranks):
        rng = np.random.default_rng([rank, seed, 1])
        present = np.repeat(occupancy.bitmap_of(rank), occupancy.block)[: occupancy.n_elements]
        n = int(present.sum())
        exact = whole or kind.kind == "i"
        drawn = rng.integers(1, 9, n) * rng.choice((-1, 1), n) if exact else rng.standard_normal(n)
        values = drawn.astype(kind)
        values[values == 0] = 1  # a normal number may be 0, or too small for the kind
        out[rank, present] = values
    return out


def zipf_keys(rng: np.random.Generator, first: int, n: int, exponent: float) -> NDArray[np.float64]:
    """Draw a number for each of n blocks: the k smallest are k blocks drawn without replacement by their weights.

    It is the logarithm of an exponential number over the block's weight.
    """
    keys = rng.standard_exponential(n)
    for at in range(0, n, PIECE):
        part = keys[at : at + PIECE]
        part[:] = np.log(part) + exponent * np.log(np.arange(first + at + 1, first + at + len(part) + 1))
    return keys


def set_bits(row: NDArray[np.uint64], drawn: NDArray[np.int64]) -> None:
    """Set the bits of some blocks in the words of a rank."""
    if len(drawn) * 8 < len(row) * WORD:  # then one byte for each block would be more than the draws
        for at in range(0, len(drawn), PIECE):
            some = drawn[at : at + PIECE]
            np.bitwise_or.at(row, some // WORD, np.uint64(1) << (some % WORD).astype(np.uint64))
        return
    bits = np.zeros(len(row) * WORD, np.bool_)
    bits[drawn] = True
    row[:] = np.packbits(bits, bitorder="little").view(np.uint64)
