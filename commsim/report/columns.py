"""Tables of numbers with units and of words: what figures are made of, and what pages, plots and CSV files show."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.units import parse_bandwidth, parse_size, parse_time

UNITS = {"_Bps": "B/s", "_B": "B", "_bytes": "B", "_s": "s"}
"""What a name ends with says its unit."""
_NO_ENDING = {"bytes_on_wire": "B"}


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """Numbers, NaN where there is none; or words, as numbers of labels, -1 where there is none.

    Parameters
    ----------
    name : str
        Of the column.
    values : float64[n] or int64[n]
        Numbers, or indices of `labels`.
    unit : str
        ``B``, ``s``, ``B/s`` or nothing.
    labels : tuple of str or None
        In the order in which they are shown; None for numbers.
    """

    name: str
    values: NDArray[Any]
    unit: str = ""
    labels: tuple[str, ...] | None = None

    def take(self, rows: NDArray[Any]) -> Column:
        """Return some of the rows."""
        return Column(self.name, self.values[rows], self.unit, self.labels)

    def text(self) -> list[str]:
        """Every value as it stands in a CSV file."""
        if self.labels is None:
            return ["" if v != v else f"{v:.17g}" if v != int(v) else f"{v:.0f}" for v in self.values.tolist()]
        return [self.labels[i] if i >= 0 else "" for i in self.values.tolist()]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Columns of equal length, by name."""

    columns: Mapping[str, Column]
    n_rows: int

    @classmethod
    def of(cls, columns: Iterable[Column]) -> Table:
        """Make a table.

        Raises
        ------
        ValueError
            If columns have different lengths.
        """
        named = {column.name: column for column in columns}
        lengths = {len(column.values) for column in named.values()}
        if len(lengths) > 1:
            raise ValueError(f"columns of one table have equal lengths, got {sorted(lengths)}")
        return cls(named, lengths.pop() if lengths else 0)

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def take(self, rows: NDArray[Any]) -> Table:
        """Return some of the rows, by a mask or by their numbers."""
        return Table.of(column.take(rows) for column in self.columns.values())

    def beside(self, *columns: Column) -> Table:
        """Return the same with more columns, or others of the same name."""
        return Table.of({**self.columns, **{column.name: column for column in columns}}.values())

    def only(self, names: Iterable[str]) -> Table:
        """Return the columns named, in that order."""
        return Table.of(self[name] for name in names)


def number_column(name: str, values: Any, unit: str | None = None) -> Column:
    """Make a column of numbers; the unit is that which the name ends with unless it is given. Infinity is no number."""
    numbers = np.asarray(values, np.float64)
    numbers = np.where(np.isfinite(numbers), numbers, np.nan)
    return Column(name, numbers, unit_of(name) if unit is None else unit)


def word_column(name: str, words: Sequence[str | None]) -> Column:
    """Make a column of words, in natural order: quantities by what they say, the others by the alphabet."""
    labels = in_order({word for word in words if word is not None})
    number = {label: i for i, label in enumerate(labels)}
    values = np.array([-1 if word is None else number[word] for word in words], np.int64)
    return Column(name, values, "", tuple(labels))


def unit_of(name: str) -> str:
    """Return the unit that the name of a column of numbers says."""
    return _NO_ENDING.get(name) or next((unit for end, unit in UNITS.items() if name.endswith(end)), "")


def in_order(words: Iterable[str]) -> list[str]:
    """Sort words; where all are quantities of one kind, such as 25Gbps and 100Gbps, by their size."""
    names = sorted(words)
    for parse in (float, parse_bandwidth, parse_size, parse_time):
        keys = [_quantity(parse, name) for name in names]
        if all(key is not None for key in keys):
            return [name for _, name in sorted(zip(keys, names, strict=True), key=lambda pair: (pair[0] or 0, pair[1]))]
    return names


def csv_text(table: Table) -> str:
    """Write a table as CSV; units stand in the first line, behind the names."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([f"{c.name} [{c.unit}]" if c.unit else c.name for c in table.columns.values()])
    writer.writerows(zip(*(column.text() for column in table.columns.values()), strict=True))
    return out.getvalue()


def _quantity(parse: Callable[[str], float], text: str) -> float | None:
    try:
        return parse(text)
    except (InputError, ValueError):
        return None
