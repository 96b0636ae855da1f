"""A question about reserved slots as the kernels need it: model, work space and first states."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from switch_model.slot_kernel import SLOT_ROW

from . import slot_events_kernel, slot_moves_kernel, slot_world_kernel
from .question import ANY, EPOCHS, LIVE, OMNIREDUCE, ProofQuestion
from .slot_steps import WORD, SlotSteps
from .slot_world_kernel import ANY as ANY_ORDER
from .slot_world_kernel import FIRST, SlotModel, SlotWorld

COLUMN_ROOM = 62  # bits


class ReservedSlots(SlotSteps[SlotModel, SlotWorld]):
    """SwitchML, its live switch, or OmniReduce.

    Parameters
    ----------
    question : ProofQuestion
        What is to be proved.
    symmetric : bool
        Whether states that differ in the workers' numbers only are one.
    """

    expand_states, complete_states = slot_moves_kernel.expand_slots, slot_moves_kernel.complete_slots
    waiting = slot_events_kernel.waiting_slots

    def __init__(self, question: ProofQuestion, symmetric: bool = True) -> None:
        q, model = question, model_of(question, symmetric)
        # failures, then of each version of a slot count, result, filled and number
        shared = 7 + 2 * q.slots * (4 + model.skips_empty + model.held_bits)
        super().__init__(model, world_of(q), -(-(shared + q.workers * model.column_bits) // WORD), q.slots)
        self.question = question

    def first(self) -> NDArray[np.uint64]:
        """Return the states in which a job may begin: for OmniReduce one for each pattern of zero blocks."""
        patterns = list(self._patterns())
        states = np.zeros((len(patterns), self.n_words), np.uint64)
        for row, owns in enumerate(patterns):
            self.world.owns[:] = owns
            slot_events_kernel.first_slots(self.model, self.world, self.question.restarts, self.question.reboots,
                                          states, row)  # fmt: skip
        return states

    def same(self, states: NDArray[Any]) -> NDArray[np.uint64]:
        """Return the states as they are known, whatever numbers the workers have."""
        found = np.zeros_like(states)
        slot_world_kernel.name_again(self.model._replace(symmetric=1), self.world, states, found)
        return found

    def _patterns(self) -> Iterator[tuple[int, ...]]:
        """Which chunks each worker has; in the first round a packet always has values, and no block is nobody's."""
        q = self.question
        every = (1 << q.chunks) - 1
        if q.system != OMNIREDUCE:
            yield (every,) * q.workers
            return
        begun = (1 << q.slots) - 1
        for owns in product(range(1 << q.chunks - q.slots), repeat=q.workers):
            together = 0
            for some in owns:
                together |= some << q.slots
            if together | begun == every:
                yield tuple(some << q.slots | begun for some in owns)


def model_of(q: ProofQuestion, symmetric: bool = True) -> SlotModel:
    """Return what the kernels must know.

    Raises
    ------
    InputError
        If a worker's part of a state does not fit in a word.
    """
    round_bits, code_bits = int(q.rounds).bit_length(), int(FIRST + q.rounds - 1).bit_length()
    epochs = q.recovery == EPOCHS
    of_epoch = q.rounds // 2 + 2  # packets of a version in an epoch's numbers
    most_held = of_epoch * ((q.restarts + q.reboots) * epochs + 1)
    owned = q.chunks * (q.system == OMNIREDUCE)
    ordered, again = q.lateness != ANY and int(q.lateness) < q.rounds, q.restarts > 0 and not epochs
    sent_bits, passed_bits = round_bits * again, round_bits * ordered
    column = q.slots * (round_bits + sent_bits + passed_bits + 2 * q.rounds) + 2 * q.slots * (1 + code_bits) + owned
    if column > COLUMN_ROOM:
        raise InputError(f"{q.slots} slots and {q.chunks} chunks are too many for a proof: take fewer chunks")
    return SlotModel(
        q.workers, q.slots, q.chunks, q.rounds, int(q.system == LIVE), int(q.system == OMNIREDUCE),
        ANY_ORDER if q.lateness == ANY else int(q.lateness), int(epochs), 2 * q.slots * of_epoch, q.bug_code,
        int(symmetric), round_bits, sent_bits, passed_bits, code_bits, int(most_held).bit_length(), column,
    )  # fmt: skip


def world_of(q: ProofQuestion) -> SlotWorld:
    """Return work space for one state."""
    of_workers = (q.workers, q.slots)
    return SlotWorld(
        np.zeros(2 * q.slots, SLOT_ROW), np.zeros(2 * q.slots, np.int64), np.zeros(2 * q.slots, np.bool_),
        np.zeros((2 * q.slots, q.workers), np.int64), np.zeros(of_workers, np.int64), np.zeros(of_workers, np.int64),
        np.zeros(of_workers, np.int64), np.zeros(of_workers, np.int64), np.zeros(of_workers, np.int64),
        np.zeros(q.workers, np.int64), np.zeros(3, np.int64), np.zeros(q.workers, np.uint64),
    )  # fmt: skip
