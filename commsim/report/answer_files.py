"""Answers for programs: JSON and CSV, in a file or on standard output."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TextIO

from commsim.core.errors import InputError

STANDARD_OUTPUT = "-"
# Where the answer goes while all else that is printed is thrown away.
_answers_to: list[TextIO] = []


@contextlib.contextmanager
def only_answer(*paths: object) -> Iterator[None]:
    """Keep tables and remarks away from standard output where JSON or CSV goes there, so that a program can read it.

    Parameters
    ----------
    *paths : object
        Targets of answers: ``-``, the name of a file, or None.

    Raises
    ------
    InputError
        If several go there.
    """
    if paths.count(STANDARD_OUTPUT) > 1:
        raise InputError("--json - and --csv - cannot both have the standard output; give one of them a file")
    if STANDARD_OUTPUT not in paths:
        yield
        return
    _answers_to.append(sys.stdout)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        _answers_to.pop()


def write_answer(path: str, tree: Mapping[str, Any]) -> None:
    """Write the JSON of a command to a file, or to standard output if it is named ``-``."""
    if path != STANDARD_OUTPUT:
        from commsim.core.files.whole_files import write_json

        write_json(path, tree)
        return
    try:
        print(json.dumps(tree, indent=1, allow_nan=False), file=_standard_output())
    except ValueError as error:
        raise InputError(f"the answer cannot be written as JSON: {error}") from None


def write_rows(path: str, rows: Iterable[Mapping[str, Any]], names: Sequence[str] | None = None) -> None:
    """Write the rows of a command as CSV to a file, or to standard output if it is named ``-``.

    Parameters
    ----------
    path : str
        Path of the file.
    rows : iterable of mapping
        Rows as in the JSON. What is nested gets a column each, with a dot in its name; a list is written as JSON; what
        is not there is empty.
    names : sequence of str, optional
        Columns. Default: those of the rows, in the order in which they come first.
    """
    from commsim.core.data_frames import flat_rows, names_of

    flat = flat_rows(rows)
    names, out = names_of(flat) if names is None else names, io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_cell(row.get(name)) for name in names] for row in flat)
    if path == STANDARD_OUTPUT:
        print(out.getvalue(), end="", file=_standard_output())
        return
    from commsim.core.files.whole_files import replacing

    with replacing(path) as file:
        file.write(out.getvalue().encode())


def _cell(value: Any) -> str:
    """Write a value; true, false and lists as in JSON, numbers with all their digits."""
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def _standard_output() -> TextIO:
    return _answers_to[-1] if _answers_to else sys.stdout
