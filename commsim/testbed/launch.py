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

from commsim.backends.mpi import find_mpiexec
from commsim.core.errors import BackendError, InputError
from commsim.core.formats.store import save
from commsim.core.schedule import Schedule

from .build import entering
from .layout import Layout
from .places import Place
from .ranks import ANSWER

BACKENDS = ("mpi", "gloo")
SECONDS = 120.0
MASTER_PORT = 29400
UCX = {"UCX_TLS": "tcp,self", "MPIR_CVAR_NOLOCAL": "1"}
"""MPICH over UCX's TCP, and no shared memory between ranks that believe themselves on one host."""


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

    def run(self, what: Schedule | str, size: int, *, warmup: int = 2, iterations: int = 5, **more: Any) -> Any:
        """Measure a schedule, or the library's own collective.

        Parameters
        ----------
        what : Schedule or str
            A schedule with as many participants as there are ranks; or the name of an operation.
        size : int, bytes
            As nccl-tests counts it.
        warmup, iterations : int
            Runs that are not timed, and those that are.

        Returns
        -------
        dict
            `samples` (s), `size` (bytes, as really run) and `wrong` (elements).

        Raises
        ------
        BackendError
            If a rank ends, or none answers in time.
        """
        cell = {"size": int(size), "warmup": warmup, "iterations": iterations, **more}
        cell |= {"operation": what} if isinstance(what, str) else {"schedule": self._path(what)}
        self.tell(cell)
        return self._answer()

    def tell(self, cell: dict[str, Any]) -> None:
        """Send rank 0 a cell; `heard` has the answer."""
        pipe = self._processes[0].stdin
        assert pipe is not None
        try:
            pipe.write(json.dumps(cell) + "\n")
            pipe.flush()
        except BrokenPipeError:
            raise BackendError(self._why()) from None

    def heard(self) -> Any:
        """Wait for what the ranks have measured."""
        return self._answer()

    def schedule_path(self, schedule: Schedule) -> str:
        """Return the file in which ranks find a schedule."""
        return self._path(schedule)

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
        cases = "".join(f"{host}) n={self.place.namespace(seat)};;\n" for host, seat in zip(hosts, self.seats, strict=True))
        script.write_text(f'#!/bin/sh\nhost=$1; shift\ncase $host in\n{cases}*) exit 1;;\nesac\n'
                          'exec ip netns exec $n sh -c "$*"\n')  # fmt: skip
        script.chmod(0o755)
        device = self.layout.device(self.seats[0])
        environment = UCX | {"UCX_NET_DEVICES": device} | self._environment
        options = [x for name, value in environment.items() for x in ("-genv", name, value)]
        command = [find_mpiexec(), "-launcher", "rsh", "-launcher-exec", str(script), "-iface", device,
                   "-hosts", ",".join(hosts), "-n", str(len(hosts)), "-ppn", "1", *options]  # fmt: skip
        self._start(self.seats[0], [*command, *_program("mpi")], {})

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
        said = [path.read_text().strip() for path in sorted(Path(self._directory.name).glob("errors*"))]
        last = next((text.splitlines()[-1] for text in said if text), "without a word")
        return f"the ranks do not answer: {last}"


def _program(backend: str) -> list[str]:
    return [sys.executable, "-m", "commsim.testbed.ranks", backend]
