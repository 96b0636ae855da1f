"""Ranks as processes, each connected to the coordinator by a socket in a private folder."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError
from commsim.core.files.opening import check_regular

from .coordinator import Coordinator
from .failures import ProgramError, interrupted
from .framed_link import FramedLink
from .rank import EAGER, FACTOR, NUMBER, SIZE, SOCKET
from .rank_calls import Call, Collective, PendingCall, Receive, Send

# How often processes are looked at that have not connected, s; and what they have to end by themselves.
LOOK_S, GRACE_S = 0.2, 2.0
FLAGS = ("-u", "-B", "-O", "-s", "-E")  # of Python, that may stand before a program
LAUNCHERS = ("mpiexec", "mpiexec.hydra", "mpirun", "srun", "torchrun")
WHAT_RANKS_ARE = "a rank is a program of Python, without the flags -E, -I and -S"
ADDRESS = "ranks"  # name of the socket of the coordinator
__all__ = ["ADDRESS", "ProcessRanks", "interpreter", "python_path"]


class ProcessRanks:
    """All ranks as processes.

    Parameters
    ----------
    coordinator : Coordinator
        Their clocks and network.
    factor : float, optional
        What the processor time of a rank is multiplied by; None where computing takes no time.
    """

    def __init__(self, coordinator: Coordinator, factor: float | None = None) -> None:
        self.coordinator, self.factor = coordinator, factor
        self.n_ranks = len(coordinator.clocks)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._connections: dict[int, Connection[Any, Any]] = {}
        self._links: dict[int, FramedLink] = {}
        self._operations: list[dict[int, PendingCall]] = [{} for _ in range(self.n_ranks)]
        self._said: list[deque[tuple[Any, ...]]] = [deque() for _ in range(self.n_ranks)]  # and not yet done
        self._asking: set[int] = set()  # ranks that wait for an answer

    def run(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        """Run a command once for each rank, until all have ended.

        Parameters
        ----------
        command : sequence of str
            What is started for each.
        folder : Path
            Private folder, for the socket.
        environment : mapping of str to str
            What the processes have beside this process's environment and their rank.

        Raises
        ------
        ProgramError
            If a rank raises, dies or ends without a word, or all are deadlocked; all processes have ended.
        InputError
            If the command cannot be started.
        KeyboardInterrupt
            After Ctrl-C, with what ranks waited for.
        """
        address = str(folder / ADDRESS)
        try:
            with Listener(address, family="AF_UNIX", backlog=self.n_ranks) as listener:
                listener._listener._socket.settimeout(LOOK_S)  # type: ignore[attr-defined]
                for number in range(self.n_ranks):
                    self._processes.append(self._start(command, number, address, environment))
                while len(self._connections) < self.n_ranks:
                    with contextlib.suppress(TimeoutError, EOFError, ConnectionError):  # or it has died, and is seen
                        connection = listener.accept()
                        number = connection.recv()
                        self._connections[number], self._links[number] = connection, FramedLink(connection.fileno())
                    for number, process in enumerate(self._processes):
                        if number not in self._connections and process.poll() is not None:
                            died = _died(number, process.returncode, "before it asked for anything")
                            raise ProgramError(f"{died}; {WHAT_RANKS_ARE}")
            for link in self._links.values():
                with contextlib.suppress(ConnectionError):  # it has died, and is heard of next
                    link.send(None)
            self._serve()
            self._require_no_exit()
        except KeyboardInterrupt:
            raise interrupted(self.coordinator.clocks) from None
        finally:
            self._end_all()

    def _start(
        self, command: Sequence[str], number: int, address: str, environment: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        own = {
            NUMBER: str(number), SIZE: str(self.n_ranks), SOCKET: address,
            FACTOR: "" if self.factor is None else repr(self.factor), EAGER: repr(self.coordinator.eager),
            "RANK": str(number), "WORLD_SIZE": str(self.n_ranks),
        }  # fmt: skip
        try:
            return subprocess.Popen(
                command, env={**os.environ, **environment, **own}, stdin=subprocess.DEVNULL, start_new_session=True
            )
        except OSError as error:
            raise InputError(f"{command[0]}: cannot be started: {error.strerror}") from None

    def _serve(self) -> None:
        """Answer all ranks until the last has ended."""
        running, open_ones = set(range(self.n_ranks)), set(range(self.n_ranks))
        number_of = {connection.fileno(): number for number, connection in self._connections.items()}
        file_of = {number: file for file, number in number_of.items()}
        while open_ones:
            if running:
                ready = list(running)
                if len(running) > 1:
                    poll = select.poll()
                    for number in running:
                        poll.register(file_of[number], select.POLLIN)
                    ready = sorted(number_of[file] for file, _ in poll.poll())
                for number in ready:
                    goes_on, has_ended = self._take(number)
                    if not goes_on:
                        running.discard(number)
                    if has_ended:
                        open_ones.discard(number)
            else:
                try:
                    freed = self.coordinator.advance()
                except ProgramError:
                    self._require_no_exit()
                    raise
                for number, answer in freed:
                    goes_on, has_ended = self._go_on(number, answer)
                    if goes_on:
                        running.add(number)
                    if has_ended:
                        open_ones.discard(number)

    def _require_no_exit(self) -> None:
        """Raise if a rank that has ended did so with an exit code."""
        for number, process in enumerate(self._processes):
            if self.coordinator.clocks[number].has_ended and process.wait():
                raise ProgramError(_died(number, process.returncode, "at its end"))

    def _take(self, number: int) -> tuple[bool, bool]:
        """Take what a rank says; return whether it runs on, and whether it has ended."""
        link, said = self._links[number], self._said[number]
        try:
            said.extend(link.receive())
            while link.has_more():
                said.extend(link.receive())
        except (EOFError, ConnectionResetError):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._processes[number].wait(GRACE_S)
            raise ProgramError(_died(number, self._processes[number].poll(), "while others wait for it")) from None
        return self._do(number)

    def _go_on(self, number: int, answer: bool) -> tuple[bool, bool]:
        """Let a rank go on that has waited: its program, or what it has said for when this wait is over."""
        if number not in self._asking:
            return self._do(number)
        self._asking.remove(number)
        self._answer(number, answer)
        return True, False

    def _do(self, number: int) -> tuple[bool, bool]:
        """Do what a rank has said, until it has to wait; return as :meth:`_take`."""
        said, operations, coordinator = self._said[number], self._operations[number], self.coordinator
        while said:
            order = said.popleft()
            what = order[0]
            if call := CALLS.get(what):
                operation = coordinator.post(number, call(*order[1:]))
                operations[operation.number] = operation
            elif what == "pass":  # the rank has gone on, and asks no more about it
                passed = order[1:] or (coordinator.clocks[number].n_calls,)
                if not coordinator.wait(number, [operations.pop(k) for k in passed if k in operations]):
                    return False, False
            elif what == "wait":
                return self._wait(number, *order[1:]), False
            elif what == "compute":
                coordinator.compute(number, order[1])
            elif what == "sleep":
                coordinator.sleep(number, order[1])
            elif what == "step":
                coordinator.end_step(number)
            elif what == "cancel":
                coordinator.cancel(operations[order[1]])
            elif what == "fail":
                raise ProgramError(f"rank {number}: {order[1]}")
            else:
                coordinator.end(number)
                return False, True
        return True, False

    def _wait(self, number: int, asked: Sequence[int], every: bool, polls: bool) -> bool:
        """Let a rank wait; return whether it need not, and has its answer."""
        operations = self._operations[number]
        waits = [operations[k] for k in asked if k in operations]
        if len(waits) < len(asked) and not every:  # one is complete, and the rank knows
            waits = []
        if not self.coordinator.wait(number, waits, every=every, polls=polls):
            self._asking.add(number)
            return False
        self._answer(number, True)
        return True

    def _answer(self, number: int, answer: bool) -> None:
        operations = self._operations[number]
        complete = [op for op in operations.values() if op.end is not None]
        for operation in complete:
            del operations[operation.number]
        answers = [_answered(op) for op in complete]
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it has died, and is heard of next
            self._links[number].send((self.coordinator.clocks[number].now, answer, answers))

    def _end_all(self) -> None:
        """End all processes with what they started, and wait until they are gone."""
        for connection in self._connections.values():
            connection.close()
        for process in self._processes:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _same(call: Collective) -> Collective:
    return call


# How calls are made of what a rank says.
CALLS: Mapping[str, Callable[..., Call]] = {"send": Send, "receive": Receive, "post": _same}


def _answered(operation: PendingCall) -> tuple[Any, ...]:
    """Return what a rank is told of a call that is complete: of a message its number, tag, bytes and sender."""
    number, end, result = operation.number, operation.end, operation.result
    if type(result) is not Send:
        return number, end, operation.cancelled, result
    return number, end, operation.cancelled, result.data, result.tag, result.n_bytes, operation.source


def _died(number: int, code: int | None, when: str) -> str:
    if code is not None and code < 0:
        return f"rank {number}: killed by {signal.Signals(-code).name} {when}"
    return f"rank {number}: ended {when}" + (f", exit code {code}" if code else "")


def python_path(folder: Path) -> str:
    """Return the PYTHONPATH of a rank: the folder with our start file first, then the user's, then this package."""
    here = str(Path(__file__).resolve().parents[2])
    before = os.environ.get("PYTHONPATH", "")
    return os.pathsep.join(filter(None, (str(folder), before, here)))


def interpreter(command: Sequence[str]) -> list[str]:
    """Return the command with this Python in place of `python`; a program that is no file is refused."""
    first, *rest = command
    if Path(first).name in LAUNCHERS:
        raise InputError(f"{first}: commsim emulate starts the ranks itself; leave {first} and its flags out")
    if first.endswith(".py"):
        first, rest = "python", list(command)
    is_python = Path(first).name.rstrip("0123456789.") == "python"
    program = next((word for word in rest if word not in FLAGS), "-")
    if is_python and not program.startswith("-"):
        check_regular(program)
    return [sys.executable if first in ("python", "python3") else first, *rest]
