"""Tables and progress: rich on a terminal, plain text in a pipe; results as JSON in a file."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from commsim.core.errors import printable
from commsim.files.whole_files import write_json

T = TypeVar("T")


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """Print rows of text under right-aligned columns.

    Parameters
    ----------
    columns : sequence of str
        Their names.
    rows : sequence of sequence of str
        A cell for each column.
    title : str
        Printed above as a comment, as in nccl-tests.
    """
    columns, *rows = [[printable(cell) for cell in row] for row in (columns, *rows)]
    if title:
        print(f"# {printable(title)}", flush=True)
    if sys.stdout.isatty():
        _print_rich(columns, rows)
        return
    widths = [max(len(c), *(len(r[i]) for r in rows), 0) for i, c in enumerate(columns)]
    print("  ".join(c.rjust(w) for c, w in zip(columns, widths, strict=True)))
    for row in rows:
        print("  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)))


def print_remarks(remarks: Iterable[str]) -> None:
    """Print remarks as comments, one to a line."""
    for remark in remarks:
        print(f"# {printable(remark)}")


def print_facts(facts: Mapping[str, str]) -> None:
    """Print names and values, one to a line, values aligned."""
    width = max((len(name) for name in facts), default=0)
    for name, value in facts.items():
        print(f"{name.ljust(width)}  {printable(value)}")


def progress(items: Sequence[T], what: str) -> Iterator[T]:
    """Go through `items`, with a bar on standard error when that is a terminal and there is more than one."""
    if len(items) < 2 or not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(items, description=what, console=Console(stderr=True), transient=True)


def write_results(path: str, config: Mapping[str, Any], results: Iterable[Mapping[str, Any]], **more: object) -> None:
    """Write the JSON of a command: schema 1, its configuration, one object per row.

    Parameters
    ----------
    path : str
        Of the file.
    config : mapping
        The flags; the version is added.
    results : iterable of mapping
        The rows.
    **more : object
        Further keys of the top level.
    """
    from commsim import __version__

    tree = {"schema": 1, "config": {"version": __version__, **config}, "results": list(results), **more}
    write_json(path, tree)


def _print_rich(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    Console(markup=False, emoji=False).print(table)
