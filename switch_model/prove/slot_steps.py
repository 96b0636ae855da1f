"""Steps between states of slots, reserved or shared: what the kernels of either are called with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

WORD = 64  # bits
Model = TypeVar("Model", bound=Any)
World = TypeVar("World")


class SlotSteps(Generic[Model, World]):
    """Steps of a question; its kernels are those of the class.

    Parameters
    ----------
    model, world : SlotModel or SharedModel, SlotWorld or SharedWorld
        System, and work space, as the kernels need them.
    n_words : int
        Words of a state, of ``WORD`` bits.
    n_waited : int
        Places in which a worker may wait for a chunk.
    """

    expand_states: ClassVar[Callable[..., tuple[int, int]]]
    complete_states: ClassVar[Callable[..., tuple[int, int]]]
    waiting: ClassVar[Callable[..., None]]

    def __init__(self, model: Model, world: World, n_words: int, n_waited: int) -> None:
        self.model, self.world, self.n_words, self._n_waited = model, world, n_words, n_waited

    def expand(self, states: NDArray[Any], first: int, end: int, room: Any) -> tuple[int, int]:
        """Write the next states of some; see `slot_moves_kernel.expand_slots`."""
        kernel = type(self).expand_states
        return kernel(self.model, self.world, states, first, end, room.new, room.origin, room.labels)

    def complete(self, states: NDArray[Any], first: int, end: int, room: Any, done: NDArray[Any]) -> tuple[int, int]:
        """Write what repetitions lead to; see `slot_moves_kernel.complete_slots`."""
        kernel = type(self).complete_states
        return kernel(self.model, self.world, states, first, end, room.new, room.origin, done)

    def waits(self, states: NDArray[Any]) -> list[tuple[int, int]]:
        """Return the workers and the chunks that they wait for in the first of some states."""
        found = np.zeros((self.model.workers, self._n_waited), np.int64)
        type(self).waiting(self.model, self.world, states, 0, found)
        return [(w, q) for w, row in enumerate(found.tolist()) for q in row if q >= 0]
