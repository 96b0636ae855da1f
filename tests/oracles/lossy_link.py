"""Workers and a live switch without sockets, joined by a link that loses, doubles and delays as a test decides."""

import itertools
from typing import Any

import numpy as np

from switch_model.live.data_plane import DataPlane
from switch_model.live.datagrams import ARRIVED, address_key
from switch_model.live.exchange import Lease, TensorExchange, frames_of
from switch_model.live.frame_tags import worker_state, write_tags
from switch_model.live.frames import frame_bytes, new_rows

JOB, HOST, FIRST_PORT = 7, "127.0.0.1", 5000


class LossyLink:
    """A job of `n_workers` on slots from `first_slot`, and what is under way."""

    def __init__(self, n_workers: int, n_slots: int, rng: np.random.Generator, lose: float, double: float,
                 elements: int = 64, first_slot: int = 0, key: bytes = b"", begin: int = 0) -> None:  # fmt: skip
        self.plane = DataPlane(first_slot + n_slots, elements, tagged=bool(key))
        peers = [(HOST, FIRST_PORT + rank) for rank in range(n_workers)]
        self.plane.open(JOB, peers, first_slot, n_slots, begin, key)
        self.leases = [Lease(rank, n_workers, JOB, first_slot, n_slots, elements, begin, key)
                       for rank in range(n_workers)]  # fmt: skip
        self.frames = [frames_of(lease) for lease in self.leases]
        self.keys = [address_key(*peer) for peer in peers]
        self.rng, self.lose, self.double, self.elements = rng, lose, double, elements
        self.up: list[tuple[int, np.ndarray]] = []
        self.down: list[tuple[int, np.ndarray]] = []
        self.sequence, self.now, self.tag_bytes = begin, 0.0, self.leases[0].tag_bytes

    def all_reduce(self, tensors: list[np.ndarray]) -> list[np.ndarray]:
        """Let the workers exchange a tensor each; frames of the tensor before may still be under way."""
        values = [tensor.copy() for tensor in tensors]
        exchanges = [TensorExchange(lease, value, self.sequence, frames)
                     for lease, value, frames in zip(self.leases, values, self.frames, strict=True)]  # fmt: skip
        for rank, exchange in enumerate(exchanges):
            self._send(rank, exchange.begin(self.now, 1.0))
        while not all(exchange.finished for exchange in exchanges):
            if not self.up and not self.down:
                self.now += 2.0
                for rank, exchange in enumerate(exchanges):
                    self._send(rank, exchange.overdue(self.now, 1.0))
            self._deliver_up()
            self._deliver_down(exchanges)
        self.sequence += exchanges[0].n_packets
        return values

    def _send(self, rank: int, replies: np.ndarray) -> None:
        if self.tag_bytes:
            state = worker_state(self.leases[rank].key, rank)
            write_tags(self.frames[rank], replies["row"], itertools.repeat(state))
        self.up += [(rank, self.frames[rank][row].copy()) for row in replies["row"]]

    def _deliver_up(self) -> None:
        taken, self.up = self._some(self.up)
        words, arrived = self._batch(taken, self.keys)
        replies = self.plane.handle(words, arrived)
        self.down += [(int(to), words[row].copy()) for row, to in replies]

    def _deliver_down(self, exchanges: list[TensorExchange]) -> None:
        taken, self.down = self._some(self.down)
        for rank, exchange in enumerate(exchanges):
            words, arrived = self._batch([one for one in taken if one[0] == rank], self.keys)
            self._send(rank, exchange.take(words, arrived, self.now, 1.0))

    def _some(self, under_way: list[Any]) -> tuple[list[Any], list[Any]]:
        """Choose what arrives now, in any order, and what stays under way."""
        fate = self.rng.random(len(under_way))
        now = [i for i in self.rng.permutation(len(under_way)) if fate[i] < 0.7]
        stays = [under_way[i] for i in range(len(under_way)) if fate[i] >= 0.7]
        chance = self.rng.random(len(now))
        arrives = [under_way[i] for i, c in zip(now, chance, strict=True) if c >= self.lose]
        again = [under_way[i] for i, c in zip(now, chance, strict=True) if c < self.double]
        return arrives, stays + again

    def _batch(self, frames: list[tuple[int, np.ndarray]], keys: list[int]) -> tuple[np.ndarray, np.ndarray]:
        words, arrived = new_rows(max(len(frames), 1), self.elements, self.tag_bytes), np.zeros(len(frames), ARRIVED)
        for i, (rank, frame) in enumerate(frames):
            words[i] = frame
            arrived[i] = (keys[rank], i, frame_bytes(self.elements, self.tag_bytes), False)
        return words, arrived
