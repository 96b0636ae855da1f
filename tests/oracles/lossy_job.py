"""Workers and switches without a network: links are queues, and an adversary says what is lost, doubled or repeated.

Links keep their order. Workers clock themselves and may repeat at any moment, also too early. Values are summed at once
by `Pool`, and the same operations are written to a log, so that both ways to the sums can be compared.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from slow_pool import PARENT, Pool

from switch_model.slot_kernel import ADD, OVERWRITE, READ
from switch_model.slot_sequence import LOG_ROW, RECEIVE, slot_and_version
from switch_model.system import System

LOSE, DOUBLE, REPEAT = 0, 1, 2  # what an adversary may do; all other numbers deliver
KEPT = OVERWRITE | ADD | READ


class StuckError(Exception):
    """A job that does not end although nothing is lost any more."""


@dataclass
class Frame:
    slot: int
    version: int
    values: Any
    message: int = -1  # of the log; -1 for a worker's own values
    worker: int = -1
    chunk: int = -1


@dataclass
class Switch:
    pool: Pool
    parent: int  # switch, or -1
    number: int  # among the parent's children
    first_register: int
    children: list[tuple[str, int]] = field(default_factory=list)


@dataclass
class Worker:
    leaf: int
    number: int
    tensor: int = 0
    first_chunk: int = 0
    shift: int = 0
    outstanding: dict[int, Frame] = field(default_factory=dict)


class LossyJob:
    """One job in reserved slots on one or two levels of switches; `racks` are workers on each leaf (one is the root).

    Tensors int32[n_workers, n] are reduced one after the other; a worker goes on without waiting for the others.
    `seen_check` and `continued_slots` are rules that can be left out.
    """

    def __init__(
        self, system: System, tensors: Sequence[Any], racks: Sequence[int],
        seen_check: bool = True, continued_slots: bool = True,
    ) -> None:  # fmt: skip
        self.system, self.tensors, self.seen_check, self.continued = system, tensors, seen_check, continued_slots
        two = len(racks) > 1
        self.switches: list[Switch] = []
        for n in ([len(racks)] if two else []) + list(racks):
            leaf = two and bool(self.switches)
            pool = Pool(system, n, has_parent=leaf)
            number = len(self.switches) - 1 if leaf else 0
            self.switches.append(Switch(pool, 0 if leaf else -1, number, len(self.switches) * len(pool.slots)))
        self.n_registers = len(self.switches) * len(self.switches[0].pool.slots)
        self.workers: list[Worker] = []
        for rack, n in enumerate(racks):
            leaf_switch = rack + 1 if two else 0
            if two:
                self.switches[0].children.append(("switch", leaf_switch))
            for number in range(n):
                self.switches[leaf_switch].children.append(("worker", len(self.workers)))
                self.workers.append(Worker(leaf_switch, number))
        self.links: dict[tuple[str, int, str], deque[Frame]] = {}
        for kind, n in (("worker", len(self.workers)), ("switch", len(self.switches))):
            for i in range(n):
                self.links[kind, i, "up"], self.links[kind, i, "down"] = deque(), deque()
        self.rows: list[tuple[int, ...]] = []
        self.n_messages = 0
        self.results: list[dict[int, Any]] = [{} for _ in self.workers]
        for w in range(len(self.workers)):
            self._start(w)

    def run(self, choices: Sequence[tuple[int, int]]) -> None:
        """Do what the adversary chose, then lose nothing until all is done."""
        for where, what in choices:
            if what == REPEAT:
                self._repeat(where)
                continue
            full = [key for key, queue in self.links.items() if queue]
            if not full:
                self._repeat(where)
                continue
            self._step(full[where % len(full)], what)
        for _ in range(4 + 2 * len(self.switches) * sum(self._n_chunks(t) for t in range(len(self.tensors)))):
            while any(self.links.values()):
                for key in [key for key, queue in self.links.items() if queue]:
                    self._step(key, -1)
            if all(worker.tensor == len(self.tensors) for worker in self.workers):
                return
            for worker in self.workers:
                for slot in worker.outstanding:
                    self._send(worker, slot)
        raise StuckError

    @property
    def log(self) -> Any:
        return np.array(self.rows, LOG_ROW) if self.rows else np.zeros(0, LOG_ROW)

    def is_exact(self) -> bool:
        """Whether each worker ended with the sum of every chunk, modulo 2**32."""
        k = self.system.elements
        for results in self.results:
            chunk = 0
            for tensor in self.tensors:
                total = tensor.astype(np.int64).sum(axis=0).astype(np.int32)
                for first in range(0, len(total), k):
                    part = total[first : first + k]
                    if chunk not in results or not np.array_equal(results[chunk][: len(part)], part):
                        return False
                    chunk += 1
        return True

    def _n_chunks(self, tensor: int) -> int:
        return -(-self.tensors[tensor].shape[1] // self.system.elements)

    def _start(self, w: int) -> None:
        worker = self.workers[w]
        if worker.tensor < len(self.tensors):
            for q in range(min(self.system.window, self._n_chunks(worker.tensor))):
                self._take_up(w, q)

    def _take_up(self, w: int, q: int) -> None:
        worker, k = self.workers[w], self.system.elements
        slot, version = slot_and_version(q, worker.shift, self.system.window)
        values = self.tensors[worker.tensor][w, q * k : (q + 1) * k]
        worker.outstanding[slot] = Frame(slot, version, values, worker=w, chunk=worker.first_chunk + q)
        self._send(worker, slot)

    def _send(self, worker: Worker, slot: int) -> None:
        frame = worker.outstanding[slot]
        self.links["worker", frame.worker, "up"].append(frame)

    def _repeat(self, where: int) -> None:
        waiting = [(worker, slot) for worker in self.workers for slot in worker.outstanding]
        if waiting:
            self._send(*waiting[where % len(waiting)])

    def _step(self, key: tuple[str, int, str], what: int) -> None:
        queue = self.links[key]
        frame = queue[0] if what == DOUBLE else queue.popleft()
        if what == LOSE:
            return
        kind, i, direction = key
        if kind == "worker" and direction == "down":
            self._on_result(i, frame)
        elif kind == "worker":
            self._on_contribution(self.workers[i].leaf, self.workers[i].number, frame)
        elif direction == "up":
            self._on_contribution(self.switches[i].parent, self.switches[i].number, frame)
        else:
            pool, version = self.switches[i].pool, frame.version % self.system.versions
            self._carry_out(i, frame, pool.result(frame.slot, version, frame.values))

    def _on_contribution(self, i: int, child: int, frame: Frame) -> None:
        pool, version = self.switches[i].pool, frame.version % self.system.versions
        if not self.seen_check:
            at = frame.slot * self.system.versions + version
            pool.slots["seen"][at] &= ~np.uint64(1 << child)
        self._carry_out(i, frame, pool.contribution(frame.slot, version, child, frame.values))

    def _carry_out(self, i: int, frame: Frame, packets: Sequence[Any]) -> None:
        switch, action = self.switches[i], self.switches[i].pool.action & KEPT
        out = -1
        if action & READ:
            out, self.n_messages = self.n_messages, self.n_messages + 1
        register = switch.first_register + frame.slot * self.system.versions + frame.version % self.system.versions
        if action == READ:
            self.rows.append((READ, register, -1, -1, -1, out))
        elif action:
            worker = frame.worker if frame.message < 0 else -1
            self.rows.append((action, register, worker, frame.chunk, frame.message, out))
        for packet in packets:
            frame_out = Frame(frame.slot, frame.version, packet.values, out, chunk=frame.chunk)
            if packet.destination == PARENT:
                self.links["switch", i, "up"].append(frame_out)
            else:
                self.links[(*switch.children[packet.destination], "down")].append(frame_out)

    def _on_result(self, w: int, frame: Frame) -> None:
        worker = self.workers[w]
        mine = worker.outstanding.get(frame.slot)
        if mine is None or mine.version != frame.version:
            return
        self.rows.append((RECEIVE, -1, w, mine.chunk, frame.message, -1))
        self.results[w][mine.chunk] = frame.values
        del worker.outstanding[frame.slot]
        following = mine.chunk - worker.first_chunk + self.system.window
        if following < self._n_chunks(worker.tensor):
            self._take_up(w, following)
        elif not worker.outstanding:
            n = self._n_chunks(worker.tensor)
            worker.shift = (worker.shift + n) % (2 * self.system.window) if self.continued else 0
            worker.first_chunk += n
            worker.tensor += 1
            self._start(w)
