"""A tree of aggregators above the ranks: what in-network aggregation sends up it and down again.

Aggregators are helpers. Each holds one sum per chunk in its input buffer, which nobody has written before, so that the
first summand is stored and the others are added, as switches do.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collectives import collective
from commsim.core.cost import LogGP
from commsim.core.errors import InputError
from commsim.core.program import Program
from commsim.core.schedule import INPUT, SCRATCH, Schedule

Tree = tuple[int, ...]
# Chunks of a sum in switches, where nothing else is said.
CHUNKS = 256


@dataclass(frozen=True, slots=True, eq=False)
class ReductionTree:
    """Parent of each participant in a reduction tree.

    Parameters
    ----------
    n_ranks : int
        Ranks come first, then helpers.
    parent : int64[n_participants]
        Parent of each participant; -1 for the topmost.
    depth : int64[n_participants]
        Links between each participant and the topmost.
    fan_in : int64[n_participants]
        Children of each.
    """

    n_ranks: int
    parent: NDArray[np.int64]
    depth: NDArray[np.int64]
    fan_in: NDArray[np.int64]

    @property
    def n_helpers(self) -> int:
        """Participants that are no ranks."""
        return len(self.parent) - self.n_ranks

    @property
    def top(self) -> int:
        """The participant that is above all others."""
        return int(self.parent.argmin())


def read_tree(name: str, n_ranks: int, tree: Tree | None, n_helpers: int = 1) -> ReductionTree:
    """Check a tree; by default all ranks are below the first of a chain of `n_helpers`.

    Raises
    ------
    InputError
        If it is no tree, or a rank or an aggregator without children is above or below what it may not be.
    """
    chain = (*range(n_ranks + 1, n_ranks + n_helpers), -1)
    parent = np.array((n_ranks,) * n_ranks + chain if tree is None else tree, np.int64)
    what = f"{name}: tree must be the parent of each of {n_ranks} ranks and then of each helper"
    n = len(parent)
    if n <= n_ranks:
        raise InputError(f"{what}, got {n} numbers")
    if (parent < 0).sum() != 1 or parent[:n_ranks].min() < 0 or parent.min() < -1:
        raise InputError(f"{what}, -1 for exactly one helper, the topmost")
    inner = parent[parent >= 0]
    if inner.min() < n_ranks or inner.max() >= n:
        bad = inner.min() if inner.min() < n_ranks else inner.max()
        raise InputError(f"{what}; parents are helpers {n_ranks}..{n - 1}, got {bad}")
    fan_in = np.bincount(inner, minlength=n)
    if (fan_in[n_ranks:] == 0).any():
        raise InputError(f"{what}; helper {n_ranks + int(fan_in[n_ranks:].argmin())} has no child")
    depth, above = np.zeros(n, np.int64), parent.copy()
    for _ in range(n - n_ranks + 1):
        depth += above >= 0
        above = np.where(above >= 0, parent[above], -1)
    if (above >= 0).any():
        raise InputError(f"{what}; {int((above >= 0).argmax())} is below itself or never reaches the topmost")
    return ReductionTree(n_ranks, parent, depth, fan_in)


def aggregate(p: Program, tree: ReductionTree, buffer: int = INPUT) -> None:
    """Write the hops of chunk 0 up the tree, level by level; the ranks send from `buffer`.

    Where a participant has one child nothing is added: it takes a copy.
    """
    for level in range(int(tree.depth.max()), 0, -1):
        below = np.flatnonzero(tree.depth == level)
        alone = tree.fan_in[tree.parent[below]] == 1
        for children, write in ((below[alone], p.copy), (below[~alone], p.reduce)):
            write(
                0, src=children, dst=tree.parent[children], src_buffer=np.where(children < tree.n_ranks, buffer, INPUT)
            )
        settle(p, np.unique(tree.parent[below[~alone]]))


def settle(p: Program, aggregators: ArrayLike) -> None:
    """Write the hop that says that the sums of chunk 0 are complete: a copy of each onto itself, which takes no time.

    What sends a sum on so waits for one transfer, and not for every child: for f children there are 2f waits, not f^2.
    """
    p.copy(0, src=aggregators, dst=aggregators)


def distribute(p: Program, tree: ReductionTree, buffer: int = INPUT, channel: int = 0) -> None:
    """Write the hops of chunk 0 down the tree, level by level; the ranks receive into `buffer`."""
    for level in range(1, int(tree.depth.max()) + 1):
        below = np.flatnonzero(tree.depth == level)
        into = np.where(below < tree.n_ranks, buffer, INPUT)
        p.copy(0, src=tree.parent[below], dst=below, dst_buffer=into, channel=channel)


def read_window(name: str, n_chunks: int, pool: int | None) -> int | None:
    """Chunks that a rank may have under way; None where that is all of them.

    Raises
    ------
    InputError
        If the pool is empty.
    """
    if pool is not None and pool < 1:
        raise InputError(f"{name} needs a pool of at least 1 chunk, got pool={pool}")
    return None if pool is None or pool >= n_chunks else pool


def all_reduce_chunk(p: Program, tree: ReductionTree, window: int | None = None, *, straight: bool = False) -> None:
    """Write the hops of chunk 0 up and down the tree; `straight` sends it from the ranks to the topmost at once.

    With a window a rank sends from and receives into one of as many places in its scratch memory: it fills a place
    again when the result that was awaited there has arrived and been taken out.
    """
    rank, buffer = np.arange(p.n_ranks), INPUT if window is None else SCRATCH
    if window is not None:
        p.copy(0, src=rank, dst=rank, dst_buffer=SCRATCH)
    if straight:
        p.reduce(0, src=rank, dst=tree.top, src_buffer=buffer)
        settle(p, tree.top)
    else:
        aggregate(p, tree, buffer)
    distribute(p, tree, buffer, channel=int(straight))  # results leave as they are ready, whichever way they came
    if window is not None:
        # a channel of its own: the next chunk is put into its place while this one's result is still awaited
        p.copy(0, src=rank, dst=rank, src_buffer=SCRATCH, channel=1)


def tree_all_reduce(
    name: str, n_ranks: int, n_chunks: int = CHUNKS, pool: int | None = None, tree: Tree | None = None
) -> Schedule:
    """Build the all-reduce of `n_chunks` chunks up a tree and down again; parameters as :func:`.switchml.switchml`."""
    window = read_window(name, n_chunks, pool)
    shape = read_tree(name, n_ranks, tree)
    if n_ranks == 1:
        return Program(1, n_chunks).build()
    p = Program(n_ranks, n_chunks, n_helpers=shape.n_helpers, n_scratch=window or 0)
    with p.repeat(n_chunks, chunk=1):
        all_reduce_chunk(p, shape, window)
    return p.build()


def register_tree(system: str) -> None:
    """Register the reduction tree under the name of a switch system that has no collective of its own."""

    def cost(
        n_ranks: int,
        size: float,
        link: LogGP,
        n_chunks: int = CHUNKS,
        pool: int | None = None,
        tree: Tree | None = None,
    ) -> float:
        return tree_cost(system, read_tree(system, n_ranks, tree), size, link, n_chunks, pool)

    def build(n_ranks: int, n_chunks: int = CHUNKS, pool: int | None = None, tree: Tree | None = None) -> Schedule:
        """All-reduce by SYSTEM in d switch levels: 2d(o+L+S/(kB)) + sum f gamma c + (k-1)max(o+S/(kB), f gamma c).

        Parameters
        ----------
        n_ranks : int
            p, at least 1.
        n_chunks : int
            k; ``commsim run`` makes chunks of packets.
        pool : int, optional
            Chunks that a rank may have under way; by default as many as there are.
        tree : tuple of int, optional
            Parent of each rank and then of each helper, -1 for the topmost; by default one aggregator above all.

        Returns
        -------
        Schedule
            Every rank sends each chunk once and receives its sum once.

        References
        ----------
        As ``switch_model.systems.SYSTEM``; with c = S/k, see :func:`collectives.in_network.reduction_tree.tree_cost`.
        """
        return tree_all_reduce(system, n_ranks, n_chunks, pool, tree)

    build.__name__ = build.__qualname__ = system
    build.__doc__ = (inspect.getdoc(build) or "").replace("SYSTEM", system)
    collective("all_reduce", cost=cost, systems=(system,))(build)


def tree_cost(name: str, tree: ReductionTree, size: float, link: LogGP, n_chunks: int, window: int | None) -> float:
    """Evaluate the closed form, where every link is alike, and with gamma every level too.

    With c = S/k, a chunk passes two stages on each of d levels, one up and one down, of o + c/B + L, and with gamma one
    more at each aggregator, which adds what f children send in f gamma c. So it comes home after

        R = 2d (o + c/B + L) + sum over levels of f gamma c

    and k of them follow each other as far apart as the slowest stage, t = max(o + c/B, f gamma c). With a window of w
    chunks, w of them start in each max(R, w t).

    Raises
    ------
    InputError
        If a level has unequal aggregators and adding takes time.
    """
    if tree.n_ranks == 1:
        return 0.0
    chunk = size / n_chunks
    levels = [np.unique(tree.fan_in[tree.depth == level]) for level in range(int(tree.depth.max()) + 1)]
    if link.gamma and any(len(fan_in) > 1 for fan_in in levels):
        raise InputError(f"{name} has a closed form with gamma only if all aggregators of a level are equal")
    stage = link.o + chunk / link.B
    adding = [float(fan_in.max()) * link.gamma * chunk for fan_in in levels if fan_in.max() > 1]
    home = 2 * int(tree.depth.max()) * link.message(chunk) + sum(adding)
    apart = max(stage, *adding, 0.0)
    window = min(window or n_chunks, n_chunks)
    rounds, rest = divmod(n_chunks - 1, window)
    return home + rounds * max(home, window * apart) + rest * apart
