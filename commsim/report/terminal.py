"""Text for a terminal: tables as wide as it is, facts, and a bar of progress."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from commsim.core.errors import printable
from commsim.limits import EXPECTED

T = TypeVar("T")
# Below it a row is printed as a list, since two columns side by side hardly fit.
MIN_WIDTH = 40
# Room that a column of words must have to be broken into lines.
MIN_WORDS = 20
GAP = "  "


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "", least: Sequence[str] = ()
) -> None:
    """Print rows of text under right-aligned columns; on a terminal, as it is wide, and no cell is ever cut.

    Parameters
    ----------
    columns : sequence of str
        Their names.
    rows : sequence of sequence of str
        A cell for each column.
    title : str
        Printed above as a comment, as in nccl-tests.
    least : sequence of str
        Columns that a narrow terminal leaves out, the least important first. What still does not fit is broken into
        lines of words, or into several tables that begin with the first column.
    """
    columns, *rows = [[printable(cell) for cell in row] for row in (columns, *rows)]
    if title:
        print(f"# {printable(title)}", flush=True)
    if not sys.stdout.isatty():
        _print_block(columns, rows, _widths(columns, rows))
        return
    width = shutil.get_terminal_size().columns
    if width < MIN_WIDTH:
        print(f"# {width} columns are too narrow for a table, which needs {MIN_WIDTH}: each row is a list")
        _print_lists(columns, rows)
        return
    columns, rows, left_out = _without_least(columns, rows, least, width)
    _print_fitting(columns, rows, width)
    if left_out:
        print(f"# hidden to fit {width} columns: {', '.join(left_out)}; a wider terminal, a pipe or --json has them")


def _without_least(
    columns: list[str], rows: list[list[str]], least: Sequence[str], width: int
) -> tuple[list[str], list[list[str]], list[str]]:
    """Leave out columns until the rest fits; return what stays, and the names of the others."""
    left_out: list[str] = []
    widths = _widths(columns, rows)
    kept = list(range(len(columns)))
    for name in least:
        if _total(widths[i] for i in kept) <= width:
            break
        if any(columns[i] == name for i in kept):
            kept = [i for i in kept if columns[i] != name]
            left_out.append(name)
    return [columns[i] for i in kept], [[row[i] for i in kept] for row in rows], left_out


def _print_fitting(columns: list[str], rows: list[list[str]], width: int) -> None:
    """Print a table that has to have all its columns."""
    widths = _widths(columns, rows)
    # Words have to be in the way, not numbers: only the widest column is broken, and only at spaces.
    widest = max(range(len(columns)), key=lambda i: widths[i])
    room = widths[widest] - (_total(widths) - width)
    longest = max((len(word) for row in rows for word in row[widest].split()), default=0)
    if room < widths[widest] and room >= max(MIN_WORDS, longest, len(columns[widest])):
        broken: list[list[str]] = []
        for row in rows:
            lines = textwrap.wrap(row[widest], room, break_on_hyphens=False) or [""]
            broken += [[*(row if i == 0 else [""] * len(row))] for i in range(len(lines))]
            for one, line in zip(broken[-len(lines) :], lines, strict=True):
                one[widest] = line.ljust(room)
        widths[widest] = room
        _print_block(columns, broken, widths, bold=True)
        return
    first, others = 0, list(range(1, len(columns)))
    while True:
        block = [first]
        while others and (len(block) == 1 or _total(widths[i] for i in (*block, others[0])) <= width):
            block.append(others.pop(0))
        if _total(widths[i] for i in block) > width:  # a pair is too wide
            _print_lists([columns[i] for i in block], [[row[i] for i in block] for row in rows])
        else:
            shown = [[row[i] for i in block] for row in rows]
            _print_block([columns[i] for i in block], shown, [widths[i] for i in block], bold=True)
        if not others:
            return
        print()


def _print_block(
    columns: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int], bold: bool = False
) -> None:
    head = GAP.join(c.rjust(w) for c, w in zip(columns, widths, strict=True))
    print(f"\x1b[1m{head}\x1b[0m" if bold and "NO_COLOR" not in os.environ else head)
    for row in rows:
        print(GAP.join(c.rjust(w) for c, w in zip(row, widths, strict=True)).rstrip())


def _print_lists(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print each row as names and values, one to a line."""
    for i, row in enumerate(rows):
        if i:
            print()
        print_facts(dict(zip(columns, row, strict=True)))


def _widths(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(len(c), *(len(r[i]) for r in rows), 0) for i, c in enumerate(columns)]


def _total(widths: Iterable[int]) -> int:
    """Width of a line, gaps included."""
    each = list(widths)
    return sum(each) + len(GAP) * (len(each) - 1)


def print_facts(facts: Mapping[str, str]) -> None:
    """Print names and values, values aligned; on a terminal a value that is too wide goes on below itself."""
    indent = max((len(name) for name in facts), default=0) + len(GAP)
    room = shutil.get_terminal_size().columns - indent if sys.stdout.isatty() else 0
    for name, value in facts.items():
        text = printable(value)
        if MIN_WORDS <= room < len(text):
            # a name such as star:n_hosts=8 stays in one piece, which can be copied
            text = f"\n{' ' * indent}".join(textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False))
        print(f"{name.ljust(indent)}{text}")


def progress(items: Sequence[T], what: str) -> Iterator[T]:
    """Go through `items`, with a bar on standard error when that is a terminal and there is more than one."""
    if len(items) < 2 or not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import track

    EXPECTED.is_shown = True
    yield from track(items, description=what, console=Console(stderr=True), transient=True)
