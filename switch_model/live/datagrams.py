"""Datagrams in batches: many are received, and many sent, in one call to the system, without copying them.

On Linux a call moves messages (`recvmmsg`, `sendmmsg`), and a message may be up to 64 datagrams of equal length with
one peer, which the system cuts and joins (`UDP_SEGMENT`, `UDP_GRO`). What travels are ordinary datagrams; a peer that
knows nothing of this sees no difference. Elsewhere each datagram is a call.
"""

from __future__ import annotations

import socket
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError

from .datagram_kernel import ARRIVED, BASES, REPLY, list_arrivals, pack_messages
from .frames import LEAD, frame_bytes, most_segments, new_rows
from .linux_calls import (
    ADDRESS,
    CANNOT_CUT,
    CONTROL,
    MESSAGE,
    PIECE,
    SEGMENT_CONTROL_BYTES,
    UDP_GRO,
    UDP_SEGMENT,
    Calls,
    available,
)

__all__ = ["ARRIVED", "MODES", "REPLY", "Datagrams", "address_key", "open_datagrams", "to_addresses"]


MODES = ("segments", "messages", "single")
_BUFFER_BYTES = 1 << 22  # asked for on both sides of a socket; the system may give less
_MESSAGES = {"segments": 32, "messages": 256, "single": 256}


class Datagrams(Protocol):
    """A socket whose datagrams are frames; it never waits.

    Attributes
    ----------
    words : uint32[n_rows, 4 + k]
        Frames as they were received; valid until the next `receive`.
    mode : str
        One of MODES.
    """

    words: NDArray[np.uint32]
    mode: str

    def receive(self) -> NDArray[Any]:
        """Return ARRIVED[n], what has come; n is 0 when nothing has."""
        ...

    def send(self, words: NDArray[np.uint32], replies: NDArray[Any], addresses: NDArray[Any]) -> int:
        """Send frames in rows of `words` to `addresses` (ADDRESS[]), as REPLY[n] says; return how many were taken."""
        ...


def open_datagrams(sock: socket.socket, elements: int, mode: str | None = None, tag_bytes: int = 0) -> Datagrams:
    """Receive and send frames of `elements` values on a UDP socket, in the fastest way that this system has.

    Parameters
    ----------
    sock : socket
        Bound; it stays the caller's to close.
    elements : int
        Values of a frame.
    mode : {"segments", "messages", "single"}, optional
        How, instead.
    tag_bytes : int
        Size of the tag behind the values.

    Raises
    ------
    InputError
        If the mode is unknown, or not available here.
    """
    if mode is not None and mode not in MODES:
        raise InputError(f"datagrams go as {', '.join(MODES)}, got {mode!r}")
    sock.setblocking(False)
    for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        sock.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)
    if mode == "single" or (mode is None and not available()):
        return SingleDatagrams(sock, elements, tag_bytes)
    if mode is None:
        mode = "segments" if _joins_segments(sock) else "messages"
    elif mode == "segments" and not _joins_segments(sock):
        raise InputError("this system does not join and cut datagrams; use messages")
    return BatchedDatagrams(sock, elements, mode, tag_bytes)


def address_key(host: str, port: int) -> int:
    """Return a sender as the number that ARRIVED has for it."""
    address = to_addresses([(host, port)])
    return int(address.view(np.uint64)[0] >> np.uint64(16))


def to_addresses(peers: list[tuple[str, int]]) -> NDArray[Any]:
    """Return IPv4 addresses and ports as ADDRESS[n]."""
    addresses = np.zeros(len(peers), ADDRESS)
    for row, (host, port) in zip(addresses, peers, strict=True):
        row["family"], row["port"] = socket.AF_INET, port
        row["host"] = int.from_bytes(socket.inet_aton(host), "big")
    return addresses


class BatchedDatagrams:
    """With `recvmmsg` and `sendmmsg`."""

    def __init__(self, sock: socket.socket, elements: int, mode: str, tag_bytes: int = 0) -> None:
        self.mode, n = mode, _MESSAGES[mode]
        self._calls, self._frame = Calls(sock), frame_bytes(elements, tag_bytes)
        self._segments = self._cut = most_segments(elements, tag_bytes) if mode == "segments" else 1
        self.words = new_rows(n * self._segments, elements, tag_bytes)
        self._messages, self._pieces = np.zeros(n, MESSAGE), np.zeros(n * self._segments, PIECE)
        self._addresses, self._controls = np.zeros((n, 2), np.uint64), np.zeros(n, CONTROL)
        self._arrived = np.zeros(n * self._segments, ARRIVED)
        self._pieces["base"] = self.words.ctypes.data + LEAD + np.arange(len(self._pieces)) * self.words.strides[0]
        self._pieces["n_bytes"] = self._frame
        step = np.arange(n)
        self._messages["name"] = self._addresses.ctypes.data + step * ADDRESS.itemsize
        self._messages["pieces"] = self._pieces.ctypes.data + step * self._segments * PIECE.itemsize
        self._messages["n_pieces"] = self._segments
        self._messages["control"] = self._controls.ctypes.data + step * CONTROL.itemsize
        self._ask = np.array([(SEGMENT_CONTROL_BYTES, socket.IPPROTO_UDP, UDP_SEGMENT, self._frame, 0)], CONTROL)
        self._outgoing = np.zeros(0, MESSAGE), np.zeros(0, PIECE)
        self._pack(self.words, np.zeros(0, REPLY), np.zeros(0, ADDRESS))  # compiles

    def receive(self) -> NDArray[Any]:
        """Return what has come."""
        self._messages["name_bytes"], self._messages["control_bytes"] = ADDRESS.itemsize, CONTROL.itemsize
        n = self._calls.receive(self._messages.ctypes.data, len(self._messages))
        count = list_arrivals(
            self._messages, n, self._addresses, self._controls, self._frame, self._segments, self._arrived
        )
        return self._arrived[:count]

    def send(self, words: NDArray[np.uint32], replies: NDArray[Any], addresses: NDArray[Any]) -> int:
        """Send frames."""
        return self._sent(self._pack(words, replies, addresses)) if len(replies) else 0

    def _pack(self, words: NDArray[np.uint32], replies: NDArray[Any], addresses: NDArray[Any]) -> int:
        if len(replies) > len(self._outgoing[0]):
            self._outgoing = np.zeros(2 * len(replies), MESSAGE), np.zeros(2 * len(replies), PIECE)
        messages, pieces = self._outgoing
        bases = np.array([(words.ctypes.data + LEAD, words.strides[0], self._frame, addresses.ctypes.data,
                           self._ask.ctypes.data, pieces.ctypes.data)], BASES)  # fmt: skip
        first = np.empty(len(addresses) + 1, np.int64)
        return pack_messages(replies, len(replies), bases, first, pieces, messages, self._cut)

    def _sent(self, n: int) -> int:
        messages, done, n_taken = self._outgoing[0], 0, 0
        while done < n:
            count, refusal = self._calls.send(messages.ctypes.data + done * MESSAGE.itemsize, min(n - done, 1024))
            n_taken += int(messages["n_pieces"][done : done + count].sum())
            done += max(count, 1)  # what is refused is lost, as on a full link
            if refusal in CANNOT_CUT:
                self._cut = 1
        return n_taken


class SingleDatagrams:
    """With a call for each datagram; for systems without the others, and to compare with."""

    def __init__(self, sock: socket.socket, elements: int, tag_bytes: int = 0) -> None:
        self.mode, self._socket, self._frame = "single", sock, frame_bytes(elements, tag_bytes)
        self.words = new_rows(_MESSAGES["single"] + 1, elements, tag_bytes)
        self._arrived = np.zeros(len(self.words), ARRIVED)

    def receive(self) -> NDArray[Any]:
        """Return what has come."""
        n, rows = 0, memoryview(self.words.reshape(-1).view(np.uint8).data)
        row_bytes = self.words.strides[0]
        while n < len(self.words) - 1:
            try:
                size, (host, port) = self._socket.recvfrom_into(rows[n * row_bytes + LEAD : (n + 2) * row_bytes])
            except (BlockingIOError, ConnectionRefusedError):
                break
            self._arrived[n] = (address_key(host, port), n if size == self._frame else -1, size, False)
            n += 1
        return self._arrived[:n]

    def send(self, words: NDArray[np.uint32], replies: NDArray[Any], addresses: NDArray[Any]) -> int:
        """Send frames."""
        peers = [(socket.inet_ntoa(int(a["host"]).to_bytes(4, "big")), int(a["port"])) for a in addresses]
        rows, row_bytes, n_taken = memoryview(words.reshape(-1).view(np.uint8).data), words.strides[0], 0
        for row, to in replies.tolist():
            begin = row * row_bytes + LEAD
            try:
                self._socket.sendto(rows[begin : begin + self._frame], peers[to])
                n_taken += 1
            except (BlockingIOError, ConnectionRefusedError):
                continue
        return n_taken


def _joins_segments(sock: socket.socket) -> bool:
    try:
        sock.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 0)
        sock.setsockopt(socket.IPPROTO_UDP, UDP_GRO, 1)
    except OSError:
        return False
    return True
