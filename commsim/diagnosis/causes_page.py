"""Causes as a page: measured against expected bus bandwidth with its band, and what each cause predicts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from commsim.core.operations import operation as known_operation
from commsim.core.remark import Remark
from commsim.nccl.error_model import ErrorModel
from commsim.pages.figure import Figure
from commsim.pages.figure_tables import FigureTable, number_column, word_column
from commsim.pages.page.write import check_page, write_page
from commsim.pages.study import Study
from commsim.real.comparison.pairs import Pair

if TYPE_CHECKING:
    from commsim.diagnosis.causes.explain import RankedCause

EXPECTED, SHOWN = "expected", 4
ROLES = {"x": "size_B", "y": "busbw_Bps", "by": "line", "low": "busbw_low_Bps", "high": "busbw_high_Bps"}
AXES = {"x": "size", "y": "bus bandwidth"}
BAND = "The line is what is expected, its band has 80 % of the rows of tables of such machines. Crosses are measured."
PREDICTED = "Each line is what the model gives with a cause, and how likely that is. Crosses are measured."
__all__ = ["study_of_causes", "write_causes"]


def write_causes(
    causes: Sequence[RankedCause], pairs: Sequence[Pair], errors: ErrorModel, lines: Sequence[str], what: str, path: str
) -> None:
    """Write the page of causes.

    Parameters
    ----------
    causes, pairs, errors, lines, what
        Same as in :func:`study_of_causes`.
    path : str
        File that ends with .html.

    Raises
    ------
    InputError
        If it cannot be written, or vl-convert is missing.
    """
    check_page(path)
    write_page(study_of_causes(causes, pairs, errors, lines, what), path)


def study_of_causes(
    causes: Sequence[RankedCause], pairs: Sequence[Pair], errors: ErrorModel, lines: Sequence[str], what: str
) -> Study:
    """Return the study of causes, with two figures.

    Parameters
    ----------
    causes : sequence of RankedCause
        The most likely first.
    pairs : sequence of Pair
        Predicted beside measured times of one operation, each with a size.
    errors : ErrorModel
        Errors of the predictions, which the band is made of.
    lines : sequence of str
        What is said of the causes.
    what : str
        What was measured, and the topology.
    """
    from commsim.version import __version__

    rows = [pair for pair in pairs if pair.measured.size > 0 and pair.measured.time > 0 and pair.predicted > 0]
    measured, expected = _measured(rows), _expected(rows, errors)
    figures = (
        Figure("measured and expected", "curves", "Measured against expected", BAND, expected, ROLES, AXES,
               frozenset("x"), points=measured),
        Figure("what causes predict", "curves", "What each cause predicts", PREDICTED, _predicted(causes, rows), ROLES,
               AXES, frozenset("x"), points=measured),
    )  # fmt: skip
    remarks = tuple(Remark("cause", line, needed=True) for line in lines)
    return Study(
        f"{what}: what it reaches, and why", expected, provenance={"commsim": __version__, "input": what},
        remarks=remarks, said=remarks, figures=figures, listed=tuple(expected), measured=measured,
    )  # fmt: skip


def _rate(pair: Pair, time: float) -> float:
    """Return the bus bandwidth of a pair's call in another time, in bytes/s."""
    return known_operation(pair.measured.operation).busbw_factor(pair.measured.n_ranks or 1) * pair.measured.size / time


def _table(rows: Sequence[tuple[str, float, float, float, float]]) -> FigureTable:
    """Return a table of lines: name, size, bus bandwidth, its ends."""
    names, *numbers = [list(column) for column in zip(*rows, strict=True)]
    columns = ("size_B", "busbw_Bps", "busbw_low_Bps", "busbw_high_Bps")
    return FigureTable.of((
        word_column("line", names),
        *(number_column(name, values) for name, values in zip(columns, numbers, strict=True)),
    ))  # fmt: skip


def _expected(rows: Sequence[Pair], errors: ErrorModel) -> FigureTable:
    found = []
    for pair in rows:
        rate, (fast, slow) = _rate(pair, pair.predicted), errors.ends(pair.measured.size)
        found.append((EXPECTED, pair.measured.size, rate, rate * math.exp(-slow), rate * math.exp(-fast)))
    return _table(found)


def _predicted(causes: Sequence[RankedCause], rows: Sequence[Pair]) -> FigureTable:
    """Return a line for each of the first causes, at the sizes that it was asked at."""
    by_size = {pair.measured.size: pair for pair in rows}
    found = []
    for one in causes[:SHOWN]:
        name = f"{one.text} ({one.likelihood:.0%})"
        for size, time in zip(one.sizes.tolist(), one.times.tolist(), strict=True):
            if size in by_size:
                rate = _rate(by_size[size], time)
                found.append((name, size, rate, rate, rate))
    return _table(found)


def _measured(rows: Sequence[Pair]) -> FigureTable:
    return FigureTable.of((
        word_column("operation", [pair.measured.operation for pair in rows]),
        number_column("size_B", [pair.measured.size for pair in rows]),
        number_column("time_s", [pair.measured.time for pair in rows]),
        number_column("busbw_Bps", [_rate(pair, pair.measured.time) for pair in rows]),
    ))  # fmt: skip
