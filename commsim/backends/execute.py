"""Execute one rank's part of a schedule over a transport.

Why this cannot deadlock: a rank goes through its own transfers in the program order of the whole schedule, and when
its turn comes to number i it blocks only on transfers with smaller numbers. Suppose that some transfers never
complete, and take the one with the smallest number. Its sender gets to it, because everything that it blocks on before
has a smaller number and completes; so does its receiver. Hence both are posted; the earlier messages with the same
source, destination and tag were posted in the same order at both ends and have been matched; so it completes.
Receives that are posted ahead of their turn block on nothing, and a receive that arrives beside its place (staged) is
posted whatever still reads that place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import BackendError
from commsim.core.schedule import Schedule

from .plan import LOCAL, RECEIVE, SEND, Step, buffer_bounds, complete_in_order, plan_rank
from .transport import Array, Transport


ACKNOWLEDGEMENT = 30_000
"""Tag of the messages that say at a fence that all has arrived; channels have smaller numbers."""


class Execution:
    """One rank's part of a schedule, bound to memory, ready to be run many times.

    Parameters
    ----------
    transport : Transport
        Must have as many processes as the schedule has participants: those behind its ranks are its helpers.
    schedule : Schedule
        What to execute.
    n_elements : int
        Elements of the input buffer.
    dtype : str
        Type of an element.

    Raises
    ------
    BackendError
        If the number of ranks differs.
    InputError
        If the schedule copies chunks of different sizes onto each other.
    """

    def __init__(self, transport: Transport, schedule: Schedule, n_elements: int, dtype: str = "float32") -> None:
        require_ranks(transport, schedule.n_participants)
        self.transport, self.schedule, self.n_elements = transport, schedule, n_elements
        self.steps = plan_rank(schedule, transport.rank, n_elements)
        bounds = buffer_bounds(schedule, n_elements)
        self.memory = transport.empty(int(bounds[-1]), dtype)
        self.input = self.memory[:n_elements]
        self.output = self.input if schedule.in_place else self.memory[n_elements : 2 * n_elements]
        # The views are made here, because slicing costs as much as posting a small message.
        self._read = [self.memory[step.src] if step.kind != RECEIVE else None for step in self.steps]
        self._write = [self.memory[step.dst] if step.kind != SEND else None for step in self.steps]
        self._receives = [k for k, step in enumerate(self.steps) if step.kind == RECEIVE]
        self._largest = max((s.dst.stop - s.dst.start for s in self.steps if s.staged), default=0)
        self._dtype = dtype
        self._free: list[Array] = []

    def load(self, values: NDArray[Any]) -> None:
        """Set the input buffer; what else there is of memory starts as zeros. A helper has no input of its own."""
        if self.transport.rank >= self.schedule.n_ranks:
            self.memory[:] = -0.0  # to which any number may be added without changing it, -0.0 too
            return
        self.transport.load(self.input, values)
        self.memory[self.n_elements :] = 0

    def result(self) -> NDArray[Any]:
        """Return the whole output buffer."""
        return self.transport.values(self.output)

    def run(self) -> None:
        """Play this rank's part once."""
        self._handles: list[Any] = [None] * len(self.steps)
        self._staging: list[Array] = [None] * len(self.steps)
        self._done = bytearray(len(self.steps))
        self._n_posted = 0
        stage_first = stage = 0
        for k, step in enumerate(self.steps):
            if step.stage != stage:
                self._finish_range(stage_first, k)
                self._acknowledge(stage_first, k)
                stage, stage_first = step.stage, k
            if step.kind != RECEIVE or self._n_posted < len(self._receives):
                self._post_receives(k, stage)
            if step.kind == RECEIVE:
                continue
            for p in step.needs:
                if not self._done[p]:
                    self._finish(p)
            if step.kind == SEND:
                self._handles[k] = self.transport.isend(self._read[k], step.peer, step.tag)
            else:
                self._begin_local(k, step)
        self._finish_range(stage_first, len(self.steps))

    def _post_receives(self, turn: int, stage: int) -> None:
        """Post receives in program order, up to the look-ahead; one whose place is in use waits for its turn."""
        last = turn + self.transport.look_ahead
        while self._n_posted < len(self._receives):
            k = self._receives[self._n_posted]
            step = self.steps[k]
            if k > last or step.stage != stage:
                return
            target = self._write[k]
            if step.staged:
                target = self._stage(k)
            elif not all(self._done[p] for p in step.before):
                if k > turn:
                    return
                for p in step.before:
                    self._finish(p)
            self._handles[k] = self.transport.irecv(target, step.peer, step.tag)
            self._n_posted += 1

    def _begin_local(self, k: int, step: Step) -> None:
        """Copy within this rank; beside its place when others of the hop still read that place."""
        if step.staged:
            self._stage(k)[:] = self._read[k]
            return
        for p in step.before:
            self._finish(p)
        self._write[k][:] = self._read[k]  # type: ignore[index]  # only sends have nothing to write
        self._done[k] = 1

    def _stage(self, k: int) -> Array:
        whole = self._free.pop() if self._free else self.transport.empty(self._largest, self._dtype)
        step = self.steps[k]
        part = whole[: step.dst.stop - step.dst.start]
        self._staging[k] = (whole, part)
        return part

    def _finish_range(self, first: int, end: int) -> None:
        for k in range(first, end):
            if not self._done[k]:
                self._finish(k)

    def _acknowledge(self, first: int, end: int) -> None:
        """At a fence, learn from each receiver that it has all: a send that is complete may still be in a buffer."""
        if not self.transport.acknowledges:
            return
        stage = self.steps[first:end]
        to, of = ({step.peer for step in stage if step.kind == kind} for kind in (RECEIVE, SEND))
        empty = self.transport.empty(1, "int32")
        said = [self.transport.isend(empty, peer, ACKNOWLEDGEMENT) for peer in sorted(to)]
        heard = [self.transport.irecv(self.transport.empty(1, "int32"), peer, ACKNOWLEDGEMENT) for peer in sorted(of)]
        for handle in said + heard:
            self.transport.wait(handle)

    def _finish(self, k: int) -> None:
        complete_in_order(k, self.steps, self._done, self._complete)

    def _complete(self, k: int, step: Step) -> None:
        if step.kind != LOCAL:
            self.transport.wait(self._handles[k])
        if self._staging[k] is not None:
            whole, part = self._staging[k]
            target = self._write[k]
            if step.reduces:
                target += part
            else:
                target[:] = part  # type: ignore[index]  # only sends have nothing to write
            self._free.append(whole)
        self._done[k] = 1


def require_ranks(transport: Transport, n_ranks: int) -> None:
    """Raise unless the transport has `n_ranks` ranks.

    Raises
    ------
    BackendError
        Saying how to start them.
    """
    if transport.size != n_ranks:
        raise BackendError(
            f"{n_ranks} ranks are needed and {transport.size} are running; start them with mpirun -n {n_ranks} ..."
        )


def for_processes(build: Callable[[int], Schedule], n_processes: int) -> Schedule | None:
    """Build for as many ranks as leave just enough of `n_processes` to the helpers; None where these leave none.

    Parameters
    ----------
    build : callable
        From a number of ranks to the schedule.
    n_processes : int
        Ranks and helpers.
    """
    schedule = build(n_processes)
    if schedule.n_helpers and n_processes > schedule.n_helpers:
        schedule = build(n_processes - schedule.n_helpers)
    return schedule if schedule.n_participants == n_processes else None


def run_once(transport: Transport, schedule: Schedule, values: NDArray[Any]) -> NDArray[Any]:
    """Execute a schedule on this rank's input and return its output buffer.

    Parameters
    ----------
    transport : Transport
        Way to the other ranks, which call this too.
    schedule : Schedule
        What to execute.
    values : array[n_elements]
        Input of this rank; of a helper only its length counts.
    """
    execution = Execution(transport, schedule, len(values), str(np.asarray(values).dtype))
    execution.load(values)
    execution.run()
    transport.synchronize()
    return execution.result()
