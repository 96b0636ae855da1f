"""Collective calls out of a profile: what was sent when, and what rows of measurements and jobs they make."""

from __future__ import annotations

import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from commsim.core.errors import InputError
from commsim.formats.measurement import Measurement, ReadingContext

MAX_REASONS = 5
# Of a group: more than any machine has, and few enough to write down.
MAX_RANKS = 2**20


# By what a profiling name has in it; the first that fits. A receive is the send of somebody else.
_NAMES = (
    ("all_reduce_barrier", "barrier"), ("barrier", "barrier"), ("all_?reduce", "all_reduce"),
    ("reduce_scatter", "reduce_scatter"), ("all_?gather", "all_gather"), ("all_?to_?all", "all_to_all"),
    ("broadcast", "broadcast"), ("reduce", "reduce"), ("gather", "gather"), ("scatter", "scatter"),
    ("send", "send_recv"),
)  # fmt: skip
_BYTES = {"float": 4, "double": 8, "half": 2, "bfloat16": 2, "int": 4, "long": 8, "short": 2, "char": 1, "byte": 1,
          "bool": 1, "complexfloat": 8, "complexdouble": 16}  # fmt: skip


def bytes_of_type(name: str) -> int:
    """Bytes of an element, by PyTorch's or Kineto's name of its type; 0 if it is not known."""
    name = name.lower().removeprefix("at::").removeprefix("torch.").replace("c10::", "")
    return 1 if name.startswith("float8") else _BYTES.get(name, 0)


def operation_of(name: str) -> str:
    """Operation of a profiling name such as ``nccl:_all_gather_base``; empty if it is none that is known."""
    short = name[:256].rpartition(":")[2].lower()
    return next((operation for pattern, operation in _NAMES if re.search(pattern, short)), "")


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One collective, or one message, as one rank saw it.

    Parameters
    ----------
    operation : str
        One of ``commsim.core.operations``.
    size : float, bytes
        Size as nccl-tests counts it.
    n_ranks : int or None
        Ranks of its group, where the profile says.
    start : float, s
        Start on the clock of the rank.
    duration : float or None, s
        None where it was not timed, or has not ended.
    rank : int or None
        Rank that recorded it.
    group : str
        Name of the process group.
    algorithm, protocol : str
        Algorithm and protocol; empty where the name of the kernel has none.
    sequence : int or None
        Number of the call in its group, by which those of other ranks are found; None where it is not recorded.
    """

    operation: str
    size: float
    n_ranks: int | None
    start: float
    duration: float | None
    rank: int | None = None
    group: str = ""
    algorithm: str = ""
    protocol: str = ""
    sequence: int | None = None

    @property
    def what(self) -> tuple[str, float, str]:
        """What repeats when the program does the same again."""
        return self.operation, self.size, self.group


def measured_calls(calls: Sequence[RecordedCall], path: Path, context: ReadingContext) -> list[Measurement]:
    """Make one row of each kind of call: its median time, and percentiles 5 and 95 where it was called often.

    A call's time in a profile includes waiting for the last rank to come, which a benchmark's does not.

    Parameters
    ----------
    calls : sequence of RecordedCall
        Calls in any order.
    path : path
        The profile, for messages.
    context : ReadingContext
        What the user says of the file; receives notes.
    """
    groups: dict[tuple[str, float, int | None, str, str], list[float]] = defaultdict(list)
    for call in calls:
        if call.duration is not None:
            key = call.operation, call.size, call.n_ranks or context.n_ranks, call.algorithm, call.protocol
            groups[key].append(call.duration)
    if not calls and not context.notes:  # which say what was left out
        context.notes.append(f"{path}: no call of a collective is in it: no kernel or annotation of NCCL, RCCL or gloo")
    untimed = sum(call.duration is None for call in calls)
    if untimed:
        context.notes.append(f"{path}: {untimed} of {len(calls)} calls have no duration, since none was recorded")
    rows = []
    for i, ((operation, size, n_ranks, algorithm, protocol), times) in enumerate(sorted(groups.items(), key=str), 1):
        low, high = _spread(times)
        rows.append(Measurement(
            operation, size, statistics.median(times), n_ranks, algorithm, protocol,
            low=low, high=high, source=str(path), line=i,
        ))  # fmt: skip
    return sorted(rows, key=lambda row: (row.operation, row.n_ranks or 0, row.size))


def whole_array(operation: str, sent: float, received: float, n_ranks: int | None) -> float:
    """Size of an operation as nccl-tests counts it, from the bytes that a rank puts in and gets out.

    The larger of the two is the whole array, but for a gather or a scatter, where only the root has it.

    Parameters
    ----------
    operation : str
        Ours.
    sent, received : float, bytes
        Bytes sent and received by one rank.
    n_ranks : int or None
        Number of ranks, where it is known.

    Raises
    ------
    InputError
        If that needs the number of ranks, which is not known.
    """
    if operation in ("gather", "scatter"):
        if n_ranks is None:
            raise InputError(f"the size of a {operation} needs the number of its ranks")
        block = min(sent, received) or max(sent, received)
        return block * n_ranks
    return max(sent, received)


def left_out_notes(path: Path, reasons: Counter[str], what: str) -> list[str]:
    """Describe how many of them were left out for which reason; of many reasons, the most frequent.

    Parameters
    ----------
    path : path
        The file.
    reasons : Counter of str
        How many for each.
    what : str
        What they are, in the plural.
    """
    notes = [f"{path}: {count} {what} left out: {why}" for why, count in reasons.most_common(MAX_REASONS)]
    others = reasons.total() - sum(count for _, count in reasons.most_common(MAX_REASONS))
    return notes + ([f"{path}: {others} {what} left out for other reasons"] if others else [])


def _spread(times: Sequence[float]) -> tuple[float | None, float | None]:
    if len(times) < 2:
        return None, None
    low, high = np.percentile(times, (5, 95))
    return float(low), float(high)
