"""What machines should reach as a page: expected bus bandwidth with its interval, floor, and what was measured."""

from __future__ import annotations

from collections.abc import Sequence

from commsim.core.units import count_text
from commsim.pages.figure import Figure
from commsim.pages.figure_tables import FigureTable, number_column, word_column
from commsim.pages.page.write import check_page, write_page
from commsim.pages.study import Study

from .causes_page import AXES, EXPECTED, ROLES
from .check_log import CheckedSize, LogCheck
from .expectation import Expectation, ExpectedSize

FLOOR = "floor"
CAPTION = (
    "The line is what is expected, its band has 80 % of the rows of public tables of such machines. "
    "Of healthy machines {share:.3g} % are below the floor at a size. Crosses are measured."
)
__all__ = ["write_expectation"]


def write_expectation(found: Expectation | LogCheck, path: str) -> None:
    """Write the page of what machines should reach, and of a log beside it.

    Parameters
    ----------
    found : Expectation or LogCheck
        What is expected, or a log that was held against it.
    path : str
        File that ends with .html.

    Raises
    ------
    InputError
        If it cannot be written, or vl-convert is missing.
    """
    check_page(path)
    write_page(study_of_expectation(found), path)


def study_of_expectation(found: Expectation | LogCheck) -> Study:
    """Return the study of what machines should reach, with a figure for each operation.

    Parameters
    ----------
    found : Expectation or LogCheck
        What is expected, or a log that was held against it.
    """
    from commsim.version import __version__

    expected, rows = (found.expected, found.rows) if isinstance(found, LogCheck) else (found, ())
    title = f"{expected.network}, {count_text(expected.n_ranks, 'rank')}: what it should reach"
    caption = CAPTION.format(share=expected.false_alarms * 100)
    figures = tuple(_figure(name, expected.of(name), rows, caption) for name in expected.operations)
    table = _lines(expected.sizes)
    provenance = {"commsim": __version__, "input": found.path if isinstance(found, LogCheck) else expected.network}
    return Study(
        title, table, provenance=provenance, remarks=found.remarks, figures=figures, listed=tuple(table),
        measured=_measured(rows) if rows else None,
    )  # fmt: skip


def _figure(name: str, sizes: Sequence[ExpectedSize], rows: Sequence[CheckedSize], caption: str) -> Figure:
    own = [row for row in rows if row.expected.operation == name]
    return Figure(
        f"expected {name}", "curves", f"Bus bandwidth of {name.replace('_', '-')}", caption, _lines(sizes), ROLES,
        AXES, frozenset("x"), points=_measured(own) if own else None,
    )  # fmt: skip


def _lines(sizes: Sequence[ExpectedSize]) -> FigureTable:
    """Return a row for what is expected at each size, and one for its floor."""
    n = len(sizes)
    floors = [one.floor for one in sizes]
    return FigureTable.of((
        word_column("operation", [one.operation for one in sizes] * 2),
        word_column("line", [EXPECTED] * n + [FLOOR] * n),
        number_column("size_B", [one.size for one in sizes] * 2),
        number_column("busbw_Bps", [one.busbw for one in sizes] + floors),
        number_column("busbw_low_Bps", [one.low for one in sizes] + floors),
        number_column("busbw_high_Bps", [one.high for one in sizes] + floors),
    ))  # fmt: skip


def _measured(rows: Sequence[CheckedSize]) -> FigureTable:
    return FigureTable.of((
        word_column("operation", [row.expected.operation for row in rows]),
        word_column("verdict", [row.verdict for row in rows]),
        number_column("size_B", [row.expected.size for row in rows]),
        number_column("time_s", [row.time for row in rows]),
        number_column("busbw_Bps", [row.busbw for row in rows]),
    ))  # fmt: skip
