"""Tables of numbers with units and of words, from JSON rows or Arrow: what figures, pages and CSV files show."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.units import format_bandwidth, format_size, format_time, parse_bandwidth, parse_size, parse_time

# What a name ends with says its unit.
UNITS = {"_Bps": "B/s", "_B": "B", "_bytes": "B", "_s": "s"}
_NO_ENDING = {"bytes_on_wire": "B"}


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """Numbers, NaN where missing; or words, as numbers of labels, -1 where missing.

    Parameters
    ----------
    name : str
        Name of the column.
    values : float64[n] or int64[n]
        Numbers, or indices of `labels`.
    unit : str
        ``B``, ``s``, ``B/s`` or nothing.
    labels : tuple of str or None
        Labels in the order in which they are shown; None for numbers.
    """

    name: str
    values: NDArray[Any]
    unit: str = ""
    labels: tuple[str, ...] | None = None

    def take(self, rows: NDArray[Any]) -> Column:
        """Return some of the rows."""
        return Column(self.name, self.values[rows], self.unit, self.labels)

    def text(self) -> list[str]:
        """Every value as in a CSV file."""
        if self.labels is None:
            return ["" if v != v else f"{v:.17g}" if v != int(v) else f"{v:.0f}" for v in self.values.tolist()]
        return [self.labels[i] if i >= 0 else "" for i in self.values.tolist()]


@dataclass(frozen=True, slots=True, eq=False)
class FigureTable:
    """Columns of equal length, by name."""

    columns: Mapping[str, Column]
    n_rows: int

    @classmethod
    def of(cls, columns: Iterable[Column]) -> FigureTable:
        """Make a table.

        Raises
        ------
        ValueError
            If columns have different lengths.
        """
        by_name = {column.name: column for column in columns}
        lengths = {len(column.values) for column in by_name.values()}
        if len(lengths) > 1:
            raise ValueError(f"columns of one table have equal lengths, got {sorted(lengths)}")
        return cls(by_name, lengths.pop() if lengths else 0)

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def take(self, rows: NDArray[Any]) -> FigureTable:
        """Return some of the rows, by a mask or by their numbers."""
        return FigureTable.of(column.take(rows) for column in self.columns.values())

    def beside(self, *columns: Column) -> FigureTable:
        """Return the same with more columns, or others of the same name."""
        return FigureTable.of({**self.columns, **{column.name: column for column in columns}}.values())

    def only(self, names: Iterable[str]) -> FigureTable:
        """Return the columns named, in that order."""
        return FigureTable.of(self[name] for name in names)


def number_column(name: str, values: Any, unit: str | None = None) -> Column:
    """Make a column of numbers; infinity is no number.

    Parameters
    ----------
    name : str
        Name of the column.
    values : array of float
        NaN where missing.
    unit : str, optional
        Unit; by default the one that the name ends with.
    """
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


def csv_text(table: FigureTable) -> str:
    """Write a table as CSV; units are in the first line, behind the names."""
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


def format_value(value: float, unit: str) -> str:
    """Write a number of bytes, seconds, bytes per second or nothing."""
    if unit == "B":
        return format_size(value)
    if unit == "s":
        return format_time(value).replace("us", "µs")
    return format_bandwidth(value).rpartition("(")[2].removesuffix(")") if unit == "B/s" else f"{value:.10g}"


def table_of_rows(rows: Sequence[Mapping[str, Any]]) -> FigureTable:
    """Make a table of JSON objects; what is neither a number nor text nor true or false is left out."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = (_column(name, [row.get(name) for row in rows]) for name in names)
    return FigureTable.of(column for column in columns if column is not None)


def table_of_arrow(table: Any) -> FigureTable:
    """Make a table of a ``pyarrow.Table``, units from its metadata; columns of lists or structures are left out."""
    columns = (_arrow_column(field, table.column(i)) for i, field in enumerate(table.schema))
    return FigureTable.of(column for column in columns if column is not None)


def distinct(column: Column) -> np.ndarray[Any, Any]:
    """Different values of a column in ascending order, without what is missing."""
    values = column.values
    return np.unique(values[~np.isnan(values)] if column.labels is None else values[values >= 0])


def _column(name: str, values: Sequence[Any]) -> Column | None:
    present = [v for v in values if v is not None]
    if present and all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in present):
        return number_column(name, [np.nan if v is None else _number(v) for v in values])
    if all(isinstance(v, (str, bool, int, float)) for v in present):
        return word_column(name, [None if v is None else _word(v) for v in values])
    return None


def _number(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # JSON has whole numbers of any length
        return np.nan


def _word(value: str | bool | float) -> str:
    return value if isinstance(value, str) else str(value).lower()


def _arrow_column(field: Any, chunks: Any) -> Column | None:
    import pyarrow as pa

    name, unit = field.name, (field.metadata or {}).get(b"unit", b"").decode() or None

    kind = chunks.type.value_type if pa.types.is_dictionary(chunks.type) else chunks.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        plain = chunks.cast(kind) if kind != chunks.type else chunks
        return number_column(name, plain.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), unit)
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_boolean(kind)):
        return None
    coded = chunks.cast(pa.string()).combine_chunks().dictionary_encode()
    coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
    words = coded.dictionary.to_pylist()
    order = word_column(name, words)
    codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return Column(name, np.where(codes >= 0, order.values[codes] if words else -1, -1), "", order.labels)
