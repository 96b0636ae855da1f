"""What ASTRA-sim's system layer does over several dimensions: one phase after the other, each along one of them.

An all-gather begins with the last dimension, all else with the first. An all-reduce is one in every dimension in turn
(``baseline``), or scatters what it reduces up to the last dimension and gathers on the way back (``localBWAware``).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from collectives.dense.double_tree import double_tree_all_reduce
from commsim.core.errors import InputError
from commsim.core.program import Program
from commsim.core.schedule import Schedule

RING, DIRECT, HALVING, TREE = "ring", "direct", "halvingDoubling", "doubleBinaryTree"
BASELINE, LOCAL = "baseline", "localBWAware"
TREE_CHUNKS = 64
MAX_TRANSFERS = 2**22
Ranks = NDArray[np.int64]


class Phases:
    """Writes the phases of one collective.

    Parameters
    ----------
    ways : tuple of str
        How it is done in each dimension: ``ring``, ``direct``, ``halvingDoubling`` or ``doubleBinaryTree``.
    sizes : tuple of int
        Hosts along each dimension; those along the first are consecutive.
    nearest : bool
        Whether halving exchanges the largest half with the nearest partner, as ASTRA-sim does. Then the block that is
        at home in a place is not the one of its number, which only a reduce-scatter or an all-gather needs.
    """

    def __init__(self, ways: tuple[str, ...], sizes: tuple[int, ...], *, nearest: bool = True) -> None:
        n = math.prod(sizes)
        self.ways, self.sizes, self.nearest = ways, sizes, nearest
        self.p = Program(n, n * (2 * TREE_CHUNKS if TREE in ways else 1))
        self.rank = np.arange(n)
        self.strides = [math.prod(sizes[:k]) for k in range(len(sizes))]
        self.first = np.zeros(n, np.int64)
        """Where the part of the array begins that each rank works on."""
        self.width = self.p.n_chunks

    def place(self, k: int) -> Ranks:
        """Return where each rank is along dimension k."""
        return np.asarray(self.rank // self.strides[k] % self.sizes[k])

    def home(self, k: int) -> Ranks:
        """Return the block that is at home in each rank's place: its bits reversed where halving begins with the last.

        Halves stay in one piece then: who exchanges by the lowest bit first keeps half of the blocks by the highest.
        """
        place = self.place(k)
        if self.ways[k] != HALVING or not self.nearest:
            return place
        mirrored, bits = np.zeros_like(place), self.sizes[k].bit_length() - 1
        for bit in range(bits):
            mirrored |= (place >> bit & 1) << (bits - 1 - bit)
        return mirrored

    def narrow(self, k: int) -> None:
        """From now on, work on the block that is at home here along dimension k."""
        self.width //= self.sizes[k]
        self.first = self.first + self.home(k) * self.width

    def widen(self, k: int) -> None:
        """Undo :meth:`narrow`."""
        self.first = self.first - self.home(k) * self.width
        self.width *= self.sizes[k]

    def reduce_scatter(self, k: int) -> None:
        """Add up along dimension k, each block at home in its own place."""
        n, here, write = self.sizes[k], self.place(k), self.p.reduce
        if self.ways[k] == RING:
            for hop in range(n - 1):
                self._hop(write, k, [((here + 1) % n, (here - 1 - hop) % n, 1)])
        elif self.ways[k] == DIRECT:
            self._hop(write, k, [((here + d) % n, (here + d) % n, 1) for d in range(1, n)])
        elif self.ways[k] == HALVING:
            for d, count in reversed(self._exchanges(k)):
                there = self.home(k)[self.rank + ((here ^ d) - here) * self.strides[k]]
                self._hop(write, k, [(here ^ d, there // count * count, count)])
        else:
            raise self._unknown(k, "reduce-scatter or all-gather")

    def all_reduce(self, k: int) -> None:
        """Add up along dimension k, everything everywhere."""
        if self.ways[k] == TREE:
            self._tree(k)
            return
        self.reduce_scatter(k)
        self.all_gather(k)

    def all_gather(self, k: int) -> None:
        """Bring the blocks that are at home along dimension k to all of it."""
        n, here, write = self.sizes[k], self.place(k), self.p.copy
        if self.ways[k] == RING:
            for hop in range(n - 1):
                self._hop(write, k, [((here + 1) % n, (here - hop) % n, 1)])
        elif self.ways[k] == DIRECT:
            self._hop(write, k, [((here + d) % n, here, 1) for d in range(1, n)])
        else:
            for d, count in self._exchanges(k):
                self._hop(write, k, [(here ^ d, self.home(k) // count * count, count)])

    def all_to_all(self, k: int) -> None:
        """Exchange blocks along dimension k; what comes next waits for all of them."""
        if self.ways[k] != DIRECT:
            raise self._unknown(k, "all-to-all")
        n, here, width = self.sizes[k], self.place(k), self.width // self.sizes[k]
        there = np.concatenate([(here + d) % n for d in range(1, n)])
        here, rank = np.tile(here, n - 1), np.tile(self.rank, n - 1)
        to = rank + (there - here) * self.strides[k]
        self.p.copy(src_chunk=there * width, dst_chunk=here * width, src=rank, dst=to, count=width)
        self.p.fence()

    def _hop(self, write: Callable[..., None], k: int, messages: list[tuple[Ranks, Ranks, int]]) -> None:
        """Write one hop of messages: to which place, which block first, and how many."""
        width, here = self.width // self.sizes[k], self.place(k)
        to = np.concatenate([self.rank + (there - here) * self.strides[k] for there, _, _ in messages])
        chunk = np.concatenate([self.first + block * width for _, block, _ in messages])
        write(chunk, src=np.tile(self.rank, len(messages)), dst=to, count=messages[0][2] * width)

    def _tree(self, k: int) -> None:
        tree = double_tree_all_reduce(self.sizes[k], TREE_CHUNKS)
        width = self.width // tree.n_chunks
        line = self.rank[self.place(k) == 0]
        for hop in tree.rounds():
            for number in np.unique(hop["hop"]):
                t = hop[hop["hop"] == number]
                src, dst = ((line[:, None] + t[end] * self.strides[k]).ravel() for end in ("src", "dst"))
                chunk = (self.first[line][:, None] + t["src_chunk"] * width).ravel()
                write = self.p.reduce if t["op"][0] else self.p.copy
                write(chunk, src=src, dst=dst, count=width, channel=np.tile(t["channel"], len(line)))

    def _exchanges(self, k: int) -> list[tuple[int, int]]:
        """Return the distance of each exchange of an all-gather, and its blocks; a reduce-scatter has them reversed."""
        n = self.sizes[k]
        if self.ways[k] != HALVING:
            raise self._unknown(k, "reduce-scatter or all-gather")
        if n & (n - 1):
            raise InputError(f"{HALVING} needs a power of two of hosts, and dimension {k} has {n}")
        counts = [2**i for i in range(n.bit_length() - 1)]
        return [(n // 2 // count if self.nearest else count, count) for count in counts]

    def _unknown(self, k: int, what: str) -> InputError:
        return InputError(f"what ASTRA-sim does for an {what} by {self.ways[k]} is unknown (dimension {k})")


def schedule_of_ways(operation: str, ways: tuple[str, ...], sizes: tuple[int, ...], optimization: str) -> Schedule:
    """Build what the system layer does.

    Parameters
    ----------
    operation : str
        Our name, such as ``all_reduce``.
    ways, sizes : tuple of str, tuple of int
        Same as in :class:`Phases`.
    optimization : {"baseline", "localBWAware"}
        Phases that an all-reduce has.

    Returns
    -------
    Schedule
        Its name says all of the arguments. Over several dimensions anything but an all-reduce is a ``custom`` one,
        since the blocks of a rank are then not those that its number says.

    Raises
    ------
    InputError
        If that is not known, or there would be too many messages.
    """
    n, last = math.prod(sizes), len(sizes) - 1
    if n * 2 * sum(sizes) * (2 * TREE_CHUNKS if TREE in ways else 1) > MAX_TRANSFERS:
        raise InputError(f"{operation} over {n} hosts by {', '.join(ways)}: more than {MAX_TRANSFERS} messages")
    phases = Phases(ways, sizes, nearest=operation == "all_reduce" or last > 0)
    dimensions = range(last + 1)
    if operation == "all_reduce" and optimization == LOCAL:
        for k in dimensions[:-1]:
            phases.reduce_scatter(k)
            phases.narrow(k)
        phases.all_reduce(last)
        for k in reversed(dimensions[:-1]):
            phases.widen(k)
            phases.all_gather(k)
    elif operation == "all_gather":
        for k in dimensions:
            phases.narrow(k)
        for k in reversed(dimensions):
            phases.widen(k)
            phases.all_gather(k)
    else:
        for k in dimensions:
            getattr(phases, operation)(k)
            if operation == "reduce_scatter":
                phases.narrow(k)
    keeps_operation = operation == "all_reduce" or (last == 0 and operation != "all_to_all")
    return phases.p.build(name_of(operation, ways, optimization), operation if keeps_operation else "custom")


def name_of(operation: str, ways: tuple[str, ...], optimization: str) -> str:
    """Return the name of such a schedule, which :func:`ways_of` reads.

    Parameters
    ----------
    operation : str
        Ours.
    ways : tuple of str
        How it is done in each dimension.
    optimization : str
        Order of the phases.
    """
    return ".".join(("astra", operation, *ways, optimization))


def ways_of(name: str) -> tuple[str, tuple[str, ...], str] | None:
    """Read operation, ways and optimization from the name of a schedule; None if it is another one."""
    parts = name.split(".")
    if parts[0] != "astra" or len(parts) < 4:
        return None
    return parts[1], tuple(parts[2:-1]), parts[-1]
