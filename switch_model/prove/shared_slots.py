"""A question about shared slots as the kernels need it: model, work space and first state."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switch_model.slot_kernel import SLOT_ROW

from . import shared_moves_kernel, shared_world_kernel
from .question import ProofQuestion
from .shared_world_kernel import MAX_SETS, SharedModel, SharedWorld

WORD = 64  # bits


class SharedSlots:
    """ATP; all fragments may be out at once, so that those of one slot collide.

    Parameters
    ----------
    question : ProofQuestion
        What is to be proved.
    symmetric : bool
        Whether states that differ in the workers' numbers only are one.
    """

    def __init__(self, question: ProofQuestion, symmetric: bool = True) -> None:
        q = self.question = question
        self.model = SharedModel(q.workers, q.slots, q.chunks, q.bug_code)
        of_chunk = q.workers + 5 + (2 << q.workers)
        bits = 4 + q.workers * q.chunks + q.slots * (4 + 3 * q.workers) + q.chunks * of_chunk
        self.n_words = -(-bits // WORD)
        self.world = world_of(q, self.n_words, symmetric)

    def first(self) -> NDArray[np.uint64]:
        """Return the state in which a job begins."""
        states = np.zeros((1, self.n_words), np.uint64)
        self.world.budget[:] = self.question.restarts, self.question.reboots
        shared_world_kernel.encode(self.model, self.world, states, 0)
        return states

    def expand(self, states: NDArray[Any], first: int, end: int, room: Any) -> tuple[int, int]:
        """Write the next states of some; see `shared_moves_kernel.expand_shared`."""
        return shared_moves_kernel.expand_shared(self.model, self.world, states, first, end, room.new, room.origin,
                                                 room.labels)  # fmt: skip

    def complete(self, states: NDArray[Any], first: int, end: int, room: Any, done: NDArray[Any]) -> tuple[int, int]:
        """Write what repetitions lead to; see `shared_moves_kernel.complete_shared`."""
        return shared_moves_kernel.complete_shared(self.model, self.world, states, first, end, room.new, room.origin,
                                                   done)  # fmt: skip

    def waits(self, states: NDArray[Any]) -> list[tuple[int, int]]:
        """Return the workers and the chunks that they wait for in the first of some states."""
        found = np.zeros((self.model.workers, self.model.chunks), np.int64)
        shared_moves_kernel.waiting_shared(self.model, self.world, states, 0, found)
        return [(w, q) for w, row in enumerate(found.tolist()) for q in row if q >= 0]

    def same(self, states: NDArray[Any]) -> NDArray[np.uint64]:
        """Return the states as they are known, whatever numbers the workers have."""
        found = np.zeros_like(states)
        for row in range(len(states)):
            shared_world_kernel.decode(self.model, self.world, states, row)
            shared_world_kernel.encode(self.model, self.world, found, row)
        return found


def world_of(q: ProofQuestion, n_words: int, symmetric: bool = True) -> SharedWorld:
    """Return work space for one state: the one in which a job begins."""
    orders = list(permutations(range(q.workers))) if symmetric else [tuple(range(q.workers))]
    renamed = np.zeros((len(orders), MAX_SETS), np.int64)
    for order, who in enumerate(orders):
        for b in range(1 << q.workers):
            renamed[order, b] = sum((b >> old & 1) << new for new, old in enumerate(who))
    sets = np.zeros((q.slots + q.chunks + 2, 1), np.uint64)
    sets[-1] = (1 << q.workers) - 1
    of_chunks = [np.zeros(q.chunks, np.int64) for _ in range(3)]
    return SharedWorld(
        np.zeros(q.slots, SLOT_ROW), sets, np.zeros((q.slots, q.workers), np.int64), of_chunks[0],
        np.zeros((2, q.chunks), np.int64), of_chunks[1], of_chunks[2], np.zeros(q.workers, np.int64),
        np.zeros(2, np.int64), np.array(orders, np.int64), renamed,
        np.zeros((1, n_words), np.uint64),
    )  # fmt: skip
