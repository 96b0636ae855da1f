"""What a topology of a sweep has to keep: the table ``[goal]`` of a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError
from commsim.core.units import parse_bandwidth, parse_time
from commsim.files.fields import Fields

# What can be kept: its column, how its bound is read, and whether more is better.
KEPT: dict[str, tuple[str, Callable[[str, str], float] | None, bool]] = {
    "time": ("time_s", parse_time, False),
    "iteration": ("iteration_s", parse_time, False),
    "exposed": ("exposed_comm_s", parse_time, False),
    "algbw": ("algbw_Bps", parse_bandwidth, True),
    "busbw": ("busbw_Bps", parse_bandwidth, True),
    "scaling": ("scaling", None, True),
}


@dataclass(frozen=True, slots=True)
class Goal:
    """The table ``[goal]`` of a file.

    Parameters
    ----------
    keep : str
        Member of ``KEPT``.
    bound : float
        Bound in SI units: largest value, or smallest if more is better.
    """

    keep: str
    bound: float

    @property
    def column(self) -> str:
        """Of the results."""
        return KEPT[self.keep][0]

    @property
    def more_is_better(self) -> bool:
        """Whether the bound is a lower one."""
        return KEPT[self.keep][2]

    def better(self, a: float, b: float) -> float:
        """Return the better of two values."""
        return max(a, b) if self.more_is_better else min(a, b)

    def is_kept(self, value: float | None) -> bool:
        """Whether a value is within the bound."""
        return value is not None and self.better(value, self.bound) == value


def read_goal(tree: Mapping[str, Any], path: str | Path) -> Goal:
    """Read the table ``[goal]`` of a file.

    Raises
    ------
    InputError
        If it is missing or wrong.
    """
    if "goal" not in tree:
        raise InputError(f'{path}: [goal] is missing, such as: keep = "time", within = "5ms"')
    fields = Fields(tree, path).table("goal")
    keep = fields.one_of("keep", tuple(KEPT))
    _, parse, more = KEPT[keep]
    key = "at_least" if more else "within"
    bound = fields.number(key) if parse is None else fields.quantity(key, parse)
    fields.finish()
    return Goal(keep, bound)
