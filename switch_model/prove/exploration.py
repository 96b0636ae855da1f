"""All states that a protocol can come into, breadth first, and whether an invariant is broken in one of them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError

from . import packed_kernel
from .question import ATP, ProofQuestion
from .reserved_slots import ReservedSlots
from .seeded import ONCE, PROGRESS, SAME
from .step_labels import FINE, NOT_ONCE, TWO_SUMS

ROWS = 1 << 17  # next states that are made before they are looked up
VERDICT = 56  # from this bit on, a label says what is wrong
INVARIANTS = {
    ONCE: "a result that a worker takes holds each contribution once",
    SAME: "no worker gets results of one chunk with different sums",
    PROGRESS: "completion can be reached from every state",
}
BROKEN = {FINE: "", NOT_ONCE: ONCE, TWO_SUMS: SAME}


class Steps(Protocol):
    """How a system goes on."""

    n_words: int

    def first(self) -> NDArray[np.uint64]:
        """Return the states in which a job may begin."""

    def expand(self, states: NDArray[Any], first: int, end: int, room: Any) -> tuple[int, int]:
        """Write the next states of some; return how many, and the first state that is still to be expanded."""

    def complete(self, states: NDArray[Any], first: int, end: int, room: Any, done: NDArray[Any]) -> tuple[int, int]:
        """Write what repetitions without loss lead to, and set `done` where nothing is left to do."""

    def waits(self, states: NDArray[Any]) -> list[tuple[int, int]]:
        """Return the workers and the chunks that they wait for in the first of some states."""

    def same(self, states: NDArray[Any]) -> NDArray[np.uint64]:
        """Return the states as they are known, whatever numbers the workers have."""


@dataclass(frozen=True, slots=True, eq=False)
class Room:
    """Next states of a batch.

    Parameters
    ----------
    new, origin, labels : uint64[n, n_words], int32[n], int64[n]
        States, from which one each comes, and by which step.
    """

    new: NDArray[np.uint64]
    origin: NDArray[np.int32]
    labels: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Exploration:
    """What was found.

    Parameters
    ----------
    question : ProofQuestion
        What was to be proved.
    states : uint64[n, n_words]
        All states, in the order in which they were found: the nearest first.
    parents : int32[n]
        From which state each is reached first; -1 for those in which a job begins.
    n_steps : int
        Steps from one state to another that were looked at.
    depth : int
        Steps to the farthest state.
    broken : str
        Invariant that is broken, or "".
    at, label : int
        State in which it is broken, and the step from there; the label is 0 where no step leads to completion.
    whole : bool
        Whether all states were looked at; not so if an invariant is broken before.
    seconds : float, s
        Time that it took.
    """

    question: ProofQuestion
    states: NDArray[np.uint64]
    parents: NDArray[np.int32]
    n_steps: int
    depth: int
    broken: str
    at: int
    label: int
    whole: bool
    seconds: float


def steps_of(question: ProofQuestion, symmetric: bool = True) -> Steps:
    """Return how the system of a question goes on."""
    if question.system == ATP:
        from .shared_slots import SharedSlots

        return SharedSlots(question, symmetric)
    return ReservedSlots(question, symmetric)


def room_for(n_words: int, rows: int = ROWS) -> Room:
    """Return empty rows."""
    return Room(np.zeros((rows, n_words), np.uint64), np.zeros(rows, np.int32), np.zeros(rows, np.int64))


class Explorer:
    """States as far as they have been found.

    Parameters
    ----------
    question : ProofQuestion
        What is to be proved.
    max_states : int
        Most states to be looked at.
    """

    def __init__(self, question: ProofQuestion, max_states: int) -> None:
        self._question, self._steps, self._began = question, steps_of(question), time.perf_counter()
        n_words = self._steps.n_words
        self._room = room_for(n_words)
        # Pages that nothing touches are not mapped.
        self._states = np.empty((max_states, n_words), np.uint64)
        self._parents = np.empty(max_states, np.int32)
        self._table = np.full(1 << 12, -1, np.int32)
        self._n = self._n_steps = self._depth = 0

    def explore(self) -> Exploration:
        """Look at all states, or at those until an invariant is broken."""
        first = self._steps.first()
        self._add(first, np.full(len(first), -1, np.int32), len(first))
        done, end_of_depth = 0, self._n
        while done < self._n:
            n, after = self._steps.expand(self._states, done, min(self._n, end_of_depth), self._room)
            self._n_steps += n
            wrong = np.flatnonzero(self._room.labels[:n] >> VERDICT)
            if len(wrong):
                label = int(self._room.labels[wrong[0]])
                return self._found(BROKEN[label >> VERDICT], int(self._room.origin[wrong[0]]), label)
            self._add(self._room.new, self._room.origin, n)
            done = after
            if done == end_of_depth and self._n > end_of_depth:
                self._depth, end_of_depth = self._depth + 1, self._n
        return self._stuck() or self._found("", -1, 0)

    def _add(self, new: NDArray[np.uint64], origin: NDArray[np.int32], n_new: int) -> None:
        while 2 * (self._n + n_new) > len(self._table):
            self._table = np.full(2 * len(self._table), -1, np.int32)
            packed_kernel.rehash(self._states, self._n, self._table)
        n = packed_kernel.insert(self._states, self._n, self._table, self._parents, new, origin, n_new)
        if n == packed_kernel.FULL:
            raise InputError(f"more than {len(self._states):,} states: ask about fewer workers, slots, chunks or "
                             f"failures, or raise --max-states")  # fmt: skip
        self._n = n

    def _stuck(self) -> Exploration | None:
        """Return the first state from which no repetition leads on to completion, if there is one."""
        completes, done = np.zeros(self._n, np.bool_), np.zeros(self._n, np.bool_)
        marked = -1
        while marked:
            marked = self._mark(completes, done)
        stuck = np.flatnonzero(~completes)
        return self._found(PROGRESS, int(stuck[0]), 0) if len(stuck) else None

    def _mark(self, completes: NDArray[np.bool_], done: NDArray[np.bool_]) -> int:
        """Go through the states from the last one on, and mark those that can complete; return how many are new."""
        marked, end = 0, self._n
        per = max(1, ROWS // 64)
        while end > 0:
            begin, at = max(0, end - per), max(0, end - per)
            while at < end:
                n, at = self._steps.complete(self._states, at, end, self._room, done)
                finished = done[begin:end] & ~completes[begin:end]
                marked += int(finished.sum())
                completes[begin:end] |= finished
                marked += packed_kernel.mark_completing(self._states, self._table, completes, self._room.new,
                                                        self._room.origin, n)  # fmt: skip
            done[begin:end] |= completes[begin:end]
            end = begin
        return marked

    def _found(self, broken: str, at: int, label: int) -> Exploration:
        whole = broken in ("", PROGRESS)
        return Exploration(
            self._question, self._states[: self._n], self._parents[: self._n], self._n_steps, self._depth, broken, at,
            label, whole, time.perf_counter() - self._began,
        )  # fmt: skip


def explore(question: ProofQuestion, max_states: int = 20_000_000) -> Exploration:
    """Look at all states of a protocol.

    Parameters
    ----------
    question : ProofQuestion
        What is to be proved.
    max_states : int
        Most states to be looked at.

    Returns
    -------
    Exploration

    Raises
    ------
    InputError
        If there are more states.
    """
    return Explorer(question, max_states).explore()
