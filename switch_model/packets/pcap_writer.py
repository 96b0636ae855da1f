"""Write packets to a capture file in blocks: headers are filled column by column, whatever the number of packets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.files.whole_files import replacing
from commsim.core.jit import Records

from . import wire_format as w
from .build_frames import build_frames
from .packet_event import SWITCHML_RDMA, check_events

Values = NDArray[np.int32] | Callable[[NDArray[Any]], NDArray[np.int32]]
WHOLE = 262_144  # the usual most that a capture keeps of a packet
BLOCK_BYTES = 16 << 20
BLOCK_PACKETS = 1 << 15
_RECORD = w.PCAP_RECORD.itemsize


def write_pcap(path: str | Path, events: NDArray[Any], values: Values | None = None, snaplen: int = WHOLE) -> None:
    """Write packets as a capture file with nanoseconds, which appears whole or not at all.

    Memory is bounded by some tens of MiB beside what is given.

    Parameters
    ----------
    path : path
        Path of the file.
    events : PACKET_EVENT[n]
        The packets in the order in which they are written.
    values : int32[n, k], or callable, optional
        The payload of each packet, or what returns it for a part of `events`, int32[m, k]. Without it packets are cut
        after their headers: values that are not known are not written.
    snaplen : int, bytes
        Longer packets are cut to it; their length is still said to be the whole.

    Raises
    ------
    InputError
        If a row does not fit its protocol, values have another shape or type, or the file cannot be written.
    """
    check_events(events)
    if not 0 < snaplen <= WHOLE:
        raise InputError(f"snaplen must be 1..{WHOLE} bytes, got {snaplen}")
    if isinstance(values, np.ndarray):
        _check_values(values, events)
    with replacing(path) as out:
        header = (w.NANOSECONDS, 2, 4, 0, 0, snaplen, w.LINK_ETHERNET)
        out.write(np.array([header], w.PCAP_HEADER.newbyteorder("<")).tobytes())
        for begin, end in _blocks(events, values is not None):
            block = events[begin:end]
            part = values(block) if callable(values) else None if values is None else values[begin:end]
            if callable(values):
                _check_values(part, block)
            out.write(encode(block, part, snaplen).data)


def encode(events: NDArray[Any], values: NDArray[Any] | None, snaplen: int = WHOLE) -> NDArray[np.uint8]:
    """Return records of some packets, one after the other, as in a file.

    Parameters
    ----------
    events : PACKET_EVENT[n]
        Checked, and few enough to fit in memory.
    values : int32[n, k] or None
        Their payload.
    snaplen : int, bytes
        Longer packets are cut to it.

    Returns
    -------
    uint8[n_bytes]
    """
    if not len(events):
        return np.zeros(0, np.uint8)
    rows = _layouts(events)
    parts = [_frame_bytes(build_frames(events[r], None if values is None else values[r]), snaplen) for r in rows]
    if len(parts) == 1:
        return parts[0].reshape(-1)
    size = np.empty(len(events), np.int64)
    for row, part in zip(rows, parts, strict=True):
        size[row] = part.shape[1]
    offset = np.cumsum(size) - size
    out = np.empty(int(size.sum()), np.uint8)
    for row, part in zip(rows, parts, strict=True):
        _scatter(out, offset[row], part)
    return out


def _blocks(events: NDArray[Any], with_values: bool) -> list[tuple[int, int]]:
    """Parts of the rows whose packets together take no more than a block."""
    most = int(events["elements"].max(initial=1)) * 4 * with_values + 256
    step = max(1, min(BLOCK_PACKETS, BLOCK_BYTES // most))
    return [(begin, min(begin + step, len(events))) for begin in range(0, len(events), step)]


def _layouts(events: NDArray[Any]) -> list[Any]:
    """Rows of each layout."""
    rdma = events["protocol"] == SWITCHML_RDMA
    first = (events["position"] == 0) & rdma
    last = (events["position"] + 1 == events["message_packets"]) & rdma
    key = ((events["protocol"].astype(np.int64) << 16 | events["elements"]) << 2) + first * 2 + last
    kinds = np.unique(key)
    return [slice(None)] if len(kinds) == 1 else [np.flatnonzero(key == kind) for kind in kinds]


def _frame_bytes(frames: Records, snaplen: int) -> NDArray[np.uint8]:
    """Frames as bytes, uint8[n, m], not longer than wanted."""
    raw: NDArray[np.uint8] = frames.view(np.uint8).reshape(len(frames), -1)
    if raw.shape[1] <= snaplen + _RECORD:
        return raw
    frames["record"]["captured"] = snaplen
    return np.ascontiguousarray(raw[:, : snaplen + _RECORD])


def _scatter(out: NDArray[np.uint8], offset: NDArray[np.int64], part: NDArray[np.uint8]) -> None:
    """Put each row of `part` at its offset: an array of overlapping records makes it one assignment."""
    size = part.shape[1]
    record: NDArray[Any] = np.ndarray((len(out) - size + 1,), f"V{size}", out, strides=(1,))
    record[offset] = part.view(f"V{size}").reshape(-1)


def _check_values(values: Any, events: NDArray[Any]) -> None:
    """Raise unless there are as many values as every packet has elements."""
    elements = np.unique(events["elements"])
    wanted = (len(events), int(elements[0]) if len(elements) else values.shape[-1])
    if len(elements) > 1:
        raise InputError(f"packets with values must have equally many, got {elements.tolist()}")
    if values.dtype != np.int32 or values.shape != wanted:
        raise InputError(f"the payload must be int32{list(wanted)}, got {values.dtype}{list(values.shape)}")
