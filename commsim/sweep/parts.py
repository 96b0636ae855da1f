"""A sweep in parts that run apart, such as the tasks of a Slurm array, and the parts put together."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from commsim.core.errors import InputError
from commsim.core.files.sweep_store import Store, read_description, reading, rows_in
from commsim.core.spec import is_whole

SLURM = ("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_STEP", "SLURM_ARRAY_TASK_COUNT")
AT_A_TIME = 1000  # rows
_PART = re.compile(r"(\d{1,6})/(\d{1,6})", re.ASCII)


@dataclass(frozen=True, slots=True)
class SweepPart:
    """Every n-th point, beginning with the k-th.

    Parameters
    ----------
    k, n : int
        Number of the part, from 1, and number of parts.

    Raises
    ------
    InputError
        If the part is unknown.
    """

    k: int = 1
    n: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.k <= self.n:
            raise InputError(f"a part is K/N with K from 1 to N, got {self.k}/{self.n}")

    def has(self, place: int) -> bool:
        """Whether the point of this place, from 0, is in it."""
        return place % self.n == self.k - 1

    def n_of(self, n_points: int) -> int:
        """How many of so many points are in it."""
        return len(range(self.k - 1, n_points, self.n))


def read_part(text: str, environment: Mapping[str, str] = os.environ) -> SweepPart:
    """Read ``K/N``, or for ``slurm`` the task and the array of this process.

    Raises
    ------
    InputError
        If it is neither, or this is no task of an array.
    """
    if text != "slurm":
        match = _PART.fullmatch(text)
        if match is None:
            raise InputError(f"--part takes K/N, such as 3/16, or slurm, got {text!r}")
        return SweepPart(int(match[1]), int(match[2]))
    values = [environment.get(name, "") for name in SLURM]
    if not all(is_whole(value) for value in values):
        raise InputError(f"--part slurm is for a task of an array (sbatch --array): {', '.join(SLURM)} say which it is")
    task, first, step, count = map(int, values)
    return SweepPart((task - first) // max(step, 1) + 1, count)


def merge(directory: str | Path, parts: Sequence[str | Path]) -> tuple[int, int]:
    """Copy the rows of parts of one sweep into a directory, where they may be already.

    Parameters
    ----------
    directory : path
        Directory of the results; made if it is missing.
    parts : sequence of path
        Directories of parts, complete or not.

    Returns
    -------
    int, int
        Points that have a row now, and points of the sweep.

    Raises
    ------
    InputError
        If a directory has none or another sweep, or a row is damaged.
    """
    about = [read_description(part) for part in parts]
    for part, one in zip(parts[1:], about[1:], strict=True):
        _require_same(part, one, parts[0], about[0])
    Path(directory).mkdir(parents=True, exist_ok=True)
    with contextlib.closing(Store(Path(directory), about[0], about[0]["provenance"])) as store:
        _require_same(directory, store.description, parts[0], about[0])
        for part in parts:
            with reading(part) as db:
                lines = [row.encode() for row in rows_in(db, part)]
            for begin in range(0, len(lines), AT_A_TIME):
                store.append(lines[begin : begin + AT_A_TIME])
        return len(store.finished()), int(about[0]["n_points"])


def _require_same(part: str | Path, one: Mapping[str, object], first: str | Path, other: Mapping[str, object]) -> None:
    if one["config_hash"] != other["config_hash"]:
        raise InputError(f"{part} has the results of another sweep than {first}")
