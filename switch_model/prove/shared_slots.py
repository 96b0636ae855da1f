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
from .slot_steps import WORD, SlotSteps


class SharedSlots(SlotSteps[SharedModel, SharedWorld]):
    """ATP; all fragments may be out at once, so that those of one slot collide.

    Parameters
    ----------
    question : ProofQuestion
        What is to be proved.
    symmetric : bool
        Whether states that differ in the workers' numbers only are one.
    """

    expand_states, complete_states = shared_moves_kernel.expand_shared, shared_moves_kernel.complete_shared
    waiting = shared_moves_kernel.waiting_shared

    def __init__(self, question: ProofQuestion, symmetric: bool = True) -> None:
        q = question
        of_chunk = q.workers + 5 + (2 << q.workers)
        n_words = -(-(4 + q.workers * q.chunks + q.slots * (4 + 3 * q.workers) + q.chunks * of_chunk) // WORD)
        model = SharedModel(q.workers, q.slots, q.chunks, q.bug_code)
        super().__init__(model, world_of(q, n_words, symmetric), n_words, q.chunks)
        self.question = question

    def first(self) -> NDArray[np.uint64]:
        """Return the state in which a job begins."""
        states = np.zeros((1, self.n_words), np.uint64)
        self.world.budget[:] = self.question.restarts, self.question.reboots
        shared_world_kernel.encode(self.model, self.world, states, 0)
        return states

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
