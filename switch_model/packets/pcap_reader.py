"""Read a capture file: packets of in-network aggregation as rows, everything else counted."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .capture_file import CaptureFile, PacketBatch
from .decode import CUT, FOREIGN, MALFORMED, decode
from .packet_event import PACKET_EVENT
from .rdma_messages import RDMA_FIELDS, resolve_messages

SECOND = 10**12  # ps
_MAX_SECONDS = 9_000_000  # int64 picoseconds reach this far


@dataclass(frozen=True, slots=True, eq=False)
class Capture:
    """What a file holds.

    Parameters
    ----------
    events : PACKET_EVENT[n]
        Packets of SwitchML and ATP, in the order of the file. Fields that are not on the wire are 0, or -1 where
        `PACKET_EVENT` says so.
    start_s : int, s
        What times count from: 0, or the second of the first packet when that is a date.
    n_packets : int
        All packets.
    foreign, malformed, cut, stray : int
        Packets that are other traffic; that are ours by port, but wrong; captured only in part; and RDMA
        packets whose message's first packet is missing.
    left_over : int, bytes
        Bytes after the last whole packet: more than 0 when the file was cut off.
    """

    events: NDArray[Any]
    start_s: int
    n_packets: int
    foreign: int
    malformed: int
    cut: int
    stray: int
    left_over: int


def read_pcap(path: str | Path) -> Capture:
    """Read a pcap file of either byte order, with microseconds or nanoseconds.

    Memory grows with the packets of aggregation, by about a hundred bytes for each, and never with what a file claims.

    Raises
    ------
    InputError
        If it cannot be read, is no pcap, or is damaged so that its packets cannot be distinguished.
    """
    file = CaptureFile(path)
    parts, sides = [np.zeros(0, PACKET_EVENT)], [np.zeros(0, RDMA_FIELDS)]
    counts, start_s = np.zeros(4, np.int64), -1
    for block in file.blocks():
        if start_s < 0:
            first = int(block.seconds[0])
            start_s = first if first > _MAX_SECONDS else 0
        events, rdma, status = decode(block)
        ours = status == 1
        timed = _set_times(events, block, ours, start_s)
        parts.append(events[timed])
        sides.append(rdma[timed])
        counts += np.bincount(status, minlength=4)
        counts[[1, MALFORMED]] += np.array([-1, 1]) * int((~timed).sum())
    events, rdma = np.concatenate(parts), np.concatenate(sides)
    lost = resolve_messages(events, rdma)
    n_stray = int(lost.sum())
    return Capture(events[~lost] if n_stray else events, max(start_s, 0), int(counts.sum()), int(counts[FOREIGN]),
                   int(counts[MALFORMED]), int(counts[CUT]), n_stray, file.left_over)  # fmt: skip


def _set_times(events: NDArray[Any], block: PacketBatch, ours: NDArray[np.bool_], start_s: int) -> NDArray[np.bool_]:
    """Set the times of events, and return which are within some months of the start."""
    seconds = block.seconds[ours] - start_s
    right = np.abs(seconds) <= _MAX_SECONDS
    events["time_ps"] = np.where(right, seconds, 0) * SECOND + block.fraction[ours]
    return right
