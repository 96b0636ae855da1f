"""Execute one rank's part of a schedule over MPI on sparse vectors: messages are as long as what is in them.

It cannot deadlock for the reason given in :mod:`commsim.real.execute`: a rank blocks only on messages whose number
in the schedule is smaller than that of the one whose turn it is. Messages with the same ends and channel are taken in
the order of the schedule, which is that in which they were sent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.errors import InputError
from commsim.core.schedule import Schedule
from commsim.sparse.block_sets import UNLIMITED, limits_of
from commsim.sparse.form import SparseForm
from commsim.sparse.partition import Partition
from commsim.sparse.sparse_vector import SparseVector

from .execute import require_ranks
from .plan import LOCAL, RECEIVE, TransferStep, complete_in_order, plan_rank
from .sparse_wire import Elements, VectorLayout, apart, chunks_of_messages, codec, last_writes
from .transport import RankTransport


class SparseTransport(RankTransport, Protocol):
    """A transport that can receive a message whose size it does not know."""

    def receive_any_size(self, peer: int, tag: int) -> NDArray[np.uint8]:
        """Return the next message of a peer and tag."""


class SparseExecution:
    """One rank's part of a schedule, ready to be run on sparse vectors many times.

    Parameters
    ----------
    transport : SparseTransport
        Transport with as many processes as the schedule has participants: those behind its ranks are its helpers.
    schedule : Schedule
        What to execute; in place.
    form : SparseForm
        How messages are written.
    n_elements : int
        Length of the vector.
    dtype : str
        Data type of a value.
    block : int, optional
        Elements of a block; by default the form's.
    k : int, optional
        Elements that each rank starts with, for a lossy form.
    bounds : tuple of int, optional
        First block of each chunk, and the end, for a form with balanced ranges.

    Attributes
    ----------
    n_bytes : int
        Bytes that this rank has sent in the last run.

    Raises
    ------
    BackendError
        If the number of processes differs, or an encoding of the form cannot be written.
    InputError
        If the schedule is out of place, a lossy form lacks k, or a balanced one its bounds.
    """

    def __init__(
        self,
        transport: SparseTransport,
        schedule: Schedule,
        form: SparseForm,
        n_elements: int,
        dtype: str = "float32",
        *,
        block: int | None = None,
        k: int | None = None,
        bounds: tuple[int, ...] | None = None,
    ) -> None:
        require_ranks(transport, schedule.n_participants)
        if not schedule.in_place:
            raise InputError(f"{schedule.name} is out of place: sparse vectors keep their chunks where they are")
        if form.truncate is not None and k is None:
            raise InputError(f"{schedule.name} is lossy, and needs the k that ranks start with")
        if form.balanced and bounds is None:
            raise InputError(f"{schedule.name} balances its ranges, and needs their bounds, which all ranks agree on")
        self.transport, self.schedule = transport, schedule
        self.block = block or form.block
        self.layout = VectorLayout(
            Partition(n_elements, self.block, schedule.n_chunks, form.hashed, bounds), np.dtype(dtype)
        )
        self.steps = plan_rank(schedule, transport.rank, schedule.n_chunks)  # an element per chunk: steps in addresses
        transfers = schedule.expand()
        own = np.flatnonzero((transfers["src"] == transport.rank) | (transfers["dst"] == transport.rank))
        chunks = chunks_of_messages(schedule, transfers)
        encodings = form.encodings(schedule, transfers)
        self._chunks = [apart(chunks[i]) for i in own]
        self._codecs = [codec(encodings[i]) for i in own]
        limits = limits_of(None if form.truncate is None else form.truncate(schedule, int(k or 0)), len(transfers))
        self._cuts = last_writes(self.steps, limits[own].tolist())
        self._queues: dict[tuple[int, int], list[int]] = defaultdict(list)
        for number, step in enumerate(self.steps):
            if step.kind == RECEIVE:
                self._queues[step.peer, step.tag].append(number)
        self.n_bytes = 0
        self.load(np.zeros(n_elements, dtype))

    def load(self, values: ArrayLike) -> None:
        """Set this rank's vector, given with its zeros. A helper has none of its own.

        Raises
        ------
        InputError
            If a value is NaN or infinite, or there is another number of them.
        """
        vector = SparseVector.from_dense(np.asarray(values, self.layout.dtype), self.block)
        if vector.n_elements != self.layout.partition.n_elements:
            raise InputError(f"needs {self.layout.partition.n_elements} elements, got {vector.n_elements}")
        every = range(self.schedule.n_chunks)
        self.state: dict[int, Elements] = {}
        self.residual = vector.at(np.arange(0))
        if self.transport.rank < self.schedule.n_ranks:
            self.state = dict(enumerate(self.layout.split((vector.index, vector.value), every)))

    def result(self) -> SparseVector:
        """Return this rank's sum."""
        parts = [self.state[chunk] for chunk in range(self.schedule.n_chunks) if chunk in self.state]
        index = np.concatenate([part[0] for part in parts])
        order = np.argsort(index, kind="stable")
        value = np.concatenate([part[1] for part in parts])[order]
        return SparseVector(self.layout.partition.n_elements, index[order], value)

    def run(self) -> None:
        """Execute this rank's part once."""
        self._done = bytearray(len(self.steps))
        self._came: dict[int, list[Elements]] = {}
        self._taken = dict.fromkeys(self._queues, 0)
        self.n_bytes = 0
        sending: list[tuple[Any, Any]] = []  # a message must live as long as it is under way
        stage_first = stage = 0
        for number, step in enumerate(self.steps):
            if step.stage != stage:
                self._finish_all(stage_first, number)
                stage, stage_first = step.stage, number
            if step.kind == RECEIVE:
                continue
            for earlier in step.needs:
                self._finish(earlier)
            held = [self.state[address] for address in range(step.src.start, step.src.stop)]
            if step.kind == LOCAL:
                self._came[number] = held
                continue
            for message in self._write(number, held):
                sending.append((self.transport.isend(message, step.peer, step.tag), message))
                self.n_bytes += len(message)
            self._done[number] = 1  # messages are copies: nothing that comes later can change them
        self._finish_all(stage_first, len(self.steps))
        for handle, _ in sending:
            self.transport.wait(handle)

    def _write(self, number: int, held: list[Elements]) -> Iterator[NDArray[np.uint8]]:
        write = self._codecs[number][0]
        for chunks in self._chunks[number]:
            parts, held = held[: len(chunks)], held[len(chunks) :]
            index, value = (np.concatenate(column) for column in zip(*parts, strict=True))
            yield write(self.layout, chunks, (index, value))

    def _finish_all(self, first: int, end: int) -> None:
        for number in range(first, end):
            self._finish(number)

    def _finish(self, number: int) -> None:
        complete_in_order(number, self.steps, self._done, self._apply)

    def _apply(self, number: int, step: TransferStep) -> None:
        if step.kind == RECEIVE:
            self._take(number, step)
        for address, elements in zip(range(step.dst.start, step.dst.stop), self._came.pop(number), strict=True):
            held = self.state.get(address)
            self.state[address] = add_lists(held, elements) if step.reduces and held is not None else elements
            if self._cuts[number] != UNLIMITED:
                self._cut(address, self._cuts[number])
        self._done[number] = 1

    def _take(self, number: int, step: TransferStep) -> None:
        """Receive messages of this one's sender and channel up to this one."""
        queue = self._queues[step.peer, step.tag]
        while number not in self._came:
            first = queue[self._taken[step.peer, step.tag]]
            read = self._codecs[first][1]
            self._came[first] = []
            for chunks in self._chunks[first]:
                message = self.transport.receive_any_size(step.peer, step.tag)
                self._came[first] += self.layout.split(read(self.layout, chunks, message), chunks)
            self._taken[step.peer, step.tag] += 1

    def _cut(self, address: int, limit: int) -> None:
        """Keep the largest elements at an address, and add the others to the residual."""
        whole = SparseVector(self.layout.partition.n_elements, *self.state[address])
        selected = whole.top_k(min(limit, whole.n_elements))
        self.residual = self.residual.merge(whole.without(selected))
        self.state[address] = selected.index, selected.value


def add_lists(a: Elements, b: Elements) -> Elements:
    """Return the sum of two lists; at an index of both, ``a + b``."""
    from .sparse_merge_kernel import merge_lists

    index, value = np.empty(len(a[0]) + len(b[0]), np.int64), np.empty(len(a[0]) + len(b[0]), a[1].dtype)
    n = merge_lists(*a, *b, index, value)
    return index[:n], value[:n]
