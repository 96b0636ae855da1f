"""Which rows of a study are shown (``--where``), and under which names (short ones, ``--rename``)."""

from __future__ import annotations

import fnmatch
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.units import parse_bandwidth, parse_size, parse_time
from commsim.pages.figure_tables import Column, FigureTable, distinct, format_value

Names = Mapping[str, Mapping[str, str]]

COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt,
}  # fmt: skip
MAX_LISTED = 8


def _without_unit(name: str) -> str:
    return re.sub(r"_(Bps|B|s)$", "", name)


# What a column may be called, the first that fits counts: by its name, without its unit, without its table.
NAMES: tuple[Callable[[str], Sequence[str]], ...] = (
    lambda name: (name,),
    lambda name: (_without_unit(name), _without_unit(name).removeprefix("n_")),
    lambda name: (name.rpartition(".")[2], _without_unit(name).rpartition(".")[2]),
)


def matching_rows(rows: FigureTable, conditions: Iterable[str]) -> FigureTable:
    """Return the rows that meet every condition.

    Parameters
    ----------
    rows : FigureTable
        Results.
    conditions : iterable of str
        ``COLUMN=VALUE[,VALUE...]``, ``COLUMN!=...``, ``COLUMN<VALUE`` and such. A column may be named without its unit
        or its table. Words may have ``*``; numbers may have a unit.

    Raises
    ------
    InputError
        If a column is unknown, a value cannot be read, or no row is left.
    """
    for text in separated(conditions):
        column, sign, value = _condition(rows, text)
        meets = _meets(column, sign, value, text)
        if not meets.any():
            raise InputError(f"--where {text}: no row matches; {column.name} has {_listed(column)}")
        rows = rows.take(np.flatnonzero(meets))
    return rows


def short_names(rows: FigureTable, parameters: Sequence[str]) -> tuple[dict[str, dict[str, str]], list[str]]:
    """Name specifications by what differs among them: ``n_leaves=4`` for ``leaf_spine:n_leaves=4,n_spines=2``.

    Parameters
    ----------
    rows : FigureTable
        Results.
    parameters : sequence of str
        Columns that vary.

    Returns
    -------
    dict, list of str
        Of each column that has specifications, the short name of each; and what all of a column have.
    """
    names, lines = dict[str, dict[str, str]](), list[str]()
    for name in parameters:
        column = rows[name]
        used = [(column.labels or ())[int(i)] for i in distinct(column)] if column.labels else []
        short, common = _without_common(used)
        if len(set(short)) == len(used) and short != used:
            names[name] = dict(zip(used, short, strict=True))
            lines.append(f"{name}: all have {common}")
    return names, lines


def renamed(
    rows: FigureTable, columns: Iterable[str], names: Names, renames: Iterable[str]
) -> dict[str, dict[str, str]]:
    """Add names of the user's own to short ones.

    Parameters
    ----------
    rows : FigureTable
        Results.
    columns : iterable of str
        Those whose words may be renamed.
    names : mapping of str to mapping
        Names by column and value, as :func:`short_names` returns them.
    renames : iterable of str
        ``OLD=NEW``, where OLD is a word of any column, in full or short, or a collective as it was asked for.

    Raises
    ------
    InputError
        If OLD is not among the words, or two words would have one name.
    """
    out = {name: dict(of) for name, of in names.items()}
    words = {name: list(rows[name].labels or ()) for name in columns if name in rows and rows[name].labels}
    specs = set(zip(rows["collective"].text(), rows["asked"].text(), strict=True)) if "asked" in rows else set()
    for text in renames:
        old, equals, new = text.rpartition("=")
        if not (equals and old and new):
            raise InputError(f"--rename must be OLD=NEW, such as ring_all_reduce=ring, got {text!r}")
        known = False
        for name, labels in words.items():
            for label in labels:
                if old in (label, names.get(name, {}).get(label)) or (name == "collective" and (label, old) in specs):
                    out.setdefault(name, {})[label], known = new, True
        if not known:
            listed = [names.get(name, {}).get(label, label) for name in words for label in words[name]]
            raise InputError(f"--rename {text}: no {old!r}; known: {_words_text(listed)}")
    for name, of in out.items():
        shown = [of.get(label, label) for label in words[name]]
        if len(set(shown)) < len(shown):
            raise InputError(f"--rename: two values of {name} would have one name")
    return out


def with_shown_words(table: FigureTable, names: Names) -> FigureTable:
    """Return the same rows with the words that are shown for those of the data."""
    changed = [
        Column(name, table[name].values, table[name].unit, tuple(of.get(label, label) for label in labels))
        for name, of in names.items()
        if name in table and (labels := table[name].labels) is not None
    ]
    return table.beside(*changed) if changed else table


def separated(texts: Iterable[str]) -> list[str]:
    """Return the conditions of ``--where``: one text may have several, as in ``n_ranks=8,size=1MiB``.

    A specification such as ``star:n_hosts=4,latency=1us`` has commas and signs of its own, and stays whole.
    """
    split = re.compile(r",(?=\s*[\w.]+\s*(?:!=|<=|>=|=|<|>))")
    return [one for text in texts for one in ([text] if ":" in text else split.split(text))]


def _condition(rows: FigureTable, text: str) -> tuple[Column, str, str]:
    match = re.fullmatch(r"([^=<>!]+)(!=|<=|>=|=|<|>)(.+)", text)
    name, sign, value = (part.strip() for part in match.groups()) if match else ("", "", "")
    if not (name and value):
        raise InputError(f"--where must be COLUMN=VALUE[,VALUE...] or COLUMN<VALUE, such as size=1MiB, got {text!r}")
    same = next((matches for names_of in NAMES if (matches := [row for row in rows if name in names_of(row)])), [])
    if len(same) != 1:
        what = f"{' and '.join(same)} are called so" if same else "no such column"
        raise InputError(f"--where {text}: {what}; columns: {', '.join(rows)}")
    return rows[same[0]], sign, value


def _meets(column: Column, sign: str, value: str, text: str) -> NDArray[np.bool_]:
    if column.labels is not None:
        if sign in COMPARED:
            raise InputError(f"--where {text}: {column.name} has words, which are compared by = and !=")
        patterns = [value, *value.split(",")]  # a specification has commas of its own
        like = [any(fnmatch.fnmatchcase(label, pattern) for pattern in patterns) for label in column.labels]
        among = np.array([*like, False])[column.values]
    else:
        numbers = [_number(one, column.unit, text) for one in value.split(",")]
        if sign in COMPARED:
            if len(numbers) > 1:
                raise InputError(f"--where {text}: {sign} compares with one value")
            return np.asarray(COMPARED[sign](column.values, numbers[0]))  # what is missing is never less or more
        among = np.isclose(column.values[:, None], numbers, rtol=1e-9, atol=0).any(axis=1)
    return np.asarray(among if sign == "=" else ~among)


def _number(value: str, unit: str, text: str) -> float:
    try:
        return float(value)
    except ValueError:
        pass
    parse = {"B": parse_size, "s": parse_time, "B/s": parse_bandwidth}.get(unit)
    try:
        if parse is not None:
            return parse(value)
    except InputError:
        pass
    raise InputError(f"--where {text}: {value!r} is no number{f' of {unit}' if unit else ''}")


def _listed(column: Column) -> str:
    if column.labels is not None:
        return _words_text(column.labels[int(i)] for i in distinct(column))
    return _words_text(format_value(one, column.unit) for one in distinct(column).tolist())


def _words_text(words: Iterable[str]) -> str:
    every = list(words)
    more = f" and {len(every) - MAX_LISTED} more" if len(every) > MAX_LISTED else ""
    return f"{', '.join(every[:MAX_LISTED])}{more}" if every else "no value"


def _without_common(specs: Sequence[str]) -> tuple[list[str], str]:
    """Leave out what all specifications have: parameters, and the name where nothing but parameters differs."""
    parts = [_split(spec) for spec in specs]
    if len(specs) < 2 or not all(arguments for _, arguments in parts):
        return list(specs), ""
    common = [one for one in parts[0][1] if all(one in arguments for _, arguments in parts)]
    same_name = len({name for name, _ in parts}) == 1
    out = []
    for name, arguments in parts:
        rest = ",".join(argument for argument in arguments if argument not in common)
        out.append((rest or name) if same_name else f"{name}:{rest}" if rest else name)
    prefix = f"{parts[0][0]}:" if same_name else ""
    return out, (prefix + ",".join(common)).rstrip(":")


def number_in_names(specs: Sequence[str]) -> tuple[str, list[float]] | None:
    """Return the one parameter in which specifications of one name differ, and its numbers; None if it is not so."""
    parts = [_split(spec) for spec in specs]
    arguments = [dict(argument.split("=", 1) for argument in arguments) for _, arguments in parts]
    names = {name for arguments in arguments for name in arguments}
    varying = [name for name in names if len({arguments.get(name) for arguments in arguments}) > 1]
    if len({name for name, _ in parts}) > 1 or len(varying) != 1:
        return None
    try:
        return varying[0], [float(arguments[varying[0]]) for arguments in arguments]
    except (KeyError, ValueError):  # it is not given everywhere, or a word
        return None


def _split(spec: str) -> tuple[str, list[str]]:
    """Split ``name:key=value,key=value``; a comma without a key after it belongs to the value."""
    name, _, rest = spec.partition(":")
    return name, re.split(r",(?=[^,=]+=)", rest) if "=" in rest else []
