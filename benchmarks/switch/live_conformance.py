"""The live switch and its workers on the ways that a proof has found: both must do what the model does, every time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.switch.way_tree import WayTree
from switch_model.live.data_plane import DataPlane
from switch_model.live.datagrams import ARRIVED, address_key
from switch_model.live.exchange import Lease, TensorExchange, frames_of
from switch_model.live.frames import LEAD, new_rows
from switch_model.prove import slot_events_kernel, slot_world_kernel
from switch_model.prove.event_trace import TraceStep
from switch_model.prove.question import ProofQuestion
from switch_model.prove.reserved_slots import ReservedSlots
from switch_model.slot_kernel import ALL, READ

JOB, FIRST_SLOT, ELEMENTS = 7, 1, 64
HOSTS = [(f"127.10.0.{1 + w}", 4000 + w) for w in range(4)]
Sent = dict[tuple[int, int, int], bytes]  # by epoch, worker and chunk


class ConformanceError(AssertionError):
    """What is shipped does something else than the model."""


class PlaneUnderTest(Protocol):
    """A switch that a way is played to."""

    def open(self, peers: Sequence[tuple[str, int]], n_slots: int, begin: int) -> None:
        """Let the job begin, with clean slots."""

    def close(self) -> None:
        """End the job."""

    def give(self, payload: bytes, worker: int) -> list[tuple[int, bytes]]:
        """Hand a datagram of a worker to the switch; return who gets what."""


class UserPlane:
    """The switch in user space.

    Parameters
    ----------
    question : ProofQuestion
        What was proved.
    """

    def __init__(self, question: ProofQuestion) -> None:
        self._plane = DataPlane(FIRST_SLOT + question.slots, ELEMENTS)
        self._words, self._arrived = new_rows(1, ELEMENTS), np.zeros(1, ARRIVED)

    def open(self, peers: Sequence[tuple[str, int]], n_slots: int, begin: int) -> None:
        """Let the job begin, with clean slots."""
        self._plane.open(JOB, peers, FIRST_SLOT, n_slots, begin)

    def close(self) -> None:
        """End the job."""
        self._plane.close(JOB)

    def give(self, payload: bytes, worker: int) -> list[tuple[int, bytes]]:
        """Hand a datagram of a worker to the switch; return who gets what."""
        row = self._words.view(np.uint8)[0]
        row[LEAD:] = np.frombuffer(payload, np.uint8)
        self._arrived[0] = (address_key(*HOSTS[worker]), 0, len(payload), False)
        replies = self._plane.handle(self._words, self._arrived)
        return [(int(to), row[LEAD:].tobytes()) for to in replies["to"]]


class LiveWay:
    """A job of live workers, whose datagrams come to a switch when a way says so.

    Parameters
    ----------
    steps : ReservedSlots
        The model.
    plane : PlaneUnderTest
        The switch.
    """

    def __init__(self, steps: ReservedSlots, plane: PlaneUnderTest) -> None:
        self._model, self._question, self._plane = steps.model, steps.question, plane
        self._epoch, self.sent, self._results = -1, Sent(), dict[tuple[int, int], bytes]()
        self._begin()

    def play(self, way: list[TraceStep]) -> None:
        """Do what a way says, and compare."""
        for step in way:
            if step.kind == "packet":
                self.packet(step.worker, step.chunk, step.ago, step.action)
            elif step.kind == "result":
                self._take(step.worker, step.chunk)
            else:
                self._plane.close()
                self._begin()

    def packet(self, worker: int, chunk: int, ago: int, action: int) -> None:
        """Hand a datagram to the switch, and compare who gets what with what the model says."""
        replies = self._plane.give(self.sent[self._epoch - ago, worker, chunk], worker)
        to = range(self._question.workers) if action & ALL else [worker]
        if [rank for rank, _ in replies] != (list(to) if action >= 0 and action & READ else []):
            raise ConformanceError(f"chunk {chunk} of w{worker}: the model says {action}, the switch {replies}")
        for rank, payload in replies:
            values = np.frombuffer(payload, ">i4", ELEMENTS, 10)
            if not np.array_equal(values, self._sum(chunk)):
                raise ConformanceError(f"chunk {chunk}: the switch sends another sum")
            self._results[rank, chunk] = payload

    def close(self) -> None:
        """End the job, and take copies of results once more: a worker throws them away."""
        for (worker, chunk), payload in self._results.items():
            exchange = self._exchanges[worker]
            if self._tensors[worker][chunk * ELEMENTS] == self._sum(chunk)[0]:
                n_done, strange = exchange.n_done, exchange.strange
                if len(self._receive(worker, payload)) or (exchange.n_done, exchange.strange) != (n_done, strange + 1):
                    raise ConformanceError(f"w{worker} takes a copy of chunk {chunk}")
        self._plane.close()

    def _begin(self) -> None:
        q = self._question
        self._epoch += 1
        self._results.clear()
        draw = np.random.default_rng(self._epoch).integers(-(2**31), 2**31, (q.workers, q.chunks * ELEMENTS), np.int32)
        self._values, self._tensors = draw, [row.copy() for row in draw]
        begin = self._epoch * self._model.step
        self._plane.open(HOSTS[: q.workers], q.slots, begin)
        leases = [Lease(w, q.workers, JOB, FIRST_SLOT, q.slots, ELEMENTS, begin) for w in range(q.workers)]
        self._rows = [frames_of(lease) for lease in leases]
        self._exchanges = [TensorExchange(lease, self._tensors[lease.rank], begin, self._rows[lease.rank])
                           for lease in leases]  # fmt: skip
        for w, exchange in enumerate(self._exchanges):
            self._keep(w, range(q.slots), exchange.begin(0.0, 1.0))

    def _keep(self, worker: int, chunks: Sequence[int], frames: NDArray[Any]) -> None:
        if len(frames) != len(chunks):
            raise ConformanceError(f"w{worker} sends {len(frames)} frames, the model {list(chunks)}")
        for chunk, row in zip(chunks, frames["row"], strict=True):
            self.sent[self._epoch, worker, chunk] = self._rows[worker].view(np.uint8)[row, LEAD:].tobytes()

    def _take(self, worker: int, chunk: int) -> None:
        """Hand a result to a worker, and compare what it sends next with what the model says."""
        n_done, following = self._exchanges[worker].n_done, chunk + self._question.slots
        frames = self._receive(worker, self._results[worker, chunk])
        if self._exchanges[worker].n_done != n_done + 1:
            raise ConformanceError(f"w{worker} does not take the result of chunk {chunk}")
        self._keep(worker, [following] if following < self._question.chunks else [], frames)
        taken = self._tensors[worker][chunk * ELEMENTS : (chunk + 1) * ELEMENTS]
        if not np.array_equal(taken, self._sum(chunk)):
            raise ConformanceError(f"w{worker} has another sum of chunk {chunk}")

    def _receive(self, worker: int, payload: bytes) -> NDArray[Any]:
        words, arrived = new_rows(1, ELEMENTS), np.zeros(1, ARRIVED)
        words.view(np.uint8)[0, LEAD:] = np.frombuffer(payload, np.uint8)
        arrived[0]["n_bytes"] = len(payload)
        return self._exchanges[worker].take(words, arrived, 0.0, 1.0)

    def _sum(self, chunk: int) -> NDArray[np.int32]:
        part = self._values[:, chunk * ELEMENTS : (chunk + 1) * ELEMENTS]
        total: NDArray[np.int32] = part.sum(axis=0, dtype=np.int64).astype(np.int32)
        return total


@dataclass(frozen=True, slots=True)
class LiveConformance:
    """What was compared.

    Parameters
    ----------
    states, packets : int
        States, and packets that came in one of them.
    """

    states: int
    packets: int


def check_live(tree: WayTree, plane: PlaneUnderTest, every: int = 1) -> LiveConformance:
    """Play the way to each state to a switch and to workers, and then each packet that may come there.

    Parameters
    ----------
    tree : WayTree
        Ways of a proof of "switchml_live".
    plane : PlaneUnderTest
        The switch.
    every : int
        Take each state of so many.

    Returns
    -------
    LiveConformance

    Raises
    ------
    ConformanceError
        If the switch or a worker does something else than the model.
    """
    steps = ReservedSlots(tree.found.question, symmetric=False)
    m, world, packets = steps.model, steps.world, 0
    for state in range(0, len(tree.named), every):
        way = tree.way(state)
        epoch = sum(step.kind in ("restart", "reboot") for step in way)
        job = LiveWay(steps, plane)
        job.play(way)
        sent = sorted(job.sent)
        job.close()
        for of_epoch, worker, chunk in sent:
            slot_world_kernel.decode(m, world, tree.named, state)
            action = slot_events_kernel.arrive(m, world, worker, chunk % m.slots, chunk // m.slots, epoch - of_epoch)
            job = LiveWay(steps, plane)
            job.play(way)
            job.packet(worker, chunk, epoch - of_epoch, action)
            job.close()
            packets += 1
    return LiveConformance(len(range(0, len(tree.named), every)), packets)
