"""A process for each pipeline stage, and one clock for all: what they put on streams happens in one timeline."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Listener, wait
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError
from commsim.emulation.failures import ProgramError

from .network_times import Group, NetworkTimes
from .queued_work import Moment, QueuedCollective, QueuedMessage, StreamWait, WorkQueue
from .stage_gpu import ClockReply, Stages
from .stage_process import SOCKET, run_stage
from .stage_timeline import StageTimeline

LOOK_S = 0.2
ADDRESS = "stages"  # name of the socket
START = f"from {run_stage.__module__} import {run_stage.__name__}; {run_stage.__name__}()"
__all__ = ["ADDRESS", "StageRuns"]


@dataclass(slots=True)
class _Stage:
    """One stage: its process, its streams and moments by number, and the moment that its host waits for."""

    number: int
    process: subprocess.Popen[bytes]
    connection: Connection[Any, Any] | None = None
    streams: list[WorkQueue] = field(default_factory=list)
    moments: dict[int, Moment] = field(default_factory=dict)
    n_moments: int = 0
    received: dict[int, QueuedMessage] = field(default_factory=dict)
    requests: list[list[Any]] = field(default_factory=list)
    awaits: Callable[[], bool] | None = None
    free: list[WorkQueue] = field(default_factory=list)
    report: Any = None


class StageRuns:
    """All stages of a pipeline.

    Parameters
    ----------
    network : NetworkTimes
        Times of exchanges.
    stages : Stages
        Number of stages, and ranks of each.
    eager : float, bytes
        Largest message that is sent before its receive is posted.
    """

    def __init__(self, network: NetworkTimes, stages: Stages, eager: float) -> None:
        self.timeline = StageTimeline(network, stages.n)
        self._network, self._of, self._eager = network, stages, eager
        self._stages: list[_Stage] = []
        self._met: dict[tuple[int, tuple[Group, ...]], int] = {}
        self._meetings: dict[tuple[tuple[Group, ...], int], QueuedCollective] = {}
        self._open: dict[tuple[int, int, Any], deque[tuple[str, QueuedMessage]]] = {}

    def run(self, job: Callable[[int], Any], folder: Path) -> list[Any]:
        """Run a process for each stage until all have ended; return what each reports.

        Parameters
        ----------
        job : callable
            Function of a stage to what its process is told.
        folder : Path
            Private folder, for the socket.

        Raises
        ------
        ProgramError
            If a stage raises, dies, or calls what does not fit to the others.
        """
        address = str(folder / ADDRESS)
        try:
            with Listener(address, family="AF_UNIX", backlog=self._of.n) as listener:
                listener._listener._socket.settimeout(LOOK_S)  # type: ignore[attr-defined]
                for number in range(self._of.n):
                    given = {SOCKET: f"{address}:{number}"}
                    process = subprocess.Popen(
                        [sys.executable, "-c", START], env={**os.environ, **given, "PYTHONPATH": _path()},
                        stdin=subprocess.DEVNULL, start_new_session=True,
                    )  # fmt: skip
                    self._stages.append(_Stage(number, process))
                self._accept(listener)
            for stage in self._stages:
                _connection(stage).send_bytes(pickle.dumps(job(stage.number)))
            self._serve()
            self.timeline.advance(lambda: all(map(self.timeline.is_idle, range(self._of.n))))
            return [stage.report for stage in self._stages]
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"interrupted; {'; '.join(map(self._doing, self._stages))}") from None
        finally:
            self._end_all()

    def _doing(self, stage: _Stage) -> str:
        """Say what a stage does, for Ctrl-C."""
        what = "ended" if stage.report is not None else "runs" if stage.awaits is None else "waits"
        return f"rank {stage.number * self._of.size} (stage {stage.number}): {what}"

    def _accept(self, listener: Listener) -> None:
        while any(stage.connection is None for stage in self._stages):
            with contextlib.suppress(TimeoutError, EOFError, ConnectionError):  # or it has died, and is seen
                connection = listener.accept()
                self._stages[connection.recv()].connection = connection
            for stage in self._stages:
                if stage.connection is None and stage.process.poll() is not None:
                    raise ProgramError(f"stage {stage.number}: its process ended before it began")

    def _serve(self) -> None:
        """Take what all say until each waits, then let time pass; in the order of stages, so that runs are alike."""
        running, ended = set(range(self._of.n)), set[int]()
        while len(ended) < self._of.n:
            while running:
                by_connection = {_connection(self._stages[number]): number for number in running}
                for ready in wait(list(by_connection)):
                    number = by_connection[ready]  # type: ignore[index]
                    stage = self._stages[number]
                    try:
                        stage.requests = _connection(stage).recv()
                    except (EOFError, ConnectionResetError):
                        raise ProgramError(_died(stage, number * self._of.size)) from None
                    running.discard(number)
            for stage in self._stages:
                asked, stage.requests = stage.requests, []
                for what, *given in asked:
                    self._take(stage, what, given)
                if stage.report is not None:
                    ended.add(stage.number)
            answered = [stage for stage in self._stages if stage.number not in ended and stage.awaits is None]
            waiting = [stage for stage in self._stages if stage.awaits is not None]
            if not answered and waiting:
                self.timeline.advance(
                    lambda: any(stage.awaits is not None and stage.awaits() for stage in self._stages)
                )
                for stage in waiting:
                    if stage.awaits is not None and stage.awaits():
                        stage.awaits = None
                        self._answer(stage)
                        running.add(stage.number)
            running.update(stage.number for stage in answered)

    def _answer(self, stage: _Stage) -> None:
        reached = [(number, moment.time) for number, moment in stage.moments.items() if moment.time is not None]
        payloads = {}
        for number, _ in reached:
            del stage.moments[number]
            message = stage.received.pop(number, None)
            if message is not None and message.payload is not None:
                payloads[number] = message.payload
        _connection(stage).send(ClockReply(self.timeline.clock, reached, payloads))

    def _take(self, stage: _Stage, what: str, given: Sequence[Any]) -> None:
        """Do what a stage says."""
        timeline = self.timeline
        if what == "stream":
            stage.streams.append(timeline.stream(given[0], stage.number))
        elif what == "compute":
            timeline.compute(stage.streams[given[0]], *given[1:])
        elif what == "record":
            timeline.record(stage.streams[given[1]], self._moment(stage, given[0]))
        elif what == "wait":
            if given[1] in stage.moments:  # else it has been reached, and said so
                timeline.wait(stage.moments[given[1]], stage.streams[given[0]])
        elif what == "collective":
            number, on, *call = given
            exchange = self._meet(stage, *call)
            stage.streams[on].queue.append(exchange)
            timeline.record(stage.streams[on], self._moment(stage, number, exchange))
        elif what in ("send", "receive"):
            self._message(stage, what, *given)
        elif what == "synchronize":
            moment = None if given[0] is None else stage.moments[given[0]]
            stage.awaits = (
                (lambda: timeline.is_idle(stage.number)) if moment is None else (lambda: moment.time is not None)
            )
        elif what == "idle":
            _connection(stage).send(not stage.streams[given[0]].queue)
        elif what == "fail":
            raise ProgramError(given[0])
        else:
            stage.report = given[0]

    def _moment(self, stage: _Stage, number: int, exchange: QueuedCollective | None = None) -> Moment:
        moment = stage.moments[number] = Moment(exchange=exchange)
        return moment

    def _meet(
        self, stage: _Stage, operation: str, size: float, groups: tuple[Group, ...], site: str
    ) -> QueuedCollective:
        """Return the collective that a stage calls: of several stages the n-th of each is one."""
        n_gpus = len(self._of.of(groups[0]))
        number = self._met[stage.number, groups] = self._met.get((stage.number, groups), 0) + 1
        known = self._meetings.get((groups, number))
        if known is None:
            costs = self._network.of(operation, size, groups)
            known = QueuedCollective(costs, operation, size, groups, site, n_gpus=n_gpus)
            self.timeline.exchanges.append(known)
            if n_gpus > 1:
                self._meetings[groups, number] = known
        elif (known.operation, known.size) != (operation, size):
            raise ProgramError(
                f"stage {stage.number} calls {operation} of {size:g} bytes ({site}) where another one calls "
                f"{known.operation} of {known.size:g} bytes ({known.site})"
            )
        return known

    def _message(
        self, stage: _Stage, what: str, number: int, begun: int, other: int, key: Any, size: float, *rest: Any
    ) -> None:
        """Put a send or a receive on a stream of its own; the n-th sent is the n-th received."""
        site = rest[-1]
        ends = (stage.number, other) if what == "send" else (other, stage.number)
        waiting = self._open.setdefault((*ends, key), deque())
        if waiting and waiting[0][0] != what:
            _, message = waiting.popleft()
            if message.size != size:
                raise ProgramError(
                    f"stage {ends[0]} sends {message.size if what == 'receive' else size:g} bytes to stage {ends[1]}, "
                    f"which receives {size if what == 'receive' else message.size:g} ({message.site}, {site})"
                )
        else:
            pairs = tuple((ends[0] * self._of.size + k, ends[1] * self._of.size + k) for k in range(self._of.size))
            costs = self._network.message(size, pairs)
            message = QueuedMessage(costs, "send", size, pairs, site, n_gpus=2, ends=ends, is_eager=size <= self._eager)
            waiting.append((what, message))
            self.timeline.exchanges.append(message)
        if what == "send":
            message.payload, message.site = rest[0], site
        else:
            stage.received[number] = message
        stream = next((one for one in stage.free if not one.queue), None)
        if stream is None:
            stream = self.timeline.stream(f"messages {len(stage.free)}", stage.number)
            stage.free.append(stream)
        start = stage.moments.get(begun)
        if start is not None:
            stream.queue.append(StreamWait(start))
        stream.queue.append(message)
        self.timeline.record(stream, self._moment(stage, number, message))

    def _end_all(self) -> None:
        """End all processes with what they started, and wait until they are gone."""
        for stage in self._stages:
            if stage.connection is not None:
                stage.connection.close()
            if stage.report is not None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    stage.process.wait(2.0)
            if stage.process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(stage.process.pid, signal.SIGKILL)
            stage.process.wait()


def _connection(stage: _Stage) -> Connection[Any, Any]:
    if stage.connection is None:
        raise InputError(f"stage {stage.number} is not connected")
    return stage.connection


def _died(stage: _Stage, rank: int) -> str:
    with contextlib.suppress(subprocess.TimeoutExpired):
        stage.process.wait(2.0)
    code = stage.process.poll()
    why = f"killed by {signal.Signals(-code).name}" if code is not None and code < 0 else f"ended, exit code {code}"
    return f"rank {rank} (stage {stage.number}): {why} while others wait for it"


def _path() -> str:
    here = str(Path(__file__).resolve().parents[3])
    return os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH", ""), here)))
