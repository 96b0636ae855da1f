"""Launch ranks in the namespaces of a testbed, and measure cells with them."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.backends.mpi import ACKNOWLEDGE_VARIABLE, find_mpiexec
from commsim.core.errors import BackendError, InputError
from commsim.core.formats.store import save
from commsim.core.schedule import Schedule

from .build import entering
from .layout import OWN_DEVICE, Layout
from .places import Place
from .ranks import ANSWER

BACKENDS = ("mpi", "gloo")
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
OFI = {"MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp"}
"""Environment of MPICH's ranks; docs/testbed.md has the measurements behind it.

UCX believes only what lies behind the very interface that it is told to be reachable, so where a host has several
ports, libfabric carries the messages.
"""


class Ranks:
    """Ranks in the namespaces of a testbed; they end with the `with`.

    Parameters
    ----------
    place, layout : Place, Layout
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
        place: Place,
        layout: Layout,
        seats: Sequence[int],
        backend: str = "mpi",
        environment: dict[str, str] | None = None,
    ) -> None:
        if backend not in BACKENDS:
            raise InputError(f"unknown backend {backend!r}; a testbed knows {', '.join(BACKENDS)}")
        if len(set(seats)) != len(seats) or not set(seats) <= set(layout.seats):
            raise InputError(f"ranks of a testbed sit on different hosts of it, got nodes {list(seats)}")
        self.place, self.layout, self.seats, self.backend = place, layout, tuple(seats), backend
        self._environment = environment or {}
        self._processes: list[subprocess.Popen[str]] = []
        self._saved: dict[int, tuple[Schedule, str]] = {}
        self._directory = tempfile.TemporaryDirectory(prefix="ranks-", dir=place.directory)

    def __enter__(self) -> Ranks:
        try:
            if self.backend == "mpi":
                self._launch_mpi()
            else:
                self._launch_gloo()
            self._answer()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def prepare(self, what: Schedule | str, size: int, *, warmup: int = 2, iterations: int = 5, **more: Any) -> None:
        """Tell the ranks what comes next; nothing is under way when this returns.

        Parameters
        ----------
        what : Schedule or str
            A schedule with as many participants as there are ranks; or the name of an operation.
        size : int, bytes
            As nccl-tests counts it.
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
        found: dict[str, Any] = self._answer()
        return found

    def write(self, values: NDArray[Any]) -> str:
        """Write an array where the ranks find it, and return its path."""
        path = Path(self._directory.name) / "values.npy"
        np.save(path, values, allow_pickle=False)
        return str(path)

    def run(
        self, what: Schedule | str, size: int, *, warmup: int = 2, iterations: int = 5, **more: Any
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
        """End all ranks."""
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
        self._directory.cleanup()

    def _path(self, schedule: Schedule) -> str:
        if id(schedule) not in self._saved:
            path = str(Path(self._directory.name) / f"schedule{len(self._saved)}.npz")
            save(schedule, path)
            self._saved[id(schedule)] = (schedule, path)  # kept alive, so that its id is not another's
        return self._saved[id(schedule)][1]

    def _launch_mpi(self) -> None:
        """Start mpiexec in the first host's namespace; its launcher is a script that enters the others'."""
        hosts = [str(self.layout.address(seat)) for seat in self.seats]
        script = Path(self._directory.name) / "launcher"
        cases = "".join(
            f"{host}) n={self.place.namespace(seat)};;\n" for host, seat in zip(hosts, self.seats, strict=True)
        )
        script.write_text(f'#!/bin/sh\nhost=$1; shift\ncase $host in\n{cases}*) exit 1;;\nesac\n'
                          'exec ip netns exec $n sh -c "$*"\n')  # fmt: skip
        script.chmod(0o755)
        device = self.layout.device(self.seats[0])
        environment = MPICH | self._carrier(device) | self._environment
        options = [x for name, value in environment.items() for x in ("-genv", name, value)]
        command = [find_mpiexec(), "-launcher", "rsh", "-launcher-exec", str(script), "-iface", device,
                   "-hosts", ",".join(hosts), "-n", str(len(hosts)), "-ppn", "1", *options]  # fmt: skip
        self._start(self.seats[0], [*command, *_program("mpi")], {})

    def _carrier(self, device: str) -> dict[str, str]:
        if device == OWN_DEVICE:
            return OFI | {"FI_TCP_IFACE": device}
        return UCX | {"UCX_NET_DEVICES": device}

    def _launch_gloo(self) -> None:
        for rank, seat in enumerate(self.seats):
            device = self.layout.device(seat)
            own = {"RANK": str(rank), "WORLD_SIZE": str(len(self.seats)), "LOCAL_WORLD_SIZE": str(len(self.seats)),
                   "MASTER_ADDR": str(self.layout.address(self.seats[0])), "MASTER_PORT": str(MASTER_PORT),
                   "GLOO_SOCKET_IFNAME": device, "TP_SOCKET_IFNAME": device}  # fmt: skip
            self._start(seat, _program("gloo"), own | self._environment)

    def _start(self, seat: int, command: list[str], environment: dict[str, str]) -> None:
        pipe = subprocess.PIPE
        errors = (Path(self._directory.name) / f"errors{seat}").open("w")
        with errors:
            process = subprocess.Popen([*entering(self.place.namespace(seat)), *command], stdin=pipe, stdout=pipe,
                                       stderr=errors, text=True, env=os.environ | environment)  # fmt: skip
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
        said = [line for path in sorted(Path(self._directory.name).glob("errors*"))
                for line in path.read_text().strip().splitlines()]  # fmt: skip
        own = [line for line in said if not line.startswith((" ", "Abort(", "[", "="))]  # not the launcher's epitaphs
        last = (own or said or ["without a word"])[-1]
        return f"the ranks do not answer: {last}"


def _program(backend: str) -> list[str]:
    return [sys.executable, "-m", "commsim.testbed.ranks", backend]
