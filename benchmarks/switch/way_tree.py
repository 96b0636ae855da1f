"""The ways to all states that a proof has found, with the same workers on each of them throughout."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from switch_model.prove.event_trace import ROOM, TraceStep, step_of
from switch_model.prove.exploration import Exploration, room_for, steps_of


@dataclass(frozen=True, slots=True, eq=False)
class WayTree:
    """One shortest way to each state.

    Parameters
    ----------
    found : Exploration
        All states, as they are known.
    named : uint64[n, n_words]
        The same with the workers of the way to them.
    labels : int64[n]
        Last step of each way, see `step_labels`; 0 where a job begins.
    """

    found: Exploration
    named: NDArray[np.uint64]
    labels: NDArray[np.int64]

    def way(self, state: int) -> list[TraceStep]:
        """Return the steps to a state."""
        steps, parents = [], self.found.parents
        while parents[state] >= 0:
            steps.append(step_of(int(self.labels[state])))
            state = int(parents[state])
        return steps[::-1]

    def leaves(self) -> Iterator[int]:
        """Yield the states that are on the way to no other: their ways have every step of the tree."""
        inner = np.zeros(len(self.labels), np.bool_)
        inner[self.found.parents[self.found.parents >= 0]] = True
        yield from np.flatnonzero(~inner).tolist()


def way_tree(found: Exploration) -> WayTree:
    """Return the ways to all states of an exploration."""
    steps, known, room = steps_of(found.question, symmetric=False), steps_of(found.question), room_for(
        found.states.shape[1], ROOM
    )  # fmt: skip
    named, labels = found.states.copy(), np.zeros(len(found.states), np.int64)
    children: defaultdict[int, list[int]] = defaultdict(list)
    for state, parent in enumerate(found.parents.tolist()):
        children[parent].append(state)
    for state in range(len(named)):
        if state not in children:
            continue
        n, _ = steps.expand(named, state, state + 1, room)
        rows = known.same(room.new[:n])
        for child in children[state]:
            row = int(np.flatnonzero((rows == found.states[child]).all(axis=1))[0])
            named[child], labels[child] = room.new[row], room.labels[row]
    return WayTree(found, named, labels)
