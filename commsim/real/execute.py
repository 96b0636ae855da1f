"""Execute one rank's part of a schedule over a transport, by data flow.

A step begins when the steps whose data it needs have ended, and what precedes it on its wire has begun. Where the
library can only wait for a given message, messages begin in program order, and the one that is needed soonest is waited
for.

Why this cannot deadlock: a transfer's beginning waits only for the ends of transfers of earlier hops and, for the order
of its wire and the look-ahead, for the beginnings of transfers with smaller numbers, and a rank that must choose waits
for one on which such a beginning depends. So of the transfers that never complete the one with the smallest number has
begun at both ends, behind messages of its wire that have all been matched, and it completes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from numpy.typing import NDArray

from commsim.core.errors import BackendError
from commsim.core.schedule import Schedule

from .plan import LOCAL, RECEIVE, SEND, TransferStep, buffer_bounds, plan_rank
from .step_order import order_of
from .transport import Array, RankTransport

# Tags of the words at a fence; channels have smaller numbers. A send that is complete may still be in a buffer, so its
# receiver says when all is here. And what is sent to a rank that is still in an earlier stage would take its port from
# what that stage brings, so it says when it is ready.
ALL_HERE, READY = 30_000, 30_001


class Execution:
    """One rank's part of a schedule, bound to memory, ready to be run many times.

    Parameters
    ----------
    transport : RankTransport
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

    def __init__(self, transport: RankTransport, schedule: Schedule, n_elements: int, dtype: str = "float32") -> None:
        require_ranks(transport, schedule.n_participants)
        self.transport, self.schedule, self.n_elements = transport, schedule, n_elements
        self.steps = plan_rank(schedule, transport.rank, n_elements)
        bounds = buffer_bounds(schedule, n_elements)
        self.memory = transport.empty(int(bounds[-1]), dtype)
        self.input = self.memory[:n_elements]
        self.output = self.input if schedule.in_place else self.memory[n_elements : 2 * n_elements]
        # The library has one connection for all channels to a peer. Where they have weights, what a leaf sends is all
        # ready from the beginning, and would precede in it what others wait for.
        self._order = order_of(
            self.steps, transport.look_ahead, transport.wait_some is not None, by_channel=schedule.shares_equally
        )
        n = len(self.steps)
        self._stages = [list(stage) for _, stage in groupby(range(n), key=lambda k: self.steps[k].stage)]
        stages = schedule.expand()["stage"]  # of all ranks, not of this one only
        self._fences = int(min(stages, default=0)), int(max(stages, default=0))
        self._largest = max((s.dst.stop - s.dst.start for s in self.steps if s.staged), default=0)
        self._dtype = dtype
        self._free: list[Array] = []
        self._staging: list[Array] = [None] * n
        self._places: list[Array] = [self.memory[step.dst] if step.staged else None for step in self.steps]
        # Only messages that something follows are looked at again and again.
        self._awaited = [
            step.kind != LOCAL and (step.staged or first < n)
            for step, first in zip(self.steps, self._order.soonest, strict=True)
        ]
        # Views and calls are bound here, because slicing costs as much as posting a small message.
        self._begin = [self._beginning(k, step) for k, step in enumerate(self.steps)]
        self._commits = [partial(self._commit, k) if step.staged else None for k, step in enumerate(self.steps)]

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

    def release(self) -> None:
        """Let go of all memory now; the bound calls refer to this object, so that it would wait for the collector."""
        self._begin, self._commits, self._places, self._free, self._staging = [], [], [], [], []

    def run(self) -> None:
        """Execute this rank's part once."""
        waits = self._order.waits.copy()
        for stage in self._stages:
            number = self.steps[stage[0]].stage
            if self.transport.acknowledges and number > self._fences[0]:
                self._exchange_words(stage, READY)
            first = [k for k in stage if not waits[k]]
            self._execute(sorted(first, key=lambda k: self.steps[k].kind != RECEIVE), waits)
            if self.transport.acknowledges and number < self._fences[1]:
                self._exchange_words(stage, ALL_HERE)

    def _execute(self, startable: list[int], waits: list[int]) -> None:
        """Do what is ready and all that follows from it; when nothing is ready, wait for the library."""
        n, following, begin = len(self.steps), self._order.following, self._begin
        numbers: list[int] = []
        handles: list[Any] = []
        others: list[Any] = []
        while startable or handles:
            for event in startable:  # grows meanwhile
                if event < n:
                    handle = begin[event]()
                    if self._awaited[event]:
                        numbers.append(event)
                        handles.append(handle)
                    elif handle is not None:
                        others.append(handle)
                elif (commit := self._commits[event - n]) is not None:
                    commit()
                for later in following[event]:
                    waits[later] -= 1
                    if not waits[later]:
                        startable.append(later)
            startable = []
            if handles:
                complete = self._wait(numbers, handles)
                for place in complete:
                    event = n + numbers[place]
                    waits[event] -= 1
                    if not waits[event]:
                        startable.append(event)
                gone = set(complete)
                left = [place for place in range(len(handles)) if place not in gone]
                numbers, handles = [numbers[place] for place in left], [handles[place] for place in left]
        for handle in others:
            self.transport.wait(handle)

    def _wait(self, numbers: list[int], handles: list[Any]) -> Sequence[int]:
        """Return the places of messages that are complete: of any, or else of the one that is needed soonest."""
        if self.transport.wait_some is not None:
            return self.transport.wait_some(handles)
        soonest = min(range(len(numbers)), key=lambda place: self._order.soonest[numbers[place]])
        self.transport.wait(handles[soonest])
        return (soonest,)

    def _beginning(self, k: int, step: TransferStep) -> Callable[[], Any]:
        """Return the call with which a step begins; that of a message returns its handle."""
        if step.kind == SEND:
            return partial(self.transport.isend, self.memory[step.src], step.peer, step.tag)
        if step.kind == LOCAL:
            return partial(self._copy, k, self.memory[step.src])
        if step.staged:
            return partial(self._receive_beside, k, step)
        return partial(self.transport.irecv, self.memory[step.dst], step.peer, step.tag)

    def _receive_beside(self, k: int, step: TransferStep) -> Any:
        return self.transport.irecv(self._stage(k), step.peer, step.tag)

    def _copy(self, k: int, source: Array) -> None:
        step = self.steps[k]
        target = self._stage(k) if step.staged else self.memory[step.dst]
        target[:] = source

    def _stage(self, k: int) -> Array:
        """Memory for what has to wait until its place is free."""
        whole = self._free.pop() if self._free else self.transport.empty(self._largest, self._dtype)
        step = self.steps[k]
        part = whole[: step.dst.stop - step.dst.start]
        self._staging[k] = (whole, part)
        return part

    def _commit(self, k: int) -> None:
        """Put what was staged into its place."""
        whole, part = self._staging[k]
        target = self._places[k]
        if self.steps[k].reduces:
            target += part
        else:
            target[:] = part
        self._free.append(whole)

    def _exchange_words(self, stage: list[int], tag: int) -> None:
        """Send a word to all ranks that send to this one in a stage, and receive one from all that it sends to."""
        to, of = ({self.steps[k].peer for k in stage if self.steps[k].kind == kind} for kind in (RECEIVE, SEND))
        empty = self.transport.empty(1, "int32")
        lines = [self.transport.isend(empty, peer, tag) for peer in sorted(to)]
        heard = [self.transport.irecv(self.transport.empty(1, "int32"), peer, tag) for peer in sorted(of)]
        for handle in lines + heard:
            self.transport.wait(handle)


def require_ranks(transport: RankTransport, n_ranks: int) -> None:
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
        Function from a number of ranks to the schedule.
    n_processes : int
        Ranks and helpers.
    """
    schedule = build(n_processes)
    if schedule.n_helpers and n_processes > schedule.n_helpers:
        schedule = build(n_processes - schedule.n_helpers)
    return schedule if schedule.n_participants == n_processes else None
