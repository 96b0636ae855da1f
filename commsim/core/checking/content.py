"""What the checker keeps of each address: which ranks' contributions are in it, counted, added up or heard of."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

PRIME = np.uint64(2**61 - 1)
MAX_COUNTED = 2**20


class Content(Protocol):
    """Contributions at addresses."""

    def of(self, ranks: NDArray[np.int64]) -> NDArray[Any]:
        """Return the content that holds one contribution of each of `ranks`."""

    def total(self, ranks: NDArray[np.int64]) -> NDArray[Any]:
        """Return the content that holds one contribution of all `ranks`."""

    def zeros(self, n: int) -> NDArray[Any]:
        """Return the content of `n` empty addresses."""

    def add(self, into: NDArray[Any], where: NDArray[np.int64], what: NDArray[Any]) -> None:
        """Add `what` at `where`, which may name an address several times."""


class Counts:
    """Exact: one counter per rank."""

    def __init__(self, n_ranks: int) -> None:
        self._n = n_ranks

    def of(self, ranks: NDArray[np.int64]) -> NDArray[Any]:
        """See Content."""
        return np.eye(self._n, dtype=np.int64)[ranks]

    def total(self, ranks: NDArray[np.int64]) -> NDArray[Any]:
        """See Content."""
        return np.isin(np.arange(self._n), ranks).astype(np.int64)

    def zeros(self, n: int) -> NDArray[Any]:
        """See Content."""
        return np.zeros((n, self._n), np.int64)

    def add(self, into: NDArray[Any], where: NDArray[np.int64], what: NDArray[Any]) -> None:
        """See Content."""
        np.add.at(into, where, what)
        into[where] = np.minimum(into[where], MAX_COUNTED)  # so that no number of doublings can wrap around to 1


class Fingerprints:
    """One random number per rank, added modulo a prime: O(addresses) memory.

    A wrong multiset of contributions differs from the right one by a non-zero integer combination of independent
    uniform numbers, which vanishes modulo the prime with probability 1/(2**61 - 2) at most (multiplicities below it).
    """

    def __init__(self, n_ranks: int, seed: int) -> None:
        self._number = np.random.default_rng(seed).integers(1, int(PRIME), n_ranks, dtype=np.uint64)

    def of(self, ranks: NDArray[np.int64]) -> NDArray[Any]:
        """See Content."""
        return self._number[ranks]

    def total(self, ranks: NDArray[np.int64]) -> NDArray[Any]:
        """See Content."""
        return np.array(sum(self._number[ranks].tolist()) % int(PRIME), np.uint64)

    def zeros(self, n: int) -> NDArray[Any]:
        """See Content."""
        return np.zeros(n, np.uint64)

    def add(self, into: NDArray[Any], where: NDArray[np.int64], what: NDArray[Any]) -> None:
        """See Content."""
        while where.size:  # one writer of each address at a time; the sum of two residues fits 64 bits
            _, first = np.unique(where, return_index=True)
            into[where[first]] = (into[where[first]] + what[first]) % PRIME
            rest = np.ones(len(where), np.bool_)
            rest[first] = False
            where, what = where[rest], what[rest]


class Heard:
    """Exact at any size, but blind to how often: one bit per rank. For operations that only signal."""

    def __init__(self, n_ranks: int) -> None:
        self._n = n_ranks

    def of(self, ranks: NDArray[np.int64]) -> NDArray[Any]:
        """See Content."""
        bits = self.zeros(len(ranks))
        bits[np.arange(len(ranks)), ranks // 8] = 128 >> (ranks % 8)
        return bits

    def total(self, ranks: NDArray[np.int64]) -> NDArray[Any]:
        """See Content."""
        heard = self.zeros(1)
        self.add(heard, np.zeros(len(ranks), np.int64), self.of(ranks))
        return heard.reshape(-1)

    def zeros(self, n: int) -> NDArray[Any]:
        """See Content."""
        return np.zeros((n, -(-self._n // 8)), np.uint8)

    def add(self, into: NDArray[Any], where: NDArray[np.int64], what: NDArray[Any]) -> None:
        """See Content."""
        np.bitwise_or.at(into, where, what)
