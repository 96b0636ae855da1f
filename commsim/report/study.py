"""What a report is about: rows of results, what was measured, runs in detail, and where all that comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .columns import Table

if TYPE_CHECKING:
    from .played_run import PlayedRun


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """Everything that figures are made of.

    Parameters
    ----------
    title : str
        What was studied.
    rows : Table
        A row per result; failed points of a sweep are not among them.
    parameters : tuple of str
        Columns of the rows that say what was asked, and vary.
    measured : Table, optional
        Real measurements: operation, size_B, time_s, busbw_Bps, and what else they have.
    runs : tuple of PlayedRun
        Runs with their networks and the times of every transfer.
    left_out : mapping of str to str
        Runs, and why they are not there in detail.
    provenance : mapping of str to str
        Version, file, hash of the configuration.
    by : str
        Column whose values get a colour each.
    baseline : str
        The algorithm to which others are compared; those whose name begins with ``ring`` unless given.
    failed : mapping of str to int
        Different errors of points that failed, and how many points each stopped.
    """

    title: str
    rows: Table
    parameters: tuple[str, ...] = ()
    measured: Table | None = None
    runs: tuple[PlayedRun, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    provenance: Mapping[str, str] = field(default_factory=dict)
    by: str = ""
    baseline: str = ""
    failed: Mapping[str, int] = field(default_factory=dict)

    @property
    def n_failed(self) -> int:
        """How many points failed."""
        return sum(self.failed.values())

    def series(self, *but: str) -> dict[str, str]:
        """Return the role `by`: the column asked for, else the algorithm, else the first parameter but those named."""
        if self.by:
            return {"by": self.by}
        for name in ("collective", *self.parameters):
            if name in self.parameters and name not in but:
                return {"by": name}
        return {}
