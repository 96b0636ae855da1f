"""Which server sums which key: by ranges, by the hashes of BytePS, or by its mixed mode; and how uneven that is.

Hashes are of the key's decimal digits, in 64 bits that wrap around. They are our own implementation of published
functions, and give the numbers that BytePS gives, which a test has worked by hand.

References
----------
Jiang et al. (BytePS), OSDI 2020; its server assignment is in ``byteps/common/global.cc``. djb2 is due to Bernstein,
sdbm to Yigit. Li et al. (parameter server), OSDI 2014, section 4.2: ranges of keys.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collectives.servers.closed_forms import byteps_split
from commsim.core.errors import InputError
from commsim.core.layouts import chunk_bounds

PARTITION_BITS = 16
MIXED_MODE_BOUND = 101
_WORD = 2**64


def partition_keys(
    tensor_bytes: ArrayLike, partition_bytes: int = 4_096_000
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Cut tensors into partitions, and number them: tensor t's i-th has the key ``t << 16 | i``.

    Parameters
    ----------
    tensor_bytes : int64[n_tensors]
        Sizes of the tensors.
    partition_bytes : int
        Largest partition.

    Returns
    -------
    key, n_bytes : int64[n_partitions]
        Partitions of the first tensor first.

    Raises
    ------
    InputError
        If a tensor is empty, or has more partitions than keys have room for.
    """
    sizes = np.asarray(tensor_bytes, np.int64).ravel()
    if partition_bytes < 1:
        raise InputError(f"a partition needs at least 1 byte, got {partition_bytes}")
    if sizes.size and sizes.min() < 1:
        raise InputError(f"a tensor needs at least 1 byte, got {sizes.min()}")
    counts = -(-sizes // partition_bytes)
    if counts.size and counts.max() > 2**PARTITION_BITS:
        raise InputError(
            f"a tensor of {sizes[counts.argmax()]} bytes has {counts.max()} partitions of {partition_bytes} bytes; "
            f"at most {2**PARTITION_BITS} have keys"
        )
    tensor = np.repeat(np.arange(len(sizes)), counts)
    i = np.arange(len(tensor)) - np.repeat(np.cumsum(counts) - counts, counts)
    return tensor << PARTITION_BITS | i, np.minimum(partition_bytes, sizes[tensor] - i * partition_bytes)


def djb2(key: int) -> int:
    """Hash by 33 times the hash, plus the next digit, from 5381."""
    value = 5381
    for digit in str(key).encode():
        value = (value * 33 + digit) % _WORD
    return value


def sdbm(key: int) -> int:
    """Hash by 65599 times the hash, plus the next digit, from 0."""
    value = 0
    for digit in str(key).encode():
        value = (value * 65599 + digit) % _WORD
    return value


def naive(key: int) -> int:
    """Hash by tensor plus partition, times 9973."""
    return ((key >> PARTITION_BITS) + key % (1 << PARTITION_BITS)) * 9973 % _WORD


HASHES: dict[str, Callable[[int], int]] = {"djb2": djb2, "naive": naive, "sdbm": sdbm}


def by_hash(keys: ArrayLike, n_servers: int, name: str = "djb2") -> NDArray[np.int64]:
    """Server of each key: its hash modulo their number.

    Raises
    ------
    InputError
        If there is no server, or no such hash.
    """
    _require_servers(n_servers)
    if name not in HASHES:
        raise InputError(f"unknown hash {name!r}; known: {', '.join(HASHES)}")
    return np.array([HASHES[name](key) % n_servers for key in np.asarray(keys, np.int64).tolist()], np.int64)


def by_range(n_bytes: ArrayLike, n_servers: int) -> NDArray[np.int64]:
    """Server of each partition when each takes an equal run of bytes; a partition goes where its middle is."""
    _require_servers(n_servers)
    sizes = np.asarray(n_bytes, np.int64)
    middle = np.cumsum(sizes) - (sizes + 1) // 2
    bounds = chunk_bounds(int(sizes.sum()), n_servers)
    return np.searchsorted(bounds, middle, side="right").astype(np.int64) - 1


def by_mixed_mode(keys: ArrayLike, n: int, k: int, bound: int = MIXED_MODE_BOUND) -> NDArray[np.int64]:
    """Server of each key by BytePS's mixed mode: CPU machines 0..k-1, then GPU machines k..k+n-1.

    The hash falls into one of `bound` classes. Those below theorem 1's share of the CPU machines, times `bound`, are
    theirs, the others the GPU machines'; a second hash, of the class, chooses among them. So whole classes move, and a
    small bound is uneven.

    Parameters
    ----------
    keys : int64[n_keys]
        From :func:`partition_keys`.
    n, k : int
        GPU machines and CPU machines.
    bound : int
        Classes; at least as many as servers.

    Raises
    ------
    InputError
        If there are more CPU than GPU machines, or fewer classes than servers.
    """
    share = byteps_split(n, k).to_cpus if n > 1 else Fraction(0)
    if bound < n + k:
        raise InputError(f"mixed mode needs a bound of at least {n + k}, the number of servers, got {bound}")
    classes = np.array([djb2(key) % bound for key in np.asarray(keys, np.int64).tolist()], np.int64)
    of_class = np.array([djb2(c) % k if c < share * bound else k + djb2(c) % n for c in range(bound)], np.int64)
    return np.asarray(of_class[classes])


def imbalance(server: ArrayLike, n_bytes: ArrayLike, share: ArrayLike) -> float:
    """How many times the bytes of its fair share the worst server has.

    Parameters
    ----------
    server, n_bytes : int64[n_partitions]
        Server and size of each partition.
    share : float64[n_servers]
        Part of all bytes that each should have; servers that should have none, and have none, do not count.

    Raises
    ------
    InputError
        If the shares do not add up to 1, or there are no bytes.
    """
    wanted = np.asarray(share, np.float64)
    load = np.bincount(np.asarray(server, np.int64), np.asarray(n_bytes, np.float64), len(wanted))
    if not load.sum() or abs(wanted.sum() - 1) > 1e-9:
        raise InputError(
            f"shares must add up to 1 and there must be bytes, got {wanted.sum()} and {load.sum():.0f} bytes"
        )
    used = (wanted > 0) | (load > 0)
    with np.errstate(divide="ignore"):
        return float((load[used] / load.sum() / wanted[used]).max())


def _require_servers(n_servers: int) -> None:
    if n_servers < 1:
        raise InputError(f"keys need n_servers of at least 1, got n_servers={n_servers}")
