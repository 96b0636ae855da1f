"""The control server: TCP connections on which workers join jobs; a worker counts as alive while its own is."""

from __future__ import annotations

import contextlib
import itertools
import selectors
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any

from commsim.core.errors import InputError

from .authentication import LineSeal, Secrets, new_nonce
from .control_messages import MAX_FROM_WORKER, LineReader, read_line, text, write_line
from .job import Plane
from .jobs import LiveJobs

MAX_CONNECTIONS = 900  # a process may usually open 1,024 files
_MAX_UNSENT = 1 << 23  # bytes that a peer may leave unread


class Connection:
    """One connection of the control server."""

    def __init__(self, sock: socket.socket, host: str, now: float) -> None:
        self.socket, self.host, self.heard = sock, host, now
        self.reader, self.unsent, self.closing = LineReader(MAX_FROM_WORKER), b"", False
        self.hello, self.job, self.seal = b"", "", None  # type: bytes, str, LineSeal | None


class ControlServer:
    """Accepts connections and passes their messages on; it never waits.

    Parameters
    ----------
    listener : socket
        Listening.
    plane : Plane
        See `LiveJobs`.
    selector : selector
        Selector in which the server registers its sockets, with data; sockets without data are not its own.
    worker_timeout : float, s
        Time after which a silent worker counts as dead.
    status : function
        Returns the status of the switch without its jobs.
    secrets : Secrets, optional
        Secrets that workers must have.
    """

    def __init__(
        self, listener: socket.socket, plane: Plane, selector: selectors.BaseSelector, worker_timeout: float,
        status: Callable[[], Mapping[str, Any]], secrets: Secrets | None = None,
    ) -> None:  # fmt: skip
        self._secrets = secrets
        self._listener, self._timeout, self._status, self._selector = listener, worker_timeout, status, selector
        self.jobs = LiveJobs(plane, self._send, secrets)
        self._numbers = itertools.count(1)  # never used twice, as those of descriptors are
        self._connections: dict[int, Connection] = {}
        listener.setblocking(False)
        selector.register(listener, selectors.EVENT_READ, 0)
        self._next_look = 0.0

    def __enter__(self) -> ControlServer:
        return self

    def __exit__(self, *_: object) -> None:
        for number in list(self._connections):
            self._drop(number, "")

    def serve(self) -> None:
        """Handle all that has come."""
        now = time.monotonic()
        for key, events in self._selector.select(0):
            if key.data == 0:
                self._accept(now)
            elif key.data in self._connections:
                self._serve(key.data, events, now)
        if now >= self._next_look:
            self._next_look = now + self._timeout / 10
            self._drop_silent(now)

    def _accept(self, now: float) -> None:
        try:
            sock, (host, _) = self._listener.accept()
        except OSError:
            return  # it has gone again, or no descriptors are left
        if len(self._connections) >= MAX_CONNECTIONS:
            sock.close()
            return
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        number = next(self._numbers)
        connection = self._connections[number] = Connection(sock, host, now)
        self._selector.register(sock, selectors.EVENT_READ, number)
        status = self._status()
        hello = {"switch": "commsim", "worker_timeout_s": self._timeout,
                 "elements_per_packet": status["elements_per_packet"], "port": status["port"],
                 "datagrams": status["datagrams"]}  # fmt: skip
        if self._secrets:
            hello["nonce"] = new_nonce()
        connection.hello = write_line(hello)
        self._send(number, hello, False)

    def _serve(self, number: int, events: int, now: float) -> None:
        connection = self._connections[number]
        if events & selectors.EVENT_WRITE:
            self._flush(number)
        if not events & selectors.EVENT_READ or self._connections.get(number) is not connection:
            return
        try:
            data = connection.socket.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._drop(number, "has gone: its connection ended")
            return
        connection.heard = now
        try:
            for line in connection.reader.lines(data):
                self._take(number, connection, line)
        except InputError as error:
            self._send(number, {"error": str(error)}, True)
            self.jobs.lost(number, f"sent an unknown message: {error}")

    def _take(self, number: int, connection: Connection, line: bytes) -> None:
        if self._secrets is None:
            self._handle(number, connection, read_line(line))
        elif connection.seal is not None:
            self._handle(number, connection, read_line(connection.seal.opened(line)))
        else:
            answer = read_line(line)
            if "nonce" not in answer:
                raise InputError("this switch takes only workers that have the job's secret; give them --secret-file")
            text(answer, "nonce")
            connection.job = text(answer, "job")
            connection.seal = LineSeal(self._secrets.of(connection.job), connection.hello, line, is_switch=True)

    def _handle(self, number: int, connection: Connection, message: Mapping[str, Any]) -> None:
        if connection.closing:
            return
        if connection.seal is not None and message.get("do") == "join" and message.get("job") != connection.job:
            raise InputError(f"this connection has the secret of job {connection.job!r}, not of another one")
        if message.get("do") == "status":
            self._send(number, {**self._status(), **self.jobs.status()}, False)
        else:
            self.jobs.handle(number, connection.host, message)

    def _drop_silent(self, now: float) -> None:
        for number, connection in list(self._connections.items()):
            if now - connection.heard > self._timeout and self._connections.get(number) is connection:
                self._drop(number, f"has been silent for {self._timeout:g} s")

    def _send(self, number: int, message: dict[str, Any], last: bool) -> None:
        connection = self._connections.get(number)
        if connection is None or connection.closing:
            return
        line = write_line(message)
        connection.unsent += connection.seal.sealed(line) if connection.seal else line
        connection.closing = last
        self._flush(number)

    def _flush(self, number: int) -> None:
        connection = self._connections[number]
        try:
            while connection.unsent:
                connection.unsent = connection.unsent[connection.socket.send(connection.unsent) :]
        except BlockingIOError:
            pass
        except OSError:
            connection.unsent = b""  # the next read says that it has gone
        if len(connection.unsent) > _MAX_UNSENT:
            connection.unsent, connection.closing = b"", True
        if connection.closing and not connection.unsent:
            with contextlib.suppress(OSError):  # closing it at once could take back what was said last
                connection.socket.shutdown(socket.SHUT_WR)
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.unsent else 0)
        if events != self._selector.get_key(connection.socket).events:
            self._selector.modify(connection.socket, events, number)

    def _drop(self, number: int, how: str) -> None:
        connection = self._connections.pop(number)
        self._selector.unregister(connection.socket)
        connection.socket.close()
        if how:
            self.jobs.lost(number, how)
