"""Rows of results, from JSON or Arrow, as a table; which of its columns are parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .columns import Column, Table, number_column, word_column

PREDICTED = (
    "time_s", "time_from_last_start_s", "algbw_Bps", "busbw_Bps", "bytes_on_wire", "max_link_bytes",
    "p5_s", "p95_s", "n_samples",
)  # fmt: skip
"""Columns that say what came out; the others say what was asked."""
ASKED = ("collective", "operation", "engine", "n_ranks", "size_B", "policy", "workers")
"""Columns of results that repeat what was asked, under the names that figures use."""
ASIDE = ("point", "order", "seed", "repeat", "error", "line_rate_Bps")
DERIVED = ("speedup", "size_per_rank_B", "strong_efficiency", "weak_efficiency")


def table_of_rows(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Make a table of JSON objects; what is neither a number nor text nor true or false is left out."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = (_column(name, [row.get(name) for row in rows]) for name in names)
    return Table.of(column for column in columns if column is not None)


def table_of_arrow(table: Any) -> Table:
    """Make a table of a ``pyarrow.Table``, units from its metadata; columns of lists or structures are left out."""
    found = (_arrow_column(field, table.column(i)) for i, field in enumerate(table.schema))
    return Table.of(column for column in found if column is not None)


def parameters_of(table: Table) -> list[str]:
    """Names of columns with at least two values that say what was asked, not what came out.

    In the table of a sweep these stand before the column ``error``; those that another one repeats are left out, also
    with parameters that are always the same: ``tree:n_chunks=8`` where another column says ``tree``.
    """
    names = _asked(table)
    varying = [name for name in (*ASKED, *names) if name in names and len(distinct(table[name])) > 1]
    found: list[str] = []
    for name in dict.fromkeys(varying):
        if not any(_same(table[name], table[other]) for other in found):
            found.append(name)
    return found


def constants_of(table: Table) -> list[str]:
    """Names of columns that say what was asked and have the same value in every row."""
    names = _asked(table)
    return [name for name in dict.fromkeys((*ASKED, *names)) if name in names and _is_constant(table[name])]


def _is_constant(column: Column) -> bool:
    missing = np.isnan(column.values) if column.labels is None else column.values < 0
    return not missing.any() and len(distinct(column)) == 1


def _asked(table: Table) -> list[str]:
    names = [name for name in table if name not in (*PREDICTED, *ASIDE, *DERIVED) and not name.startswith("counters")]
    if "error" in table:
        asked = set(list(table)[: list(table).index("error")]) | set(ASKED)
        names = [name for name in names if name in asked]
    return names


def _same(a: Column, b: Column) -> bool:
    if a.labels is None or b.labels is None:
        return a.labels is b.labels and np.array_equal(a.values, b.values, equal_nan=True)
    pairs = set(zip(a.text(), b.text(), strict=True))
    if any(long.partition(":")[0] != short for long, short in pairs):
        return False
    return len({long for long, _ in pairs}) == len({short for _, short in pairs}) == len(pairs)


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
