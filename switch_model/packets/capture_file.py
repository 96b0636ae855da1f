"""Walk a capture file block by block: where each packet is, when it was seen, how much of it is there."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.files.opening import opening

from . import wire_format as w

MAX_CAPTURED = 262_144  # bytes of a packet; libpcap refuses more, too
BLOCK_BYTES = 4 << 20
MARGIN = 256  # zeros after a block, so that headers may be looked at before their length is known
# Where the type of the network layer is, and where that layer begins.
LINK_HEADERS = {w.LINK_ETHERNET: (12, 14), w.LINK_COOKED: (14, 16), w.LINK_COOKED_2: (0, 20)}
_NOT_PCAP = {
    b"\x0a\x0d\x0d\x0a": "a pcapng file; `editcap -F nsecpcap FILE OUT` makes a pcap of it",
    b"\x1f\x8b\x08\x00": "compressed by gzip; unpack it first",
}
_ORDERS: tuple[Literal["<", ">"], ...] = ("<", ">")
_MAGIC = {struct.pack(o + "I", m): (o, m) for o in _ORDERS for m in (w.MICROSECONDS, w.NANOSECONDS)}
_LONE = 64  # records that are walked one by one after a row of equal ones turned out short


@dataclass(frozen=True, slots=True, eq=False)
class PacketBatch:
    """Some packets of a file.

    Parameters
    ----------
    raw : uint8[m + MARGIN]
        Bytes, zeros at the end.
    begin : int64[n]
        Offset of each packet's link layer.
    captured, length : int64[n], bytes
        What is there of it, and how long it was.
    seconds, fraction : int64[n], s and ps
        Time of each packet.
    link : int
        Type of the link layer.
    """

    raw: NDArray[np.uint8]
    begin: NDArray[np.int64]
    captured: NDArray[np.int64]
    length: NDArray[np.int64]
    seconds: NDArray[np.int64]
    fraction: NDArray[np.int64]
    link: int


class CaptureFile:
    """A pcap file that is open; `left_over` bytes after its last whole packet are known when all was read.

    Raises
    ------
    InputError
        If it cannot be read, is no pcap, or has a link layer other than Ethernet or Linux's cooked ones.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self.left_over = 0
        with opening(path) as file:
            self._parse(file.read(24))

    def _parse(self, head: bytes) -> None:
        for start, what in _NOT_PCAP.items():
            if head[:3] == start[:3]:
                raise InputError(f"{self.path}: expected a pcap file, got {what}")
        if head[:4] not in _MAGIC:
            got = f"one that starts with {head[:4].hex()}" if head else "an empty one"
            raise InputError(f"{self.path}: expected a pcap file, got {got}")
        if len(head) < 24:
            raise InputError(f"{self.path}: a pcap file has a header of 24 bytes, got {len(head)}")
        self.order, magic = _MAGIC[head[:4]]
        self.unit_ps = 1_000 if magic == w.NANOSECONDS else 1_000_000
        self.link = struct.unpack(self.order + "I", head[20:])[0] & 0xFFFF
        if self.link not in LINK_HEADERS:
            known = "1 (Ethernet), 113 or 276 (Linux cooked)"
            raise InputError(f"{self.path}: expected link type {known}, got {self.link}")

    def blocks(self) -> Iterator[PacketBatch]:
        """Packets in the order of the file, some MiB at a time.

        Raises
        ------
        InputError
            If a packet claims to be longer than any can be: what follows cannot be found.
        """
        with opening(self.path) as file:
            file.seek(24)
            yield from self._blocks(file)

    def _blocks(self, file: BinaryIO) -> Iterator[PacketBatch]:
        rest, place = b"", 24
        while data := file.read(BLOCK_BYTES):
            held = rest + data
            offsets, end = self._walk(held, place)
            raw = np.frombuffer(held + bytes(MARGIN), np.uint8)
            if len(offsets):
                yield self._block(raw, offsets)
            rest, place = held[end:], place + end
        self.left_over = len(rest)

    def _walk(self, held: bytes, place: int) -> tuple[NDArray[np.int64], int]:
        """Offsets of the records that are whole, and where the first that is not begins."""
        look, starts, runs = struct.Struct(self.order + "I").unpack_from, list[int](), list[NDArray[np.int64]]()
        at, last, lone, total = 0, -1, 0, len(held)
        while at + 16 <= total:
            (captured,) = look(held, at + 8)
            if captured > MAX_CAPTURED:
                raise InputError(f"{self.path}: the packet at byte {place + at} claims {captured} bytes, the most is "
                                 f"{MAX_CAPTURED}; the file is damaged")  # fmt: skip
            after = at + 16 + captured
            if after > total:
                break
            if captured == last and not lone:
                n = _equal_records(held, at, captured, self.order)
                runs += [np.array(starts, np.int64), at + np.arange(n) * (16 + captured)]
                starts, at, lone = [], at + n * (16 + captured), _LONE * (n < _LONE)
                continue
            starts.append(at)
            at, last, lone = after, captured, max(lone - 1, 0)
        return np.concatenate([*runs, np.array(starts, np.int64)]), at

    def _block(self, raw: NDArray[np.uint8], offsets: NDArray[np.int64]) -> PacketBatch:
        kind = w.PCAP_RECORD.newbyteorder(self.order)
        records = gather(raw, offsets, 16).view(kind).reshape(-1)
        column = {name: records[name].astype(np.int64) for name in kind.names or ()}
        return PacketBatch(raw, offsets + 16, column["captured"], column["length"], column["seconds"],
                     column["fraction"] * self.unit_ps, self.link)  # fmt: skip


def gather(raw: NDArray[np.uint8], offsets: NDArray[np.int64], size: int) -> NDArray[np.uint8]:
    """Copy `size` bytes from each offset, uint8[n, size]: one look-up in an array of overlapping records."""
    windows: NDArray[Any] = np.ndarray((len(raw) - size + 1,), f"V{size}", raw, strides=(1,))
    return windows[offsets].view(np.uint8).reshape(len(offsets), size)


def _equal_records(held: bytes, at: int, captured: int, order: str) -> int:
    """How many whole records of one size follow each other from here, at least 1."""
    stride = 16 + captured
    most = (len(held) - at) // stride
    sizes: NDArray[Any] = np.ndarray((most,), order + "u4", held, at + 8, (stride,))
    differs = np.flatnonzero(sizes != captured)
    return int(differs[0]) if len(differs) else most
