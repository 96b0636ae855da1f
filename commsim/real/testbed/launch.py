"""Launch ranks in the namespaces of a testbed (mpiexec for MPI, one by one for gloo), and measure cells with them."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import BackendError, InputError
from commsim.core.files.store import save
from commsim.core.schedule import Schedule
from commsim.real.mpi import ACKNOWLEDGE_VARIABLE, find_mpiexec

from .build import entering
from .layout import OWN_DEVICE, TestbedLayout
from .places import SECONDS_TO_DIE, NamesOfTestbed
from .ranks import ANSWER

BACKENDS = ("mpi", "gloo")
BACKEND = BACKENDS[0]  # by default
ITERATIONS = 5  # that are timed of each collective, by default
SECONDS = 120.0
MASTER_PORT = 29400
MPICH = {
    "MPIR_CVAR_NOLOCAL": "1",  # no shared memory between ranks that believe themselves on one host
    ACKNOWLEDGE_VARIABLE: "1",  # without rendezvous, a send that is complete may still be in a buffer
}
UCX = {
    "UCX_TLS": "tcp,self",
    "UCX_RNDV_THRESH": "inf",  # UCX's rendezvous over TCP lets the two directions of an exchange go one after the other
}
# Environment of MPICH's ranks; docs/testbed.md has the measurements behind it.
OFI = {"MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp"}
# Hosts share no memory; and MPICH makes files there, which would stay when its processes are killed. Its launcher
# writes the machine's topology to a file in /tmp, whatever TMPDIR says: such files go to an upper layer that ends with
# the ranks.
OWN_FILES = (
    "mount -t tmpfs none /dev/shm && mkdir /dev/shm/.upper /dev/shm/.work && mount -t overlay none "
    "-o lowerdir=/tmp,upperdir=/dev/shm/.upper,workdir=/dev/shm/.work /tmp 2>/dev/null"
)


class Ranks:
    """Ranks in the namespaces of a testbed; they end with the `with`.

    Parameters
    ----------
    place, layout : NamesOfTestbed, TestbedLayout
        The testbed.
    seats : sequence of int
        Node of each rank, and of each helper after them.
    backend : {"mpi", "gloo"}
        What carries the messages.
    environment : mapping, optional
        More for the ranks' environment.
    """

    def __init__(
        self,
        place: NamesOfTestbed,
        layout: TestbedLayout,
        seats: Sequence[int],
        backend: str = BACKEND,
        environment: dict[str, str] | None = None,
    ) -> None:
        if backend not in BACKENDS:
            raise InputError(f"unknown backend {backend!r}; a testbed knows {', '.join(BACKENDS)}")
        if len(set(seats)) != len(seats) or not set(seats) <= set(layout.seats):
            raise InputError(f"ranks of a testbed must be on different hosts of it, got nodes {list(seats)}")
        self.place, self.layout, self.seats, self.backend = place, layout, tuple(seats), backend
        self._environment = environment or {}
        self._processes: list[subprocess.Popen[str]] = []
        self._others: set[int] = set()  # processes of the testbed that are not ours
        self._own: set[int] | None = None  # ours, launchers' children included, once all have answered
        self._saved: dict[int, tuple[Schedule, str]] = {}
        self._directory = tempfile.TemporaryDirectory(prefix="ranks-", dir=place.directory)

    def __enter__(self) -> Ranks:
        self._others = set(self.place.processes())
        try:
            for command in self._commands():
                self._start(command)
            self._answer()
            self._own = set(self.place.processes()) - self._others
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def prepare(
        self, what: Schedule | str, size: int, *, warmup: int = 2, iterations: int = ITERATIONS, **more: Any
    ) -> None:
        """Tell the ranks what comes next; nothing is under way when this returns.

        Parameters
        ----------
        what : Schedule or str
            A schedule with as many participants as there are ranks; or the name of an operation.
        size : int, bytes
            Size as nccl-tests counts it.
        warmup, iterations : int
            Runs that are not timed, and those that are.
        **more
            Fields of the cell that a program of one's own reads.

        Raises
        ------
        BackendError
            If a rank ends, or none answers in time.
        """
        cell = {"size": int(size), "warmup": warmup, "iterations": iterations, **more}
        cell |= {"operation": what} if isinstance(what, str) else {"schedule": self._path(what)}
        self._tell(json.dumps(cell))
        self._answer()

    def begin(self) -> None:
        """Let the ranks run what was prepared."""
        self._tell("go")

    def finish(self) -> dict[str, Any]:
        """Wait for what the ranks have measured.

        Returns
        -------
        dict
            `samples` (s), `size` (bytes, as really run) and `wrong` (elements).

        Raises
        ------
        BackendError
            If a rank ends, or none answers in time.
        """
        built: dict[str, Any] = self._answer()
        return built

    def write(self, values: NDArray[Any]) -> str:
        """Write an array where the ranks find it, and return its path."""
        path = Path(self._directory.name) / "values.npy"
        np.save(path, values, allow_pickle=False)
        return str(path)

    def run(
        self, what: Schedule | str, size: int, *, warmup: int = 2, iterations: int = ITERATIONS, **more: Any
    ) -> dict[str, Any]:
        """Prepare, begin and finish."""
        self.prepare(what, size, warmup=warmup, iterations=iterations, **more)
        self.begin()
        return self.finish()

    def _tell(self, line: str) -> None:
        pipe = self._processes[0].stdin
        assert pipe is not None
        try:
            pipe.write(line + "\n")
            pipe.flush()
        except BrokenPipeError:
            raise BackendError(self._why()) from None

    def close(self) -> None:
        """End all ranks, and wait until none is left: those of a launcher that was killed have no parent to wait."""
        for process in self._processes:
            if process.stdin is not None:
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.close()
        deadline = time.monotonic() + 5
        for process in self._processes:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.terminate()
                try:
                    process.wait(5)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
        self._processes.clear()
        self._end_orphans()
        self._directory.cleanup()

    def _end_orphans(self) -> None:
        deadline = time.monotonic() + SECONDS_TO_DIE
        own = set(self.place.processes()) - self._others if self._own is None else self._own
        while left := own & set(self.place.processes()):
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if time.monotonic() > deadline:
                raise BackendError(f"ranks of the testbed do not end: processes {sorted(left)}")
            time.sleep(0.01)

    def _path(self, schedule: Schedule) -> str:
        if id(schedule) not in self._saved:
            path = str(Path(self._directory.name) / f"schedule{len(self._saved)}.npz")
            save(schedule, path)
            self._saved[id(schedule)] = (schedule, path)  # kept alive, so that its id is not another's
        return self._saved[id(schedule)][1]

    def _commands(self) -> list[Command]:
        if self.backend == "gloo":
            return gloo_commands(self.layout, self.seats, self._environment)
        return mpi_commands(self.place, self.layout, self.seats, Path(self._directory.name), self._environment)

    def _start(self, command: Command) -> None:
        with Path(self._directory.name, f"errors{command.node}").open("w") as errors:
            process = subprocess.Popen(
                [*entering(self.place.namespace(command.node)), *command.words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=os.environ | command.environment,
            )
        self._processes.append(process)

    def _answer(self) -> Any:
        first = self._processes[0].stdout
        assert first is not None
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            if not select.select([first], [], [], 1.0)[0]:
                if any(process.poll() not in (None, 0) for process in self._processes):
                    break
                continue
            line = first.readline()
            if not line:
                break
            if line.startswith(ANSWER):
                return json.loads(line.removeprefix(ANSWER))
        raise BackendError(self._why())

    def _why(self) -> str:
        lines = [line for path in sorted(Path(self._directory.name).glob("errors*"))
                for line in path.read_text().strip().splitlines()]  # fmt: skip
        own = [line for line in lines if not line.startswith((" ", "Abort(", "[", "="))]  # not the launcher's epitaphs
        last = (own or lines or ["without a word"])[-1]
        return f"the ranks do not answer: {last}"


@dataclass(frozen=True, slots=True)
class Command:
    """A program in a node's namespace.

    Parameters
    ----------
    node : int
        Node whose namespace it runs in.
    words : tuple of str
        The program and its arguments.
    environment : mapping of str to str
        Variables beside those of this process.
    """

    node: int
    words: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


def mpi_commands(
    place: NamesOfTestbed, layout: TestbedLayout, seats: Sequence[int], directory: Path, more: dict[str, str]
) -> list[Command]:
    """Return mpiexec in the first seat's namespace; its launcher, a script in `directory`, enters the others'.

    Parameters
    ----------
    place, layout : NamesOfTestbed, TestbedLayout
        The testbed.
    seats : sequence of int
        Node of each rank.
    directory : Path
        Directory for the launcher's script.
    more : mapping of str to str
        Added to the environment of the ranks.
    """
    hosts = [str(layout.address(seat)) for seat in seats]
    cases = "".join(f"{host}) n={place.namespace(seat)};;\n" for host, seat in zip(hosts, seats, strict=True))
    script = directory / "launcher"
    script.write_text(f'#!/bin/sh\nhost=$1; shift\ncase $host in\n{cases}*) exit 1;;\nesac\n'
                      f'exec ip netns exec $n sh -c "{OWN_FILES}; $*"\n')  # fmt: skip
    script.chmod(0o755)
    device = layout.device(seats[0])
    options = [x for name, value in (MPICH | _carrier(device) | more).items() for x in ("-genv", name, value)]
    words = [find_mpiexec(), "-launcher", "rsh", "-launcher-exec", str(script), "-iface", device,
             "-hosts", ",".join(hosts), "-n", str(len(hosts)), "-ppn", "1", *options]  # fmt: skip
    first = ("sh", "-c", f'{OWN_FILES}; exec "$@"', "sh")  # whose rank mpiexec starts without the launcher
    return [Command(seats[0], (*first, *words, *_program("mpi")))]


def gloo_commands(layout: TestbedLayout, seats: Sequence[int], more: dict[str, str]) -> list[Command]:
    """Return one program per rank, which meet at the first one's address.

    Parameters
    ----------
    layout : TestbedLayout
        The testbed's.
    seats : sequence of int
        Node of each rank.
    more : mapping of str to str
        Added to the environment of the ranks.
    """
    meeting = {"WORLD_SIZE": str(len(seats)), "LOCAL_WORLD_SIZE": str(len(seats)),
               "MASTER_ADDR": str(layout.address(seats[0])), "MASTER_PORT": str(MASTER_PORT)}  # fmt: skip
    built = []
    for rank, seat in enumerate(seats):
        device = layout.device(seat)
        own = {"RANK": str(rank), "GLOO_SOCKET_IFNAME": device, "TP_SOCKET_IFNAME": device}
        built.append(Command(seat, _program("gloo"), meeting | own | more))
    return built


def _carrier(device: str) -> dict[str, str]:
    """UCX takes only what lies behind the interface that it is given as reachable: not if a host has several ports."""
    return OFI | {"FI_TCP_IFACE": device} if device == OWN_DEVICE else UCX | {"UCX_NET_DEVICES": device}


def _program(backend: str) -> tuple[str, ...]:
    return sys.executable, "-m", "commsim.real.testbed.ranks", backend
