"""Which algorithm each row is of, with the parameters that tell it from others; curves that mix no algorithms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from commsim.core.spec import with_parameter
from commsim.pages.figure_tables import FigureTable, format_value, word_column

ALGORITHM = "collective"
# Columns of a sweep that begin like those of the algorithm, and say what was asked of it.
_TASK = ("collective.ranks", "collective.size")
# Column that has a value for each pair of a value of `--by` and an algorithm.
CURVE = "curve"

Names = Mapping[str, Mapping[str, str]]


def is_algorithm(name: str) -> bool:
    """Whether a column names the algorithm or its parameters rather than the task."""
    return name == ALGORITHM or name.startswith(f"{ALGORITHM}.")


def varies_within(rows: FigureTable, name: str, same: Sequence[str]) -> bool:
    """Whether a column has several values among rows that have the same ones in others."""
    values = np.column_stack([np.nan_to_num(rows[column].values, nan=-np.inf) for column in (*same, name)])
    return len(np.unique(values, axis=0)) > len(np.unique(values[:, :-1], axis=0))


def with_several_specs(rows: Sequence[Mapping[str, Any]]) -> set[Any]:
    """Return the collectives that rows were asked for with several parameters."""
    pairs = {(row.get(ALGORITHM), row.get("asked")) for row in rows}
    return {name for name, n in Counter(name for name, _ in pairs).items() if n > 1}


def with_specs(rows: Sequence[Mapping[str, Any]], config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Name rows as the user did, where one collective was run with several parameters.

    Parameters
    ----------
    rows : sequence of mapping
        Rows as ``--json`` writes them.
    config : mapping
        The flags of the command.
    """
    if several := with_several_specs(rows):
        return [
            {**row} | ({"collective": row.get("asked") or name} if (name := row.get("collective")) in several else {})
            for row in rows
        ]
    specs = config.get("collective")
    plain = isinstance(specs, list) and all(isinstance(s, str) for s in specs) and not config.get("operation")
    rows_with_specs = [dict(row) for row in rows]
    if not plain or not specs or len({s.partition(":")[0] for s in specs}) == len(specs) or len(rows) % len(specs):
        return rows_with_specs
    each = len(rows) // len(specs)
    return [row | {"collective": specs[i // each]} for i, row in enumerate(rows_with_specs)]


def with_algorithms(rows: FigureTable) -> FigureTable:
    """Name the parameters that tell the rows of one algorithm apart, as ``tree:n_chunks=8``, where they vary.

    Otherwise a curve, or a field of a map, would be the median over algorithms that differ.

    Parameters
    ----------
    rows : FigureTable
        Results; what was asked of a sweep's algorithms is in the columns ``collective.*``.
    """
    if ALGORITHM not in rows or rows[ALGORITHM].labels is None:
        return rows
    for name in rows:
        if name in (ALGORITHM, *_TASK) or not is_algorithm(name) or not varies_within(rows, name, (ALGORITHM,)):
            continue
        algorithm, words = rows[ALGORITHM].text(), rows[name].text()
        values: dict[str, set[str]] = {}
        for one, word in zip(algorithm, words, strict=True):
            values.setdefault(one, set()).add(word)
        specs = [
            _with_parameter(one, name.partition(".")[2], word) if word and len(values[one]) > 1 else one
            for one, word in zip(algorithm, words, strict=True)
        ]
        rows = rows.beside(word_column(ALGORITHM, [one or None for one in specs]))
    return rows


def _with_parameter(algorithm: str, parameter: str, value: str) -> str:
    """Add a parameter to an algorithm's name; a name with all its parameters stands for it."""
    if parameter == "name":
        return value
    return with_parameter(algorithm, f"{parameter}={value}")


def with_curves(rows: FigureTable, by: str) -> FigureTable:
    """Add the column of pairs of a value and an algorithm, where a value has several algorithms.

    Parameters
    ----------
    rows : FigureTable
        Results.
    by : str
        Column whose values get a colour each; empty for that of the algorithms.
    """
    if by in ("", ALGORITHM) or ALGORITHM not in rows or not varies_within(rows, ALGORITHM, (by,)):
        return rows
    return rows.beside(word_column(CURVE, _paired(rows, by, {})))


def curve_names(rows: FigureTable, by: str, names: Names) -> dict[str, str]:
    """Return the names under which pairs of a value and an algorithm are shown, where others are than in the data.

    Parameters
    ----------
    rows : FigureTable
        Results, with that column.
    by : str
        Column of the values.
    names : mapping of str to mapping
        Words that are shown, by column and value.
    """
    pairs = zip(rows[CURVE].text(), _paired(rows, by, names), strict=True)
    return {data: shown for data, shown in dict(pairs).items() if data != shown}


def _paired(rows: FigureTable, by: str, names: Names) -> list[str]:
    values, algorithms = _legend_words(rows, by, names), _legend_words(rows, ALGORITHM, names)
    return [", ".join(filter(None, pair)) for pair in zip(values, algorithms, strict=True)]


def _legend_words(rows: FigureTable, name: str, names: Names) -> Iterable[str]:
    """Return the words of a column as a legend has them."""
    column, words = rows[name], names.get(name, {})
    if column.labels is not None:
        return [words.get(word, word) for word in column.text()]
    bare = "" if column.unit else f"{name.rpartition('.')[2].removeprefix('n_')}="
    return ["" if value != value else bare + format_value(value, column.unit) for value in column.values.tolist()]
