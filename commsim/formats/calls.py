"""Collective calls out of a profile: what was sent when, and what rows of measurements and jobs they make."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from commsim.core.errors import InputError

from .measured import Asked, Measured

MAX_REASONS = 5
MAX_RANKS = 2**20
"""Of a group: more than any machine has, and few enough to write down."""


@dataclass(frozen=True, slots=True)
class Call:
    """One collective, or one message, as one rank saw it.

    Parameters
    ----------
    operation : str
        One of ``commsim.core.operations``.
    size : float, bytes
        As nccl-tests counts it.
    n_ranks : int or None
        Ranks of its group, where the profile says.
    start : float, s
        On the clock of the rank.
    duration : float or None, s
        None where it was not timed, or has not ended.
    rank : int or None
        Who saw it.
    group : str
        Name of the process group.
    algorithm, protocol : str
        Where the name of the kernel says.
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

    @property
    def what(self) -> tuple[str, float, str]:
        """What repeats when the program does the same again."""
        return self.operation, self.size, self.group


def measured_calls(calls: Sequence[Call], path: Path, asked: Asked) -> list[Measured]:
    """Make one row of each kind of call: its median time, and percentiles 5 and 95 where it was called often.

    A call's time in a profile includes waiting for the last rank to come, which a benchmark's does not.
    """
    groups: dict[tuple[str, float, int | None, str, str], list[float]] = defaultdict(list)
    for call in calls:
        if call.duration is not None:
            key = call.operation, call.size, call.n_ranks or asked.n_ranks, call.algorithm, call.protocol
            groups[key].append(call.duration)
    untimed = sum(call.duration is None for call in calls)
    if untimed:
        asked.notes.append(f"{path}: {untimed} of {len(calls)} calls have no duration, since none was recorded")
    rows = []
    for i, ((operation, size, n_ranks, algorithm, protocol), times) in enumerate(sorted(groups.items(), key=str), 1):
        low, high = _spread(times)
        rows.append(Measured(
            operation, size, statistics.median(times), n_ranks, algorithm, protocol,
            low=low, high=high, source=str(path), line=i,
        ))  # fmt: skip
    return sorted(rows, key=lambda row: (row.operation, row.n_ranks or 0, row.size))


def whole_array(operation: str, sent: float, received: float, n_ranks: int | None) -> float:
    """Size of an operation as nccl-tests counts it, from the bytes that a rank puts in and gets out.

    The larger of the two is the whole array, but for a gather or a scatter, where only the root has it.

    Raises
    ------
    InputError
        If that needs the number of ranks, and nobody knows it.
    """
    if operation in ("gather", "scatter"):
        if n_ranks is None:
            raise InputError(f"the size of a {operation} needs the number of its ranks")
        block = min(sent, received) or max(sent, received)
        return block * n_ranks
    return max(sent, received)


def left_out_notes(path: Path, reasons: Counter[str], what: str) -> list[str]:
    """Say how many of them were left out for which reason; of many reasons, the most frequent."""
    notes = [f"{path}: {count} {what} left out: {why}" for why, count in reasons.most_common(MAX_REASONS)]
    others = reasons.total() - sum(count for _, count in reasons.most_common(MAX_REASONS))
    return notes + ([f"{path}: {others} {what} left out for other reasons"] if others else [])


def _spread(times: Sequence[float]) -> tuple[float | None, float | None]:
    if len(times) < 2:
        return None, None
    import numpy as np

    low, high = np.percentile(times, (5, 95))
    return float(low), float(high)
