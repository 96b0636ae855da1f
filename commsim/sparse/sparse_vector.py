"""A vector that keeps only the non-zero elements: sorted indices and their values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.errors import InputError
from commsim.core.value import Value, freeze

from .occupancy import occupancy_of


@dataclass(frozen=True, slots=True, eq=False)
class SparseVector(Value):
    """Elements at some indices of a vector; all others are zero.

    Parameters
    ----------
    n_elements : int
        Length of the vector.
    index : int64[k]
        Rising, each once.
    value : [k]
        Floats or integers, finite. A value may be 0: a sum keeps every index that went into it, as the wire does.

    Raises
    ------
    InputError
        If the indices do not rise or lie outside, there is not one value each, or a value is NaN or infinite.
    """

    n_elements: int
    index: NDArray[np.int64]
    value: NDArray[Any]

    def __post_init__(self) -> None:
        index, value = freeze(self.index, np.int64, name="indices"), np.array(self.value)
        if self.n_elements < 1 or index.ndim != 1 or index.shape != value.shape or value.dtype.kind not in "iuf":
            raise InputError(
                "a sparse vector needs n_elements >= 1 and as many numbers as indices, got "
                f"n_elements={self.n_elements}, {index.shape} indices, {value.shape} values of {value.dtype}"
            )
        if index.size and (index[0] < 0 or index[-1] >= self.n_elements or (np.diff(index) <= 0).any()):
            raise InputError(f"the indices of a sparse vector must rise within 0..{self.n_elements - 1}")
        if not np.isfinite(value).all():
            bad = int(np.isfinite(value).argmin())
            raise InputError(f"a sparse vector must be finite, got {value[bad]} at index {index[bad]}")
        value.setflags(write=False)
        object.__setattr__(self, "index", index)
        object.__setattr__(self, "value", value)

    def __len__(self) -> int:
        return len(self.index)

    @classmethod
    def from_dense(cls, array: ArrayLike, block: int = 1, threshold: float = 0.0) -> SparseVector:
        """Keep the elements of the blocks in which some ``|x| > threshold``; with blocks of 1, the non-zero elements.

        Parameters
        ----------
        array : [n_elements]
            Values.
        block, threshold : int, float
            Same as in :func:`commsim.sparse.occupancy.occupancy_of`.

        Raises
        ------
        InputError
            If a value is NaN or infinite, or this is no vector of numbers.
        """
        dense = np.asarray(array)
        if dense.ndim != 1 or not dense.size or dense.dtype.kind not in "iuf":
            raise InputError(f"a vector must be [n_elements >= 1] numbers, got {dense.dtype} of shape {dense.shape}")
        occupied = occupancy_of([dense], block, threshold).bitmap_of(0)
        index = np.flatnonzero(occupied if block == 1 else np.repeat(occupied, block)[: len(dense)])
        return cls(len(dense), index, dense[index])

    def to_dense(self) -> NDArray[Any]:
        """Return the vector with its zeros, [n_elements]."""
        out = np.zeros(self.n_elements, self.value.dtype)
        out[self.index] = self.value
        return out

    def merge(self, other: SparseVector) -> SparseVector:
        """Return the sum: at an index of both, ``self + other``; at an index of one, its value unchanged.

        Raises
        ------
        InputError
            If lengths or kinds of number differ, or a sum is no finite number any more.
        """
        if (self.n_elements, self.value.dtype) != (other.n_elements, other.value.dtype):
            raise InputError(
                f"cannot add {other.n_elements} elements of {other.value.dtype} to {self.n_elements} of "
                f"{self.value.dtype}"
            )
        index = np.union1d(self.index, other.index)
        value = np.zeros(len(index), self.value.dtype)
        mine, theirs = np.searchsorted(index, self.index), np.searchsorted(index, other.index)
        value[mine] = self.value
        met = np.zeros(len(index), np.bool_)
        met[mine] = True
        both = met[theirs]
        value[theirs[~both]] = other.value[~both]
        with np.errstate(over="ignore"):  # an infinite sum is refused below, by its index
            value[theirs[both]] += other.value[both]
        return SparseVector(self.n_elements, index, value)

    def top_k(self, k: int) -> SparseVector:
        """Return the k elements of largest magnitude; of equals, those of lower index.

        Raises
        ------
        InputError
            If k is below 0 or above the length of the vector.
        """
        if not 0 <= k <= self.n_elements:
            raise InputError(f"top-k of {self.n_elements} elements needs k of 0..{self.n_elements}, got k={k}")
        if k >= len(self):
            return self
        order = np.argsort(-np.abs(self.value.astype(np.float64)), kind="stable")
        return self.at(np.sort(order[:k]))

    def at(self, which: NDArray[Any]) -> SparseVector:
        """Return the elements at some places of the lists: a mask, or rising places."""
        return SparseVector(self.n_elements, self.index[which], self.value[which])

    def without(self, other: SparseVector) -> SparseVector:
        """Return the elements whose index `other` does not have."""
        return self.at(~np.isin(self.index, other.index, assume_unique=True))
