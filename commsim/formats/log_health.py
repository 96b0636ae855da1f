"""Whether the run that a log is of went well: wrong results, errors, a FAILED footer, an end in mid-row, lost rows.

References
----------
nccl-tests 2.19, ``src/common.h`` (``Test NCCL failure``, ``Test CUDA failure``) and ``src/util.cu`` (the footer); Open
MPI 5 and Slurm 24.05, what ``mpirun`` and ``srun`` print of a rank that fails.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from commsim.core.units import count_text

_ERROR = re.compile(
    r"Test (?:NCCL |CUDA )?failure\b|MPI_ABORT was invoked|(?:mpirun|prterun|mpiexec).{0,40} noticed that|"
    r"exited with (?:a )?non-zero|returned a non-zero exit code|exited on signal \d|BAD TERMINATION|"
    r"task\S* .{0,40}(?:Exited with exit code [1-9]|Killed|Segmentation fault|Aborted|Bus error)|"
    r"slurmstepd: error: .{0,80}CANCELLED|Segmentation fault|Watchdog caught collective operation timeout"
)
_FOOTER = re.compile(r"#\s*Out of bounds values\s*:\s*(\d+)\s+FAILED")
_TABLE = re.compile(r"#?\s*size\b.*\balgbw\b.*\bbusbw\b")


def unhealthy(faults: Sequence[str]) -> str:
    """Return faults of a run in one line."""
    return f"not healthy: {'; '.join(faults)}"


@dataclass(slots=True)
class LogHealth:
    """What readers find beside measured times.

    Parameters
    ----------
    place : str
        What the numbers count: ``line``, or ``result`` of JSON.
    wrong, dropped : list of int
        Places of rows with wrong results; of rows of which a half has no time.
    tables : list of int
        Lines of the headers of tables: each is a run of its own.
    error, cut, footer, out_of_bounds : int
        Place of the first error, of a last row that is cut, and of a footer that says FAILED with its number of values;
        0 where there is none.
    """

    place: str = "line"
    wrong: list[int] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)
    tables: list[int] = field(default_factory=list)
    error: int = 0
    cut: int = 0
    footer: int = 0
    out_of_bounds: int = 0

    def hear(self, number: int, line: str) -> None:
        """Take from a line that is no row what it says of the run."""
        if _TABLE.match(line):
            self.tables.append(number)
        elif found := _FOOTER.search(line):
            self.footer, self.out_of_bounds = self.footer or number, self.out_of_bounds + int(found[1])
        elif not self.error and _ERROR.search(line):
            self.error = number
        if not line.isspace():
            self.cut = 0  # a row before it was not the last line

    @property
    def faults(self) -> tuple[str, ...]:
        """Why the run did not go well, a line each; none where nothing says so."""
        found = []
        if self.wrong:
            rows = count_text(len({*self.wrong}), "row")
            found.append(f"wrong results in {rows}, the first in {self.place} {self.wrong[0]}")
        if self.error:
            found.append(f"the run ended in an error in line {self.error}")
        if self.cut:
            found.append(f"the log ends within the row in line {self.cut}")
        if self.footer and not self.wrong:  # else they are these
            where = f"line {self.footer}" if self.place == "line" else "its footer"
            found.append(f"out of bounds values: {self.out_of_bounds} FAILED, in {where}")
        return tuple(found)
