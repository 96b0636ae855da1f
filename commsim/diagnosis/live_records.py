"""Records of a running job: lines of NCCL's inspector, and calls of PyTorch's flight recorder, as one value.

References
----------
NCCL 2.30, ``plugins/profiler/inspector``: README and ``inspector_json.cc`` (format v4.0: header, metadata, coll_perf).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from commsim.core.errors import printable
from commsim.formats.json_rows import BY_PART
from commsim.formats.nccl_tests import NCCL_FUNCTIONS
from commsim.profiles.calls import RecordedCall

# What a line without a name of its communicator says there.
UNNAMED = "unknown"
# Beyond what any call has: ranks, bytes (of each operation some rank holds the whole array, and no GPU a TiB; a
# prediction of 16 TiB takes half a minute), s, and letters of a name.
MAX_RANKS, MAX_SIZE, MAX_SECONDS, MAX_NAME = 2**24, 2.0**40, 1e6, 256
__all__ = ["LiveRecord", "of_calls", "of_line"]


class LiveRecord(NamedTuple):
    """One call of one rank.

    Parameters
    ----------
    communicator : str
        Hash or name of the communicator.
    name : str
        What the program calls it; may be empty.
    n_ranks, n_nodes : int
        Ranks, and machines that they are on; 0 where that is not recorded.
    rank : int
        Rank in the communicator.
    operation : str
        One of ``commsim.core.operations``.
    size : float, bytes
        Size as nccl-tests counts it.
    seconds : float, s
        Time from the start of the kernel to its end, waiting for other ranks included.
    sequence : int or None
        Number of the call in its communicator.
    host : str
        Host name; empty where it is not recorded.
    process : str
        What tells the process from others of the host.
    """

    communicator: str
    name: str
    n_ranks: int
    n_nodes: int
    rank: int
    operation: str
    size: float
    seconds: float
    sequence: int | None
    host: str = ""
    process: str = ""


def of_line(line: str) -> LiveRecord | None:
    """Read a line of NCCL's inspector; None for one of a message, of another kind, or that is cut off.

    Parameters
    ----------
    line : str
        One JSON object.
    """
    try:
        tree = json.loads(line[max(0, line.find("{")) :])  # behind what a launcher or a collector puts before it
        perf, header = tree["coll_perf"], tree["header"]
        function, n_ranks = perf["coll"], header["n_ranks"]
        about = tree.get("metadata") or {}
        if not all(type(whole) is int and 0 <= whole <= MAX_RANKS for whole in (n_ranks, header.get("nnodes", 0))):
            return None
        size = float(perf["coll_msg_size_bytes"])
        found = LiveRecord(
            _text(header["id"]), _name(header), n_ranks, header.get("nnodes", 0), int(header["rank"]),
            NCCL_FUNCTIONS[function], size * (n_ranks if function in BY_PART else 1),
            float(perf["coll_exec_time_us"]) * 1e-6, int(perf["coll_sn"]), _text(about.get("hostname", "")),
            _text(about.get("pid", "")),
        )  # fmt: skip
        return found if _is_possible(found) else None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        return None


def of_calls(calls: Iterable[RecordedCall], path: Path) -> list[LiveRecord | None]:
    """Return the timed calls of a record of the flight recorder, of one rank; None for what no call can be.

    Parameters
    ----------
    calls : iterable of RecordedCall
        Calls.
    path : path
        Path of the file, by which the rank is told apart where it is not recorded.
    """
    found = (
        LiveRecord(
            call.group, call.group, call.n_ranks or 0, 0, -1 if call.rank is None else call.rank, call.operation,
            call.size, call.duration, call.sequence, process=path.name,
        )
        for call in calls if call.duration and call.n_ranks
    )  # fmt: skip
    return [record if _is_possible(record) else None for record in found]


def _is_possible(record: LiveRecord) -> bool:
    """Whether size and time are numbers that a call can have; those of a damaged line or record are not."""
    return 0 <= record.size <= MAX_SIZE and 0 <= record.seconds <= MAX_SECONDS and (
        (not record.size or record.size >= 1) and (not record.seconds or record.seconds >= 1e-9)
    )  # fmt: skip


def _text(value: object) -> str:
    """Return a name as tables and pages can show it."""
    return printable(str(value)[:MAX_NAME])


def _name(header: Mapping[str, Any]) -> str:
    name = _text(header.get("comm_name", ""))
    return "" if name == UNNAMED else name
