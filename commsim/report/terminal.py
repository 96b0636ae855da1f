"""Text for a terminal: tables as wide as it is, facts, and what is shown at once: lines, and a bar of progress."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from commsim.core.errors import printable
from commsim.core.limits import EXPECTED

T = TypeVar("T")
# Below it a row is printed as a list, since two columns side by side hardly fit.
MIN_WIDTH = 40
# Room that a column of words must have to be broken into lines.
MIN_WORDS = 20
# Longest value of a hidden column that is told beside its name.
MAX_TOLD = 60
GAP = "  "
# Lines of a title, and what ends one that has more.
MOST_OF_TITLE, CUT = 2, " ..."
# Parameters in a title, such as ``:machines=16,n_leaves=2`` of a network, without what follows in the sentence.
_PARAMETERS = re.compile(r":(?=\w+=)[^@\s]*[^@\s,;:]")
# Place at which a word that no line holds may be broken: white space for ``textwrap``, which no text that is shown has.
BREAK = "\x0b"


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    title: str = "",
    least: Sequence[str] = (),
    verbose: bool = False,
    is_read: bool = False,
) -> int:
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
        Columns that a narrow terminal leaves out, the least important first. Where this is not enough, words are broken
        into lines; then columns are left out from the right.
    verbose : bool
        Whether columns that do not fit are printed in further tables below, which begin with those that name a row;
        where the first two do not, rows are numbered.
    is_read : bool
        Whether a pipe is taken for a terminal, of 80 columns if ``COLUMNS`` does not say how many.

    Returns
    -------
    int
        Lines below the rows, which name columns that are left out.
    """
    columns, *rows = [[printable(cell) for cell in row] for row in (columns, *rows)]
    if title:
        print_comment(title, None if verbose else MOST_OF_TITLE)
    if not (sys.stdout.isatty() or is_read):
        _print_block(columns, rows, _widths(columns, rows))
        return 0
    width = shutil.get_terminal_size().columns
    if width < MIN_WIDTH:
        print(f"# {width} columns are too narrow for a table, which needs {MIN_WIDTH}: each row is a list")
        _print_lists(columns, rows)
        return 0
    kept = _fitting(columns, rows, least, width)
    if verbose and len(kept) < len(columns) and len({tuple(row[i] for i in kept[:2]) for row in rows}) < len(rows):
        columns, rows = ["row", *columns], [[str(n), *row] for n, row in enumerate(rows, 1)]
        kept = _fitting(columns, rows, least, width)
    _print_columns(columns, rows, kept, width)
    rest = [i for i in range(len(columns)) if i not in kept]
    if rest and not verbose:
        order = {name: place for place, name in enumerate(least)}
        rest.sort(key=lambda i: order.get(columns[i], len(least)))
        print_comment(_left_out([_hidden(columns[i], [row[i] for row in rows]) for i in rest[::-1]], width - 2))
        return 1
    naming = _naming(rows, kept) if rest else []
    while rest and verbose:
        block = [*naming, *rest]
        while len(block) > len(naming) + 1 and _total(_least_widths(columns, rows, block)) > width:
            block.pop()
        print()
        _print_columns(columns, rows, block, width)
        rest = [i for i in rest if i not in block]
    return 0


def _left_out(names: Sequence[str], room: int) -> str:
    """Return the line that names columns which are left out, the most important first: as many as it holds."""
    line, end = "-v also shows ", ", ..."
    for number, name in enumerate(names):
        more = f"{', ' if number else ''}{name}"
        if len(line + more) + len(end) * (number < len(names) - 1) > room and number:
            return line + end
        line += more
    return line


def print_comment(text: str, most: int | None = None) -> None:
    """Print a line that begins with ``#``; a terminal's next lines begin with it too, and no number is cut.

    Parameters
    ----------
    text : str
        Text.
    most : int, optional
        Lines that a terminal shows at most; what follows these is left out, and ``-v`` shows it.
    """
    text = printable(text)
    if not sys.stdout.isatty():
        print(f"# {text}", flush=True)
        return
    lines = comment_lines(text)
    if most is not None and len(lines) > most:
        lines = [*lines[: most - 1], _cut(lines[most - 1])]
    for line in lines:
        print(f"# {line}")


def _cut(line: str) -> str:
    """Return a line that says that others follow; it ends with a whole word, where it has one."""
    kept = line[: -len(CUT)]
    words = kept[: max(kept.rfind(" "), kept.rfind(","))]
    return f"{(words if words.strip() else kept).rstrip(' ,:;(')}{CUT}"


def shortened(title: str, least: Sequence[str]) -> str:
    """Return a title without as many of its least important pieces as a terminal has no lines for, then parameters."""
    for piece in (*least, *_PARAMETERS.findall(title)[::-1]):
        if len(comment_lines(title)) <= MOST_OF_TITLE:
            break
        title = title.replace(piece, "", 1)
    return title


def comment_lines(text: str) -> list[str]:
    """Return the lines on which a terminal shows a comment, without the sign; the text itself elsewhere."""
    if not sys.stdout.isatty():
        return [text]
    room = max(MIN_WORDS, shutil.get_terminal_size().columns - 2)
    return _wrapped(printable(text), room, "  ") or [""]


def print_line(text: str, is_broken: bool = True) -> None:
    """Print a line; on a terminal, a sentence that is too wide goes on below; a picture or a file's stays as it is."""
    text = printable(text)
    words = text.lstrip()
    column = words.find(GAP)  # a name before the sentence
    begin = 0 if column < 0 else column + len(words[column:]) - len(words[column:].lstrip())
    is_sentence = GAP not in words[begin:].rstrip() and words.isascii()
    if not (sys.stdout.isatty() and is_sentence and is_broken):
        print(text)
        return
    indent = "#   " if text.startswith("# ") else " " * (len(text) - len(words) + (begin or 2))
    room = shutil.get_terminal_size().columns
    print("\n".join(_wrapped(text, room, indent)) if len(text) > room else text)


def _wrapped(text: str, room: int, indent: str = "") -> list[str]:
    """Break a text into lines at spaces; a word that no line holds, such as a long topology, after its commas too."""
    longest = max(MIN_WORDS, room - len(indent))
    may_break = re.sub(rf"\S{{{longest + 1},}}", lambda word: word[0].replace(",", f",{BREAK}"), text)
    lines = textwrap.wrap(
        may_break, room, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False,
        replace_whitespace=False,
    )  # fmt: skip
    return [line.replace(BREAK, "") for line in lines]


def _fitting(columns: Sequence[str], rows: Sequence[Sequence[str]], least: Sequence[str], width: int) -> list[int]:
    """Return the numbers of the columns that fit: without those of `least` as needed, then without the last."""
    widths = _widths(columns, rows)
    kept = list(range(len(columns)))
    for name in least:
        if _total(widths[i] for i in kept) <= width:
            return kept
        kept = [i for i in kept if columns[i] != name]
    while len(kept) > 2 and _total(_least_widths(columns, rows, kept)) > width:
        kept.pop()
    return kept


def _hidden(name: str, cells: Sequence[str]) -> str:
    """Return the name of a hidden column, with its value where all rows have the same."""
    value = cells[0] if len(set(cells)) == 1 else ""
    is_told = value not in ("", "-", "N/A") and len(value) <= MAX_TOLD and "," not in value
    return f"{name}={value}" if name and is_told else name or "picture"


def _naming(rows: Sequence[Sequence[str]], kept: Sequence[int]) -> list[int]:
    """Return the first column, or the first two where that does not tell all rows apart."""
    return list(kept[: 1 if len({row[kept[0]] for row in rows}) == len(rows) else 2])


def _least_widths(columns: Sequence[str], rows: Sequence[Sequence[str]], kept: Sequence[int]) -> list[int]:
    """Return the width of each column when words are broken into lines as far as they may be."""
    least = []
    for i in kept:
        widest = max((len(row[i]) for row in rows), default=0)
        longest = max((len(word.rstrip()) for row in rows for word in _words(row[i])), default=0)
        least.append(max(len(columns[i]), min(widest, max(MIN_WORDS, longest))))
    return least


def _words(cell: str) -> list[str]:
    """Return the parts of a cell that are not broken: words, and the parts of a name that commas separate."""
    return re.findall(r"[^\s,]*,?\s*", cell)


def _lines(cell: str, width: int) -> list[str]:
    """Break a cell into lines between its words."""
    lines = [""]
    for word in _words(cell):
        if len(lines[-1] + word.rstrip()) > width:
            lines.append("")
        lines[-1] += word
    return [line.rstrip() for line in lines]


def _print_columns(columns: Sequence[str], rows: Sequence[Sequence[str]], kept: Sequence[int], width: int) -> None:
    """Print some columns; where they are too wide, words of the widest are broken into lines, at spaces and commas."""
    names, cells = [columns[i] for i in kept], [[row[i] for i in kept] for row in rows]
    widths, least = _widths(names, cells), _least_widths(columns, rows, kept)
    while (over := _total(widths) - width) > 0:
        may = [i for i in range(len(kept)) if widths[i] > least[i]]
        if not may:
            _print_lists(names, cells)
            return
        widest = max(may, key=lambda i: widths[i])
        next_to_it = max((widths[i] for i in may if i != widest), default=0)
        widths[widest] = max(least[widest], widths[widest] - over, min(next_to_it, widths[widest] - 1))
    lines: list[list[str]] = []
    for row in cells:
        broken = [
            [cell] if len(cell) <= widths[i] else [line.ljust(widths[i]) for line in _lines(cell, widths[i])]
            for i, cell in enumerate(row)
        ]
        lines += [list(line) for line in itertools.zip_longest(*broken, fillvalue="")]
    for i in range(len(kept)):  # words of a broken column begin below each other
        if any(len(row[i]) > widths[i] for row in cells):
            for line in lines:
                line[i] = line[i].ljust(widths[i])
    _print_block(names, lines, widths, bold=True)


def _print_block(
    columns: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int], bold: bool = False
) -> None:
    head = GAP.join(c.rjust(w) for c, w in zip(columns, widths, strict=True))
    print(f"\x1b[1m{head}\x1b[0m" if bold and sys.stdout.isatty() and "NO_COLOR" not in os.environ else head)
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


def tell(text: str) -> None:
    """Show a line at once, on standard error: progress, or what cannot wait for the answer."""
    show_step()  # what stands on the line of progress goes
    print(printable(text), file=sys.stderr, flush=True)


def announce(text: str) -> None:
    """Show a remark at once, on standard output: what a server says before it serves."""
    EXPECTED.is_shown = True
    print(f"# {printable(text)}", flush=True)


def show_step(text: str = "") -> None:
    """Show on one line of a terminal, on standard error, what is under way; without a text, clear the line."""
    if sys.stderr.isatty():
        print(f"\r\033[K{f'# {printable(text)}' if text else ''}", end="", file=sys.stderr, flush=True)


def progress(items: Sequence[T], what: str) -> Iterator[T]:
    """Go through `items`; if there are several, with a bar on a terminal, and elsewhere with a line now and then."""
    if len(items) < 2:
        yield from items
        return
    if not sys.stderr.isatty():
        for number, item in enumerate(items, 1):
            EXPECTED.begin(f"{what} ({number} of {len(items)})")
            yield item
        EXPECTED.begin("")
        return
    from rich.console import Console
    from rich.progress import track

    EXPECTED.is_shown = True
    show_step()  # a line that said that it takes long goes
    yield from track(items, description=what, console=Console(stderr=True), transient=True)
    EXPECTED.is_shown = False  # what follows may take long, too
