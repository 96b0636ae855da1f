"""Connections between the ranks that are processes: what one sends to another goes there directly."""

from __future__ import annotations

import os
import select
import socket
import struct
from collections import deque
from typing import Any

from .framed_link import FramedLink, frame_of

# Time for which a rank waits for another before it says what it waits for, s; and bytes of a connection on their way.
PATIENCE_S, ROOM = 0.01, 1 << 20
OF_NUMBER = 4  # bytes of a rank's number, the first on a connection
__all__ = ["PeerLinks"]


class PeerLinks:
    """The connections of one rank, each one way, made when they are first used.

    Parameters
    ----------
    address : str
        Socket of the coordinator; those of the ranks stand beside it.
    number : int
        World rank.
    """

    def __init__(self, address: str, number: int) -> None:
        self._address, self._number = address, number
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{address}.{number}")
        self._listener.listen(socket.SOMAXCONN)
        self._to: dict[int, socket.socket] = {}
        self._late: dict[int, deque[memoryview]] = {}  # what could not be written yet, by rank
        self._from: dict[int, tuple[FramedLink, socket.socket]] = {}

    @property
    def is_late(self) -> bool:
        """Whether some rank has not read what it was sent."""
        return bool(self._late)

    def send(self, to: int, value: Any, block: bytes = b"") -> None:
        """Send a value and a block to a rank; what it has no room for is written later, in :meth:`write_late`."""
        frame = frame_of(value, len(block))
        if to in self._late:
            self._late[to].extend((memoryview(frame), memoryview(block)))
            return
        end = self._to.get(to) or self._connected(to)
        if end is None:
            return
        n_bytes, file = 0, end.fileno()
        try:
            n_bytes = os.writev(file, (frame, block)) if block else os.write(file, frame)
        except BlockingIOError:
            pass
        except ConnectionError:
            return
        if n_bytes < len(frame) + len(block):
            self._late[to] = deque((memoryview(frame), memoryview(block)))
            _drop(self._late[to], n_bytes)

    def receive(self, source: int) -> tuple[Any, bytes | memoryview]:
        """Return the next value and block of a rank.

        Raises
        ------
        BlockingIOError
            If nothing came for some time; at once while something is late.
        EOFError
            If the rank has ended.
        """
        known = self._from.get(source)
        while known is None:
            if not select.select([self._listener], [], [], PATIENCE_S)[0]:
                raise BlockingIOError
            self._accept()
            known = self._from.get(source)
        if self._late:
            known[1].setblocking(False)
            try:
                return known[0].receive_both()
            finally:
                known[1].setblocking(True)
        return known[0].receive_both()

    def wait(self, source: int | None, other: int) -> bool:
        """Write what is late, until something of a rank or on another socket is there.

        Parameters
        ----------
        source : int, optional
            World rank.
        other : int
            Descriptor.

        Returns
        -------
        bool
            Whether something is on the other socket.
        """
        while True:
            poll = select.poll()
            poll.register(other, select.POLLIN)
            if source in self._from:
                poll.register(self._from[source][0].file, select.POLLIN)
            elif source is not None:
                poll.register(self._listener, select.POLLIN)
            for to in self._late:
                poll.register(self._to[to], select.POLLOUT)
            files = {file for file, _ in poll.poll()}
            self.write_late()
            if files - {self._to[to].fileno() for to in self._to}:
                return other in files

    def write_late(self) -> None:
        """Write what is late, as far as there is room."""
        late, self._late = self._late, {}
        for to, parts in late.items():
            self._write(to, self._to[to], parts)

    def close(self) -> None:
        """Write what is late, however long that takes, and close all."""
        for to, parts in self._late.items():
            self._to[to].setblocking(True)
            while parts:
                self._write(to, self._to[to], parts)
        self.abandon()

    def abandon(self) -> None:
        """Close all; what is late is not written."""
        for one in (self._listener, *self._to.values(), *(end for _, end in self._from.values())):
            one.close()

    def _write(self, to: int, end: socket.socket, parts: deque[memoryview]) -> None:
        """Write what there is room for, and keep the rest; of a rank that has ended nothing."""
        try:
            while parts:
                _drop(parts, os.writev(end.fileno(), parts))
        except BlockingIOError:
            self._late[to] = parts
        except ConnectionError:
            parts.clear()

    def _connected(self, to: int) -> socket.socket | None:
        """Return a new connection to a rank; None if it has ended."""
        end = socket.socket(socket.AF_UNIX)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, ROOM)
        try:
            end.connect(f"{self._address}.{to}")
        except OSError as error:
            end.close()
            if isinstance(error, (ConnectionError, FileNotFoundError)):
                return None
            raise
        end.sendall(self._number.to_bytes(OF_NUMBER, "little"))
        end.setblocking(False)
        self._to[to] = end
        return end

    def _accept(self) -> None:
        end, _ = self._listener.accept()
        source = int.from_bytes(end.recv(OF_NUMBER, socket.MSG_WAITALL), "little")
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, round(PATIENCE_S * 1e6)))
        self._from[source] = FramedLink(end.fileno()), end


def _drop(parts: deque[memoryview], n_bytes: int) -> None:
    """Drop what is written of some parts."""
    while parts and n_bytes >= len(parts[0]):
        n_bytes -= len(parts.popleft())
    if parts:
        parts[0] = parts[0][n_bytes:]
