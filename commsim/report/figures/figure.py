"""A figure: a table, and which of its columns go where. Pages, plots and CSV files all show this one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from commsim.report.columns import Table
from commsim.report.picture import Picture

KINDS = ("curves", "heat", "choice", "cdf", "scatter", "spans", "picture")


class NothingToDraw(Exception):  # noqa: N818  # no error: the data does not have what a figure shows
    """Says why the data does not allow a figure."""


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """What is drawn, without how.

    Parameters
    ----------
    name : str
        What ``commsim plot`` calls it.
    kind : str
        One of ``KINDS``; :mod:`commsim.report.figures.drawn` says what each shows of the table.
    title, caption : str
        Of the page; a plot for a paper has neither.
    table : Table
        All rows; a page may filter them.
    roles : mapping of str to str
        From x, y, by, value, facet and so on to columns of the table.
    words : mapping of str to str
        What the axes say, by role; the column's name and unit otherwise.
    logarithmic : frozenset of str
        Roles whose axis is.
    scale : str
        Of the colours of a heat map: ``load`` from 0 to 1, or ``ratio``, in which 1 is neutral.
    level : float, optional
        A value of y that is drawn as a dashed line; ``words`` says what it is.
    points : Table, optional
        Measured: drawn as marks over curves; has the columns of x and y.
    picture : Picture, optional
        Of the kind picture.
    of_run : str
        The run that it shows, when it shows one and not all rows.
    """

    name: str
    kind: str
    title: str
    caption: str
    table: Table
    roles: Mapping[str, str]
    words: Mapping[str, str] = field(default_factory=dict)
    logarithmic: frozenset[str] = frozenset()
    scale: str = "load"
    level: float | None = None
    points: Table | None = None
    picture: Picture | None = None
    of_run: str = ""

    @property
    def wording(self) -> dict[str, str]:
        """What is said of each role: its words, else the name of its column without the unit."""
        names = {role: without_unit(name) for role, name in self.roles.items()}
        return names | dict(self.words)


def without_unit(name: str) -> str:
    """Return the name of a column as people say it."""
    bare = name.removesuffix("_Bps").removesuffix("_B").removesuffix("_s")
    return bare.replace("_", " ").replace("n ranks", "ranks")
