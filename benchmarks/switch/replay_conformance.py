"""The value pass of the packet engine on the ways that a proof has found: every sum that a worker takes is exact."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.switch.way_tree import WayTree
from switch_model.payload import given_payload
from switch_model.prove.event_trace import TraceStep
from switch_model.prove.question import ATP, MAX_CHUNKS, MAX_SLOTS, OMNIREDUCE, ProofQuestion
from switch_model.prove.reserved_slots import ReservedSlots
from switch_model.prove.slot_world_kernel import decode
from switch_model.replay import ValuePass
from switch_model.slot_kernel import ADD, ALL, OVERWRITE, READ, UP
from switch_model.slot_sequence import LOG_ROW, RECEIVE, slot_and_version
from switch_model.system import System

ELEMENTS = 4
VALUES = OVERWRITE | ADD
SYSTEM = System("proved", ELEMENTS, pool_size=1, window=1)
REGISTERS = 2 * MAX_SLOTS + MAX_CHUNKS


class WayLog:
    """The log that the packet engine would write on a way.

    Parameters
    ----------
    question : ProofQuestion
        What was proved.
    """

    def __init__(self, question: ProofQuestion) -> None:
        self._question, self.rows, self.n_messages = question, list[tuple[int, ...]](), 0
        self._results: dict[tuple[int, int], int] = {}  # message by worker and chunk
        self._up: dict[tuple[int, int], tuple[int, int]] = {}  # worker or message by chunk and set of workers
        self._down: dict[int, int] = {}
        self._held: dict[int, int] = {}  # set of workers that a shared slot holds

    def follow(self, step: TraceStep) -> None:
        """Write what a step does."""
        q, chunk = self._question, step.chunk
        if step.kind == "result":
            self.rows.append((RECEIVE, -1, step.worker, chunk, self._results[step.worker, chunk], -1))
        elif step.kind == "answer":
            self._results |= {(w, chunk): self._down[chunk] for w in range(q.workers)}
        elif step.kind == "sum":
            worker, message = self._up[chunk, step.worker]
            out = self._note(step.action, 2 * q.slots + chunk, worker, chunk, message)
            if out >= 0:
                self._down[chunk] = out
        elif q.system == ATP:
            self._claim(step)
        else:
            self._contribute(step)

    def _contribute(self, step: TraceStep) -> None:
        slot, version = slot_and_version(step.chunk, 0, self._question.slots)
        out = self._note(step.action, 2 * slot + version, step.worker, step.chunk, -1)
        if out >= 0:
            to = range(self._question.workers) if step.action & ALL else [step.worker]
            self._results |= {(w, step.chunk): out for w in to}

    def _claim(self, step: TraceStep) -> None:
        at = step.chunk % self._question.slots
        if not step.action & (VALUES | READ):
            if step.action & UP:
                self._up[step.chunk, 1 << step.worker] = step.worker, -1
            return
        self._held[at] = 1 << step.worker | (0 if step.action & OVERWRITE else self._held[at])
        out = self._note(step.action, at, step.worker, step.chunk, -1)
        if out >= 0:
            self._up[step.chunk, self._held[at]] = -1, out

    def _note(self, action: int, register: int, worker: int, chunk: int, message: int) -> int:
        """Write one operation; return the message that it makes, or -1."""
        out = self.n_messages if action & READ else -1
        self.n_messages += action & READ != 0
        if action & VALUES:
            self.rows.append((action & (VALUES | READ), register, worker, chunk, message, out))
        elif action & READ:
            self.rows.append((READ, register, -1, -1, -1, out))
        return out


@dataclass(frozen=True, slots=True)
class ReplayConformance:
    """What was replayed.

    Parameters
    ----------
    ways, results : int
        Ways, and results that workers took on them, each of which was the exact sum.
    wrong_elements : int
        Elements of them that were wrong.
    """

    ways: int
    results: int
    wrong_elements: int


def check_replay(tree: WayTree, every: int = 1) -> ReplayConformance:
    """Replay the ways that have all steps of a proof without failures, with real tensors.

    Parameters
    ----------
    tree : WayTree
        Ways.
    every : int
        Take each of so many.

    Returns
    -------
    ReplayConformance
    """
    ways = results = wrong = 0
    for leaf in list(tree.leaves())[::every]:
        way = tree.way(leaf)
        wrong += wrong_elements(tree.found.question, way, _owned(tree, leaf))
        ways, results = ways + 1, results + sum(step.kind == "result" for step in way)
    return ReplayConformance(ways, results, wrong)


def wrong_elements(question: ProofQuestion, way: list[TraceStep], owned: NDArray[np.bool_] | None = None) -> int:
    """Replay a way with real tensors, and count elements that are wrong in what workers took last.

    Parameters
    ----------
    question : ProofQuestion
        What was proved.
    way : list of TraceStep
        Way, without failures.
    owned : bool[n_workers, n_chunks], optional
        Blocks that workers have; the others are zero.
    """
    log = WayLog(question)
    for step in way:
        log.follow(step)
    shape = question.workers, question.chunks, ELEMENTS
    tensors = np.random.default_rng(len(way)).integers(-(2**31), 2**31, shape, np.int32)
    if owned is not None:
        tensors[~owned] = 0
    payload = given_payload([[tensors.reshape(question.workers, -1)]], SYSTEM)
    values = ValuePass(payload, SYSTEM, REGISTERS)
    values.carry_out(np.array(log.rows, LOG_ROW), log.n_messages)
    return values.outcome().wrong_elements


def _owned(tree: WayTree, state: int) -> NDArray[np.bool_] | None:
    """Return the blocks that workers have in a state."""
    q = tree.found.question
    if q.system != OMNIREDUCE:
        return None
    steps = ReservedSlots(q, symmetric=False)
    decode(steps.model, steps.world, tree.named, state)
    return (steps.world.owns[:, None] >> np.arange(q.chunks) & 1).astype(np.bool_)
