"""ATP without a network: workers, switches with shared slots, and a parameter server, at an adversary's mercy."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from lossy_job import DOUBLE, LOSE, REPEAT, StuckError
from slow_pool import Pool

from switch_model.slot_kernel import ADD, OVERWRITE, READ
from switch_model.slot_sequence import LOG_ROW, RECEIVE
from switch_model.system import System


@dataclass
class Piece:
    fragment: int
    workers: int  # bits
    values: Any
    resent: bool = False
    message: int = -1
    worker: int = -1


class LossyServer:
    """One job in shared slots that reduces int32[n_workers, n]; fragment f hashes to slot 5 f modulo the pool.

    Its window holds all fragments. `racks` are workers on each leaf; with more than one, a switch precedes the server.
    """

    def __init__(self, system: System, tensor: Any, racks: Sequence[int]) -> None:
        self.system, self.tensor, self.k = system, tensor, system.elements
        self.n_fragments, n = -(-tensor.shape[1] // self.k), len(tensor)
        self.leaf = np.repeat(np.arange(len(racks)), racks).tolist()
        below = [sum(1 << w for w in range(n) if self.leaf[w] == i) for i in range(len(racks))]
        self.root = len(racks) if len(racks) > 1 else 0
        self.pools = [Pool(system, max(1, bits.bit_count()), everyone=bits) for bits in below]
        if self.root:
            self.pools.append(Pool(system, n, everyone=(1 << n) - 1))
        self.everyone = (1 << n) - 1
        self.counted = [0] * self.n_fragments
        self.sums = np.zeros((self.n_fragments, self.k), np.int32)
        self.first_server_register = len(self.pools) * system.pool_size
        self.n_registers = self.first_server_register + self.n_fragments
        self.up: list[deque[Piece]] = [deque() for _ in range(n + len(self.pools))]
        self.down: list[deque[Piece]] = [deque() for _ in range(n + len(self.pools))]
        self.rows: list[tuple[int, ...]] = []
        self.n_messages = 0
        self.results: list[dict[int, Any]] = [{} for _ in range(n)]
        for w in range(n):
            for f in range(self.n_fragments):
                self._send(w, f, resent=False)

    def run(self, choices: Sequence[tuple[int, int]]) -> None:
        """Do what the adversary chose, then lose nothing until all is done."""
        for where, what in choices:
            queues = [(q, i, d) for d in (self.up, self.down) for i, q in enumerate(d) if q]
            if what == REPEAT or not queues:
                waiting = [(w, f) for w, r in enumerate(self.results) for f in range(self.n_fragments) if f not in r]
                if waiting:
                    self._send(*waiting[where % len(waiting)], resent=True)
            else:
                self._step(*queues[where % len(queues)], what)
        for _ in range(8 + 4 * self.n_fragments):
            while any(self.up) or any(self.down):
                for d in (self.up, self.down):
                    for i, queue in enumerate(d):
                        if queue:
                            self._step(queue, i, d, -1)
            missing = [(w, f) for w, r in enumerate(self.results) for f in range(self.n_fragments) if f not in r]
            if not missing:
                return
            for w, f in missing:
                self._send(w, f, resent=True)
        raise StuckError

    @property
    def log(self) -> Any:
        return np.array(self.rows, LOG_ROW)

    def is_exact(self) -> bool:
        """Whether each worker ended with the exact sum of every fragment."""
        total = self.tensor.astype(np.int64).sum(axis=0)
        parts = [total[f * self.k : (f + 1) * self.k] for f in range(self.n_fragments)]
        return all(np.array_equal(r[f][: len(part)], part) for r in self.results for f, part in enumerate(parts))

    def _send(self, w: int, f: int, resent: bool) -> None:
        values = self.tensor[w, f * self.k : (f + 1) * self.k]
        self.up[w].append(Piece(f, 1 << w, values, resent, worker=w))

    def _step(self, queue: deque[Piece], i: int, direction: list[deque[Piece]], what: int) -> None:
        piece = queue[0] if what == DOUBLE else queue.popleft()
        n = len(self.tensor)
        if what == LOSE:
            return
        if direction is self.up and i < n:
            self._claim(self.leaf[i], piece)
        elif direction is self.up:
            if i - n == self.root:
                self._serve(piece)
            else:
                self._claim(self.root, piece)
        elif i < n:
            self.results[i][piece.fragment] = piece.values
            self.rows.append((RECEIVE, -1, i, piece.fragment, piece.message, -1))
        else:
            self._acknowledge(i - n, piece)

    def _claim(self, s: int, piece: Piece) -> None:
        pool, slot = self.pools[s], piece.fragment * 5 % self.system.pool_size
        packets = pool.claim(slot, piece.fragment + 1, piece.workers, piece.values, piece.resent)
        out, action = -1, pool.action & (OVERWRITE | ADD | READ)
        if action:
            out = self._note(action, s * self.system.pool_size + slot, piece)
        for packet in packets:
            forwarded = out < 0
            self.up[len(self.tensor) + s].append(
                Piece(
                    piece.fragment,
                    packet.children,
                    packet.values,
                    piece.resent,
                    piece.message if forwarded else out,
                    piece.worker if forwarded else -1,
                )
            )

    def _serve(self, piece: Piece) -> None:
        f, register = piece.fragment, self.first_server_register + piece.fragment
        if not self.counted[f] & piece.workers:
            self._note(ADD if self.counted[f] else OVERWRITE, register, piece)
            self.sums[f, : len(piece.values)] += piece.values
            self.counted[f] |= piece.workers
        if self.counted[f] == self.everyone:
            out = self._note(READ, register, piece)
            self.down[len(self.tensor) + self.root].append(Piece(f, self.everyone, self.sums[f].copy(), message=out))

    def _acknowledge(self, s: int, piece: Piece) -> None:
        self.pools[s].acknowledge(piece.fragment * 5 % self.system.pool_size, piece.fragment + 1, piece.values)
        if self.root and s == self.root:
            targets = [len(self.tensor) + leaf for leaf in range(self.root)]
        else:
            targets = [w for w, leaf in enumerate(self.leaf) if leaf == s]
        for target in targets:
            self.down[target].append(piece)

    def _note(self, action: int, register: int, piece: Piece) -> int:
        out = -1
        if action & READ:
            out, self.n_messages = self.n_messages, self.n_messages + 1
        source = -1 if action == READ else piece.message
        worker = -1 if action == READ or source >= 0 else piece.worker
        self.rows.append((action, register, worker, piece.fragment, source, out))
        return out
