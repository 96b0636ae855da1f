"""A figure: a table, and which of its columns go where. Pages, plots and CSV files all show this one value.

======= =============================================================================================
kind    shows
======= =============================================================================================
curves  per value of `by` and x: the median of y, between the least and the greatest
heat    per value of `facet`, y and x: the median of `value`
choice  per value of `facet`, y and x: which `by` has the least median of `value`, and its lead
cdf     per value of `by`: every x, and which share of them is not larger
others  the table as it is
======= =============================================================================================

``page/specs`` asks the same of the browser, where rows are filtered; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from commsim.pages.figure_tables import Column, FigureTable, number_column
from commsim.pages.pictures.picture import Picture

Reals = NDArray[np.float64]
Numbers = NDArray[np.int64]


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
        ``curves``, ``heat``, ``choice``, ``cdf``, ``scatter``, ``spans`` or ``picture``: what is shown of the table.
    title, caption : str
        Title and caption on the page; a plot for a paper has neither.
    table : FigureTable
        All rows; a page may filter them.
    roles : mapping of str to str
        Map from x, y, by, value, facet and so on to columns of the table.
    words : mapping of str to str
        What the axes say, by role; the column's name and unit otherwise.
    logarithmic : frozenset of str
        Roles whose axis is.
    scale : str
        Scale of the colours of a heat map: ``load`` from 0 to 1, or ``ratio``, in which 1 is neutral.
    level : float, optional
        A value of y that is drawn as a dashed line; ``words`` says what it is.
    points : FigureTable, optional
        Measured: drawn as marks over curves; has the columns of x and y.
    picture : Picture, optional
        Picture, for the kind picture.
    of_run : str
        The run that it shows, when it shows one and not all rows.
    """

    name: str
    kind: str
    title: str
    caption: str
    table: FigureTable
    roles: Mapping[str, str]
    words: Mapping[str, str] = field(default_factory=dict)
    logarithmic: frozenset[str] = frozenset()
    scale: str = "load"
    level: float | None = None
    points: FigureTable | None = None
    picture: Picture | None = None
    of_run: str = ""

    @property
    def wording(self) -> dict[str, str]:
        """Label of each role: its words, else the name of its column without the unit."""
        names = {role: without_unit(name) for role, name in self.roles.items()}
        return names | dict(self.words)


def without_unit(name: str) -> str:
    """Name of a column in plain words, without its unit."""
    bare = name.removesuffix("_Bps").removesuffix("_B").removesuffix("_s")
    return bare.replace("_", " ").replace("n ranks", "ranks")


def drawn_table(figure: Figure) -> FigureTable:
    """Return the table of what is drawn."""
    role, table = figure.roles, figure.table
    if figure.kind == "curves":
        low, high = role.get("low", role["y"]), role.get("high", role["y"])
        keys = [role[r] for r in ("by", "x") if r in role]
        return summarised(table, keys, role["y"], low, high)
    if figure.kind == "heat":
        return summarised(table, [role[r] for r in ("facet", "y", "x") if r in role], role["value"])
    if figure.kind == "choice":
        return _winners(figure)
    if figure.kind == "cdf":
        return _shares(table, role["x"], role.get("by"))
    return table


def summarised(table: FigureTable, keys: list[str], value: str, low: str = "", high: str = "") -> FigureTable:
    """Median of a column, and the least and greatest of two, for each combination of the keys' values.

    Parameters
    ----------
    table : FigureTable
        Rows without one of the keys or the value are left out.
    keys : list of str
        Columns whose combinations get a row each, in ascending order.
    value : str
        Column of the median.
    low, high : str
        Columns of the least and the greatest; by default `value`.
    """
    used, group, n = grouped(table, keys, [value])
    values = table[value].values[used]
    lows, highs = (table[name or value].values[used] for name in (low, high))
    first = np.searchsorted(np.sort(group), np.arange(n))
    rows = np.argsort(group, kind="stable")[first] if n else np.empty(0, np.int64)
    count = np.bincount(group, minlength=n)
    least, greatest = np.full(n, np.inf), np.full(n, -np.inf)
    np.fmin.at(least, group, lows)
    np.fmax.at(greatest, group, highs)
    unit = table[value].unit
    return table.only(keys).take(used[rows]).beside(
        number_column(value, medians(group, values, n), unit),
        number_column(f"least_{value}", np.where(np.isinf(least), np.nan, least), unit),
        number_column(f"greatest_{value}", np.where(np.isinf(greatest), np.nan, greatest), unit),
        number_column("rows", count, ""),
    )  # fmt: skip


def grouped(
    table: FigureTable, keys: list[str], needed: list[str], *, missing: bool = False
) -> tuple[Numbers, Numbers, int]:
    """Return numbers for the combinations of the keys' values, in ascending order.

    Parameters
    ----------
    table : FigureTable
        Table with the rows.
    keys, needed : list of str
        Columns; rows without a value in one of them are left out.
    missing : bool
        Whether a missing key is a value like others instead.

    Returns
    -------
    int64[m], int64[m], int
        The rows that have all keys and what is needed, the group of each, and how many groups there are.
    """
    complete = np.ones(table.n_rows, bool)
    for name in needed if missing else (*keys, *needed):
        column = table[name]
        complete &= ~np.isnan(column.values) if column.labels is None else column.values >= 0
    rows = np.flatnonzero(complete)
    if not keys or not len(rows):
        return rows, np.zeros(len(rows), np.int64), min(len(rows), 1)
    values = np.stack([table[name].values[rows].astype(np.float64) for name in keys], axis=1)
    combinations, group = np.unique(np.where(np.isnan(values), -np.inf, values), axis=0, return_inverse=True)
    return rows, group.reshape(-1), len(combinations)


def medians(group: Numbers, values: Reals, n: int) -> Reals:
    """Median of each group; every group has a value.

    Parameters
    ----------
    group : int64[m]
        Group of each value.
    values : float64[m]
        Numbers.
    n : int
        Number of groups.
    """
    ordered = values[np.lexsort((values, group))]
    count = np.bincount(group, minlength=n)
    end = np.cumsum(count)
    low, high = ordered[end - 1 - count // 2], ordered[end - count + count // 2]
    return np.asarray(low / 2 + high / 2)  # the sum of halves does not overflow


def _winners(figure: Figure) -> FigureTable:
    role, table = figure.roles, figure.table
    keys = [role[r] for r in ("facet", "y", "x") if r in role]
    each = summarised(table, [*keys, role["by"]], role["value"])
    rows, cell, n = grouped(each, keys, [])
    time = each[role["value"]].values[rows]
    order = np.lexsort((rows, time, cell))  # equal times: the first in the order of names
    first = np.searchsorted(cell[order], np.arange(n))
    best = order[first]
    several = np.bincount(cell, minlength=n) > 1
    second = time[order[np.minimum(first + 1, len(order) - 1)]]
    with np.errstate(all="ignore"):
        lead = np.where(several, second / time[best], np.nan)
    return each.take(rows[best]).beside(number_column("times_best_of_second", lead, ""))


def _shares(table: FigureTable, x: str, by: str | None) -> FigureTable:
    rows, group, n = grouped(table, [by] if by else [], [x])
    values = table[x].values[rows]
    order = np.lexsort((values, group))
    count = np.bincount(group, minlength=n)
    before = np.repeat(np.cumsum(count) - count, count)
    share = (np.arange(len(order)) - before + 1) / np.repeat(count, count)
    out = table.only([by, x] if by else [x]).take(rows[order])
    return out.beside(Column("share", share))
