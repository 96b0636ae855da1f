"""A comparison: predicted beside measured times of one operation, with their errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from commsim.core.errors import InputError
from commsim.core.frames import frame_of
from commsim.core.units import counted
from commsim.core.value import Shown
from commsim.formats.measurement import Measured
from commsim.real.comparison.pairs import Pair, Summary, one_per_size, pair_up, summarise

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Shown):
    """Predicted beside measured times.

    Parameters
    ----------
    pairs : tuple of Pair
        Pairs, one for each size that has both.
    summary : Summary
        Their errors.
    alone : tuple of Measured
        Measurements without a prediction.
    notes : tuple of str
        What was left out, chosen, derived and assumed.
    reasons : tuple of str
        Why the largest bus bandwidth is above the line rate, where it is.
    """

    pairs: tuple[Pair, ...]
    summary: Summary
    alone: tuple[Measured, ...] = ()
    notes: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()

    @property
    def remarks(self) -> tuple[str, ...]:
        """All remarks, each once."""
        return tuple(dict.fromkeys((*self.notes, *self.reasons)))

    def __repr__(self) -> str:
        errors = f"median {self.summary.median:.1%}, worst {self.summary.worst:.1%}"
        return f"Comparison({self.pairs[0].measured.operation}, {counted(len(self.pairs), 'size')}, error: {errors})"

    def to_frame(self, library: str | None = None) -> Any:
        """Return a row for each size, as a data frame."""
        return frame_of((pair.row() for pair in self.pairs), library)


def compare(
    rows: Sequence[Measured],
    path: str,
    predicted: Callable[[str, int | None, Sequence[float]], Sequence[float]],
    n_ranks: int | None = None,
) -> Comparison:
    """Set predictions beside measurements.

    Parameters
    ----------
    rows : sequence of Measured
        Measurements.
    path : str
        Name of their file, for messages.
    predicted : callable
        Function from an operation, a number of ranks and sizes to the predicted times, s.
    n_ranks : int, optional
        Number of ranks, where the measurements do not say it.

    Raises
    ------
    InputError
        If there are measurements of several operations or numbers of ranks, or none of a size above 0.
    """
    measured = one_per_size(rows)
    operations = sorted({row.operation for row in measured})
    if len(operations) != 1:
        raise InputError(f"{path} has {', '.join(operations)}: choose one with operation=")
    ranks = {row.n_ranks for row in measured} - {None}
    if n_ranks is None and len(ranks) > 1:
        raise InputError(f"{path} has measurements of {sorted(r for r in ranks if r)} ranks: choose with n_ranks=")
    sizes = sorted({row.size for row in measured if row.size > 0})
    if not sizes:
        raise InputError(f"{path} has no size above 0")
    times = dict(zip(sizes, predicted(operations[0], n_ranks or next(iter(ranks), None), sizes), strict=True))
    pairs, alone = pair_up(measured, lambda row: times.get(row.size))
    return Comparison(pairs, summarise(pairs), alone)
