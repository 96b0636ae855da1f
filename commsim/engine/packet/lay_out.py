"""All tables of a run: those that are given, the others empty; and making room when one is full."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from switch_model.slot_kernel import SLOT_ROW
from switch_model.slot_sequence import LOG_ROW

from . import message_state as m
from . import packet_state as s
from .fabric import LONGEST, PS

LINE = 64  # bytes
LOG_MARGIN = 8  # records that one event may write at most
MAX_PACKETS = 1 << 25  # at once, 2 GiB of them
MAX_BYTES = 1 << 34  # of what is recorded, each kind
ROWS: dict[str, Any] = {
    "packet": s.PACKET_ROW, "stream": s.STREAM_ROW, "route": s.ROUTE_ROW, "job": s.JOB_ROW, "tensor": s.TENSOR_ROW,
    "worker": s.WORKER_ROW, "entry": s.ENTRY_ROW, "aggregator": s.AGGREGATOR_ROW, "server": s.SERVER_ROW,
    "fragment": s.FRAGMENT_ROW, "slot": SLOT_ROW, "order": np.int16, "log": LOG_ROW, "sample": s.SAMPLE_ROW,
    "tap": s.TAP_ROW, "transport": m.TRANSPORT_ROW, "flow": m.FLOW_ROW, "receiver": m.RECEIVER_ROW,
    "message": m.MESSAGE_ROW, "queue": np.int32, "first": np.int64, "successor": np.int32, "early": np.uint64,
    "round_first": np.int64, "round_block": np.int32, "owned": np.uint64, "filled": np.bool_,
}  # fmt: skip


def lay_out(n_timers: int, n_unfinished: int, seed: int, **given: Any) -> s.Tables:
    """Lay out all tables.

    Parameters
    ----------
    n_timers : int
        Events beside those of links.
    n_unfinished : int
        Workers or messages that must finish.
    seed : int
        Of losses and marks.
    **given : structured arrays
        Tables that are not empty, `link` and `buffer` among them.
    """
    n_links = len(given["link"])
    n_events = 3 * n_links + n_timers
    clock = np.zeros(s.CLOCK_LENGTH, np.int64)
    clock[s.N_LINKS], clock[s.SEED], clock[s.NEXT_SAMPLE] = n_links, seed % 2**63, s.NEVER
    clock[[s.OPEN, s.OPEN_HEAD, s.ASKED, s.SENT_HEAD]] = -1
    clock[s.N_UNFINISHED], clock[s.SHIFT] = n_unfinished, bucket_shift(given["link"])
    tables = {name: np.zeros(0, dtype) for name, dtype in ROWS.items()} | given
    stream = tables["stream"]
    tables["route"]["last"][stream["end"][stream["end"] > stream["begin"]] - 1] = True
    return s.Tables(
        clock=clock,
        event=np.zeros(n_events, s.EVENT_ROW),
        bucket=np.full(s.N_BUCKETS, -1, np.int32),
        bits=np.zeros(s.N_BUCKETS // 64, np.uint64),
        middle=np.full(s.N_HALVES, -1, np.int32),
        heap=np.zeros(n_events, np.int32),
        **{name: on_lines(table) for name, table in tables.items()},
    )


def on_lines(table: Any) -> Any:
    """Copy a table to the beginning of a cache line, so that a row of 64 bytes is on one line."""
    raw = np.zeros(table.nbytes + LINE, np.uint8)
    begin = -raw.ctypes.data % LINE
    aligned = raw[begin : begin + table.nbytes].view(table.dtype)
    aligned[:] = table
    return aligned


def bucket_shift(link: NDArray[np.void]) -> int:
    """Width of the wheel's buckets, a power of two picoseconds: the wheel spans two of the longest waits on links."""
    longest = np.max(link["latency"] + 2000 * link["ps_per_byte"] + link["packet_time"])
    span = min(max(2.0 * longest, 1.0), LONGEST * PS)
    return max(0, int(np.ceil(np.log2(span / s.N_BUCKETS))))


def grown(tables: s.Tables, margin: int) -> s.Tables:
    """Make room: double what is nearly full.

    Parameters
    ----------
    tables : Tables
        What the main loop returned.
    margin : int
        Packets that one event may need at most.

    Raises
    ------
    InputError
        If a run needs more memory than any sensible one does.
    """
    clock = tables.clock
    changes: dict[str, Any] = {}
    if clock[s.N_FREE] < margin:
        changes["packet"] = _more_packets(tables, margin)
    for name, used, room in (
        ("log", clock[s.N_LOG], LOG_MARGIN),
        ("tap", clock[s.N_TAPPED], 1),
        ("sample", clock[s.N_SAMPLES], 1),
    ):
        table = getattr(tables, name)
        if used + room > len(table):
            if table.nbytes > MAX_BYTES // 2:
                raise InputError(f"a run of {clock[s.NOW] / PS:g} s so far has {used} records ({name}); ask for less")
            changes[name] = np.zeros(max(2 * len(table), 1 << 12), table.dtype)
            changes[name][:used] = table[:used]
    return tables._replace(**changes)


def _more_packets(tables: s.Tables, margin: int) -> Any:
    clock, old = tables.clock, len(tables.packet)
    if old > MAX_PACKETS // 2:
        raise InputError(
            f"{old} packets are on their way at once: they are repeated (rto) faster than links can send them, or "
            "windows are too large"
        )
    new = max(2 * old, 4 * margin, 1024)
    packet = on_lines(np.zeros(new, s.PACKET_ROW))
    packet[:old] = tables.packet
    packet["next"][old:] = np.arange(old + 1, new + 1)
    packet["next"][-1] = clock[s.FREE_PACKET] if clock[s.N_FREE] else -1
    clock[s.FREE_PACKET] = old
    clock[s.N_FREE] += new - old
    return packet
