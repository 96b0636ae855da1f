"""A measured row of experts' exchanges beside what is predicted for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.experts.fit import key_of
from benchmarks.experts.tables import Row, predicted
from commsim.experts.kernels import kernel_for


@dataclass(frozen=True, slots=True)
class Answer:
    """A measured row, and what is predicted for it."""

    row: Row
    predicted: float
    fitted: bool
    remark: str

    @property
    def error(self) -> float:
        """Relative to what was measured."""
        return self.predicted / self.row.measured - 1

    def json(self) -> dict[str, Any]:
        """Return the columns of the file, and both times."""
        return {
            **self.row.columns, "measured_us": self.row.measured * 1e6, "predicted_us": self.predicted * 1e6,
            "fitted": self.fitted, "remark": self.remark,
        }  # fmt: skip


def answer(row: Row) -> Answer:
    """Predict a row; its `fitted` says whether its table is one that the constants were fitted on.

    Raises
    ------
    InputError
        If the row asks for what cannot be.
    """
    kernel, remark = kernel_for(row.kernel, row.gpu)
    return Answer(row, predicted(row, kernel), key_of(row) in kernel.tables and not remark, remark)
