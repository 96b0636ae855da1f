"""Which block each slot plays in each round, when only blocks that are not all zero are sent."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.value import Value, freeze
from commsim.sparse.occupancy import Occupancy


@dataclass(frozen=True, slots=True, eq=False)
class BlockRounds(Value):
    """The rounds of all slots, which the occupancy determines.

    Each core has a contiguous share of the blocks and slots of its own. Block i of the share is in column
    ``i % slots``, and a slot goes down its column: first its first block, which every worker sends whatever is in it,
    then from each block to the next that some worker has. That is where the least of the workers' own next blocks, of
    which real packets carry the offsets, leads.

    Parameters
    ----------
    occupancy : Occupancy
        Non-zero blocks of each worker.
    n_slots, n_cores : int
        Slots of all cores together, and cores.

    Raises
    ------
    InputError
        If slots cannot be shared out equally.
    """

    occupancy: Occupancy
    n_slots: int
    n_cores: int = 1
    first: NDArray[np.int64] = field(init=False)
    block: NDArray[np.int32] = field(init=False)

    def __post_init__(self) -> None:
        if self.n_cores < 1 or self.n_slots < 1 or self.n_slots % self.n_cores:
            raise InputError(f"{self.n_slots} slots cannot be shared out among {self.n_cores} cores")
        column, row = self._places()
        played = np.flatnonzero(self.occupancy.union().bitmap_of(0) | (row == 0))
        order = np.argsort(column[played], kind="stable")
        first = np.concatenate(([0], np.cumsum(np.bincount(column[played], minlength=self.n_slots))))
        object.__setattr__(self, "first", freeze(first, np.int64, name="first"))
        object.__setattr__(self, "block", freeze(played[order], np.int32, name="block"))

    def __reduce__(self) -> tuple[type[BlockRounds], tuple[Occupancy, int, int]]:
        return type(self), (self.occupancy, self.n_slots, self.n_cores)

    def skipped(self) -> NDArray[np.int64]:
        """Return the blocks that no packet carries, because no worker has them."""
        is_played = np.zeros(self.occupancy.n_blocks, np.bool_)
        is_played[self.block] = True
        return np.flatnonzero(~is_played)

    def sent(self, worker: int) -> tuple[int, int]:
        """Return how many packets with values, and how many without, a worker sends when none is lost."""
        _, row = self._places()
        full = int((self.occupancy.bitmap_of(worker) | (row == 0)).sum())
        return full, len(self.block) - full

    def _places(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the slot of each block, and its place in the column."""
        n_blocks, per_core = self.occupancy.n_blocks, self.n_slots // self.n_cores
        bounds = np.arange(self.n_cores + 1) * n_blocks // self.n_cores
        core = np.repeat(np.arange(self.n_cores), np.diff(bounds))
        index = np.arange(n_blocks) - bounds[core]
        return core * per_core + index % per_core, index // per_core
