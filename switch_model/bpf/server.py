"""The switch that serves in the kernel: packets never leave it, and this process only keeps the control server."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commsim.core.errors import BackendError, InputError
from switch_model.live.control_server import ControlServer
from switch_model.live.server import SwitchOptions
from switch_model.systems.switchml import switchml_udp

from .attachment import attach, detach
from .data_plane import KernelPlane
from .ports import chosen_ports, switch_address
from .program import build
from .requirements import lacking


@dataclass(frozen=True, slots=True)
class StaticJob:
    """A job whose workers are known beforehand; they do not connect to the control server.

    Parameters
    ----------
    name : str
        Name in our output.
    peers : tuple of (str, int)
        Address and UDP port of each rank.
    interfaces : tuple of str
        Interface at which each rank's packets come in; empty where its first packet decides.
    n_slots : int
        Number of slots of the pool.
    """

    name: str
    peers: tuple[tuple[str, int], ...]
    interfaces: tuple[str, ...]
    n_slots: int = 32


class KernelSwitch:
    """A switch that serves, between `with` and its end; afterwards, nothing of it is left in the kernel.

    Parameters
    ----------
    options : SwitchOptions
        What it is like; `seed` and `mode` have no effect, since the kernel draws its own losses and packets go singly.
    interfaces : sequence of str
        Its ports.
    jobs : sequence of StaticJob
        Jobs that it has from the beginning.
    host : str, optional
        Its address; otherwise that of its ports' bridge.

    Attributes
    ----------
    address : (str, int)
        Address at which it listens.
    plane : KernelPlane
        The program.
    jobs : list of dict
        The static jobs, with the numbers and slots that they have been given.

    Raises
    ------
    InputError
        If an option, an interface or a job is wrong.
    BackendError
        If this machine cannot do it.
    """

    def __init__(
        self, options: SwitchOptions, interfaces: Sequence[str], jobs: Sequence[StaticJob] = (), host: str = ""
    ) -> None:
        why = lacking()
        if why:
            raise BackendError(why)
        ports = chosen_ports(interfaces, options.elements)
        host = host or switch_address(ports)
        system = switchml_udp(options.elements, pool_size=options.pool_size)
        self._began, self._interfaces = time.monotonic(), [port.name for port in ports]
        with contextlib.ExitStack() as opened:
            self._listener = opened.enter_context(_listener(host, options.port))
            self.address: tuple[str, int] = self._listener.getsockname()
            with tempfile.TemporaryDirectory(prefix="commsim-") as folder:
                self._attachment = attach(build(system, Path(folder)), ports)
            opened.callback(detach, self._attachment)
            program, (address, port) = self._attachment.program, self.address
            plane = KernelPlane(program, options.pool_size, options.elements, address, port, options.drop_in,
                                options.drop_out)  # fmt: skip
            self.plane = opened.enter_context(plane)
            numbers = {port.name: port.number for port in ports} | {"": 0}
            self.jobs = [self._reserve(job, numbers) for job in jobs]
            self._selector = opened.enter_context(selectors.DefaultSelector())
            control = ControlServer(self._listener, self.plane, self._selector, options.worker_timeout, self.status)
            self.control = opened.enter_context(control)
            self._opened = opened.pop_all()

    def __enter__(self) -> KernelSwitch:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def step(self, longest: float = 0.2) -> None:
        """Wait for a message to the control server, at most `longest` seconds, and handle it; packets need no step."""
        self._selector.select(longest)
        self.control.serve()

    def status(self) -> dict[str, Any]:
        """Return what `commsim switch status` shows, but the jobs of its control server."""
        times = os.times()
        return {"host": self.address[0], "port": self.address[1], "pool_size": self.plane.pool_size,
                "elements_per_packet": self.plane.elements, "datagrams": "bpf", "interfaces": self._interfaces,
                "program": self._attachment.program, "uptime_s": time.monotonic() - self._began,
                "cpu_s": times.user + times.system, "counters": self.plane.counts(),
                "static_jobs": [{**job, "busy": self.plane.busy(job["number"])[:64]} for job in self.jobs]}  # fmt: skip

    def _reserve(self, job: StaticJob, numbers: dict[str, int]) -> dict[str, Any]:
        strange = [name for name in job.interfaces if name not in numbers]
        if strange:
            raise InputError(f"job {job.name!r}: {strange[0]!r} is no port of this switch; it has {self._interfaces}")
        known = [numbers[name] for name in job.interfaces]
        number, first = self.plane.reserve(job.peers, job.n_slots, known)
        return {"name": job.name, "number": number, "workers": len(job.peers), "first_slot": first,
                "slots": job.n_slots}  # fmt: skip


def _listener(host: str, port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(256)
    except OSError as error:
        sock.close()
        raise BackendError(f"cannot listen on {host}, port {port}: {error.strerror or error}") from None
    return sock
