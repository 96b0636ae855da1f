"""The live switch: one process, one UDP port for packets, and the TCP port of the same number as its control server."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import time
from dataclasses import dataclass
from typing import Any

from commsim.core.errors import BackendError

from .authentication import Secrets
from .control_server import ControlServer
from .data_plane import DataPlane
from .datagrams import open_datagrams
from .frames import LOOPBACK, PORT

_PORTS_TO_TRY = 20


@dataclass(frozen=True, slots=True)
class SwitchOptions:
    """Options of a live switch.

    Parameters
    ----------
    host : str
        Address to listen on.
    port : int
        UDP and TCP; 0 for any that is free.
    pool_size, elements : int
        Slots for all jobs together, and values of a packet.
    drop_in, drop_out, seed
        Losses on purpose, see `DataPlane`.
    worker_timeout : float, s
        Time after which a silent worker counts as dead.
    mode : str, optional
        How datagrams are received and sent, see `datagrams`.
    secrets : Secrets, optional
        Secrets that workers must have; every datagram then has a tag.
    """

    host: str = LOOPBACK
    port: int = PORT
    pool_size: int = 512
    elements: int = 64
    drop_in: float = 0.0
    drop_out: float = 0.0
    seed: int = 0
    worker_timeout: float = 5.0
    mode: str | None = None
    secrets: Secrets | None = None


class LiveSwitch:
    """A switch that serves, between `with` and its end.

    Parameters
    ----------
    options : SwitchOptions
        What it is like.

    Attributes
    ----------
    address : (str, int)
        Address at which it listens.

    Raises
    ------
    InputError
        If an option is wrong.
    BackendError
        If it cannot listen there.
    """

    def __init__(self, options: SwitchOptions) -> None:
        self.plane = DataPlane(options.pool_size, options.elements, options.drop_in, options.drop_out, options.seed,
                               options.secrets is not None)  # fmt: skip
        self._control_socket, self._data_socket = _bind_both(options.host, options.port)
        self.address: tuple[str, int] = self._data_socket.getsockname()
        self._began = time.monotonic()
        with contextlib.ExitStack() as opened:
            opened.callback(self._control_socket.close)
            opened.callback(self._data_socket.close)
            self._datagrams = open_datagrams(self._data_socket, options.elements, options.mode, self.plane.tag_bytes)
            self._selector = opened.enter_context(selectors.DefaultSelector())
            self._selector.register(self._data_socket, selectors.EVENT_READ)
            control = ControlServer(
                self._control_socket, self.plane, self._selector, options.worker_timeout, self.status, options.secrets
            )
            self.control = opened.enter_context(control)
            self._opened = opened.pop_all()

    def __enter__(self) -> LiveSwitch:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def step(self, longest: float = 0.2) -> None:
        """Wait until something comes, at most `longest` seconds, and handle it.

        Packets are received before control messages are handled, and handled after them: the message that a worker
        sends before a packet is known when that packet is handled.
        """
        descriptors = {key.fd for key, _ in self._selector.select(longest)}
        if self._data_socket.fileno() not in descriptors:
            self.control.serve()
            return
        arrived = self._datagrams.receive()
        self.control.serve()
        replies = self.plane.handle(self._datagrams.words, arrived)
        self.plane.sent(len(replies), self._datagrams.send(self._datagrams.words, replies, self.plane.addresses))

    def status(self) -> dict[str, Any]:
        """Return what `commsim switch status` shows, but the jobs."""
        times = os.times()
        return {"host": self.address[0], "port": self.address[1], "pool_size": self.plane.pool_size,
                "elements_per_packet": self.plane.elements, "datagrams": self._datagrams.mode,
                "uptime_s": time.monotonic() - self._began, "cpu_s": times.user + times.system,
                "counters": self.plane.counts()}  # fmt: skip


def _bind_both(host: str, port: int) -> tuple[socket.socket, socket.socket]:
    """Return a listening TCP socket and a UDP socket with the same number."""
    for attempt in range(_PORTS_TO_TRY):
        control = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        data = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            control.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            control.bind((host, port))
            data.bind(control.getsockname())
            control.listen(256)
        except OSError as error:
            control.close()
            data.close()
            if port or attempt == _PORTS_TO_TRY - 1:
                raise BackendError(f"cannot listen on {host}, port {port}: {error.strerror or error}") from None
        else:
            return control, data
    raise AssertionError
