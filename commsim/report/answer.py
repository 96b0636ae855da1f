"""The answer of a verb: tables, facts and remarks to be shown, and rows for programs; and what shows it.

A verb returns an :class:`Answer` and prints nothing; :func:`show` prints it for a terminal, and writes JSON and CSV.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, overload

from commsim.core.limits import EXPECTED
from commsim.core.remark import Remark, distinct

from .terminal import (
    MOST_OF_TITLE,
    comment_lines,
    print_comment,
    print_facts,
    print_line,
    print_table,
    shortened,
    show_step,
)

Cells: TypeAlias = Sequence[str]
__all__ = [
    "Answer", "Facts", "LazyRows", "Lines", "Part", "Remarks", "Table", "comments", "keep", "largest", "remarks",
    "show", "tree_of", "without",
]  # fmt: skip
# Code of a fault that a file of the network has: whoever reads the number must know it.
FAULT = "port-faults"
# Remarks that a short answer shows; lines of text of an answer on a terminal, with those of its title.
MOST_SHOWN = 3
MOST_OF_TEXT = MOST_SHOWN + 2


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under columns.

    Parameters
    ----------
    columns : sequence of str
        Names, each with its unit in brackets, such as ``time(us)``.
    rows : sequence of sequence of str
        Cells, one for each column.
    title : str
        Comment above the table, as in nccl-tests.
    least : sequence of str
        Columns that a narrow terminal leaves out, the least important first.
    title_least : callable
        Function to the pieces of the title that a narrow terminal leaves out, the least important first.
    is_read : bool
        Whether it is of sentences for people, which are broken into lines of 80 columns in a pipe, too.
    whole : bool
        Whether a narrow terminal shows all columns, in tables below each other: what was asked for by name.
    only_verbose : bool
        Whether only ``-v`` shows it.
    """

    columns: Sequence[str]
    rows: Sequence[Cells]
    title: str = ""
    least: Sequence[str] = ()
    title_least: Callable[[], Sequence[str]] = tuple
    is_read: bool = False
    whole: bool = False
    only_verbose: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and values, one to a line.

    Parameters
    ----------
    values : mapping of str to str
        Values by name.
    """

    values: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Lines:
    """Text that is shown as it is.

    Parameters
    ----------
    texts : sequence of str
        Lines.
    is_file : bool
        Whether they are a file's, which a terminal must not break.
    is_bounded : bool
        Whether a terminal shows only as many as an answer has lines of text left, the first always; ``-v`` shows all.
    is_repeated : bool
        Whether they say again what a table has; then a terminal shows them with ``-v`` only.
    """

    texts: Sequence[str]
    is_file: bool = False
    is_bounded: bool = False
    is_repeated: bool = False


@dataclass(frozen=True, slots=True)
class Remarks:
    """What was derived, assumed, chosen or left out: all in the JSON and with ``-v``, else those of the largest effect.

    Parameters
    ----------
    items : sequence of Remark
        Remarks.
    """

    items: Sequence[Remark]


Part: TypeAlias = Table | Facts | Lines | Remarks


@dataclass(frozen=True, slots=True)
class Answer:
    """What a verb found.

    Parameters
    ----------
    parts : sequence of Part
        What people see, in order.
    rows : sequence of mapping, optional
        Results for programs, one object for each row: ``results`` of the JSON, and the lines of the CSV. None where the
        verb has none.
    flags : mapping, optional
        Configuration that the JSON repeats. Default: all flags of the verb.
    more : mapping
        Further keys of the JSON, beside the results; a value that is a function is called when the JSON is written.
    key : str, optional
        Name of the rows in the JSON; None where `more` has what they hold, and only the CSV is made of them.
    lines : sequence of mapping, optional
        Rows of the CSV, where they are others than those of the JSON.
    code : int
        Exit code.
    complete : callable, optional
        What takes long beside the parts, and is done when they are shown: returns the whole answer, whose parts begin
        with the same ones.
    """

    parts: Sequence[Part] = ()
    rows: Sequence[Mapping[str, Any]] | None = None
    flags: Mapping[str, Any] | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    key: str | None = "results"
    lines: Sequence[Mapping[str, Any]] | None = None
    code: int = 0
    complete: Callable[[], Answer] | None = None

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """All remarks, each once, in the order in which ``-v`` shows them."""
        notes = (remark for part in self.parts if isinstance(part, Remarks) for remark in part.items)
        return tuple(dict.fromkeys(notes))


@dataclass(frozen=True, slots=True, eq=False)
class LazyRows(Sequence[Mapping[str, Any]]):
    """Rows for programs, each made when it is read: a terminal shows none.

    Parameters
    ----------
    make : callable
        Function from an item to its row.
    items : sequence
        What the rows are made of.
    """

    make: Callable[[Any], Mapping[str, Any]]
    items: Sequence[Any]

    def __len__(self) -> int:
        return len(self.items)

    @overload
    def __getitem__(self, at: int) -> Mapping[str, Any]: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Mapping[str, Any]]: ...
    def __getitem__(self, at: int | slice) -> Mapping[str, Any] | Sequence[Mapping[str, Any]]:
        return LazyRows(self.make, self.items[at]) if isinstance(at, slice) else self.make(self.items[at])


def remarks(notes: Iterable[Remark]) -> list[Part]:
    """Return remarks as a part, or nothing where nothing is to be said."""
    known = tuple(dict.fromkeys(notes))
    return [Remarks(known)] if known else []


def without(parts: Iterable[Part], code: str) -> list[Part]:
    """Return parts without the remarks of one code."""
    kept: list[Part] = []
    for part in parts:
        kept += remarks(one for one in part.items if one.code != code) if isinstance(part, Remarks) else [part]
    return kept


def comments(texts: Iterable[str], *, is_bounded: bool = False) -> list[Part]:
    """Return what was asked for as lines of comments, which are no remarks; `is_bounded` as in :class:`Lines`."""
    lines = [f"# {text}" for text in texts]
    return [Lines(lines, is_bounded=is_bounded)] if lines else []


def show(
    answer: Answer, flags: Mapping[str, Any], json: str | None = None, csv: str | None = None, verbose: bool = False
) -> int:
    """Print an answer, and write its rows where they are asked for.

    Parameters
    ----------
    answer : Answer
        What a verb found.
    flags : mapping of str to value
        Flags of the verb, which the JSON repeats unless the answer has its own.
    json, csv : str, optional
        Files for the rows; ``-`` is the standard output.
    verbose : bool
        Whether a narrow terminal shows all columns and remarks too.

    Returns
    -------
    int
        Exit code.
    """
    EXPECTED.is_shown = True  # the line of progress ends
    show_step()
    n_lines = _print_all(answer.parts, verbose)
    if answer.complete is not None:
        answer = _completed(answer, answer.complete, verbose)
    if not verbose and (notes := answer.remarks):
        _print_largest(notes, n_lines)
    if answer.rows is None or not (json or csv):
        return answer.code
    from .answer_files import write_answer, write_rows

    if json:
        write_answer(json, tree_of(answer, flags))
    if csv:
        write_rows(csv, answer.rows if answer.lines is None else answer.lines)
    return answer.code


def _completed(answer: Answer, complete: Callable[[], Answer], verbose: bool) -> Answer:
    """Print what takes long, with a line of progress, after what is there."""
    sys.stdout.flush()
    EXPECTED.is_shown = False
    whole = complete()
    EXPECTED.is_shown = True
    show_step()
    _print_all(whole.parts[len(answer.parts) :], verbose)
    return whole


def keep(answer: Answer, flags: Mapping[str, Any], json: str) -> None:
    """Write the JSON of an answer that is not complete to the file, so that it is there if the rest never comes."""
    from .answer_files import STANDARD_OUTPUT, write_answer

    if json != STANDARD_OUTPUT:
        write_answer(json, tree_of(answer, flags))


def tree_of(answer: Answer, flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON of an answer: schema 1, the configuration, the results, what goes with them, and all remarks."""
    from commsim.version import __version__

    config = {"version": __version__, **(flags if answer.flags is None else answer.flags)}
    rows = {} if answer.key is None else {answer.key: list(answer.rows or ())}
    return {
        "schema": 1,
        "config": config,
        **rows,
        **{name: value() if callable(value) else value for name, value in answer.more.items()},
        "remarks": [remark.tree() for remark in answer.remarks],
    }


def largest(remarks: Iterable[Remark]) -> list[Remark]:
    """Return the remarks that a short answer shows, those of the largest effect first, at most ``MOST_SHOWN``."""
    shown = [remark for remark in remarks if remark.is_shown]
    return sorted(distinct(shown), key=lambda one: -one.size)[:MOST_SHOWN] if shown else []


def _print_largest(remarks: Sequence[Remark], n_lines: int) -> None:
    """Print the remarks of the largest effect, on as many lines as there are left; a fault of a file always."""
    for number, remark in enumerate(largest(remarks)):
        n_lines += len(comment_lines(remark.text))
        if n_lines > MOST_SHOWN and (number or remark.code != FAULT):
            return
        print_comment(remark.text)


def _print_all(parts: Sequence[Part], verbose: bool) -> int:
    """Print parts; return how many lines stand below the tables that are no part of them."""
    n_lines, n_titles, least, is_short = 0, 1, MOST_SHOWN - 1, sys.stdout.isatty() and not verbose
    for part in parts:
        match part:
            case Table(only_verbose=True) if not verbose:
                continue
            case Table():
                title = shortened(part.title, part.title_least()) if is_short else part.title
                n_titles = len(comment_lines(title)[:MOST_OF_TITLE]) if is_short else 1
                n_lines += print_table(part.columns, part.rows, title, part.least, verbose or part.whole, part.is_read)
            case Facts():
                print_facts(part.values)
            case Lines(is_repeated=True) if is_short:
                continue
            case Lines():
                texts, n = part.texts, sum(line.startswith("# ") for line in part.texts) * (not part.is_file)
                if part.is_bounded and is_short:  # what was asked for takes all the room there is
                    texts, n = _fitting(texts, MOST_OF_TEXT - n_titles - n_lines)
                    least = MOST_SHOWN
                n_lines += n
                for line in texts:
                    print_line(line, is_broken=not part.is_file)
            case Remarks() if verbose:
                for remark in part.items:
                    print_comment(str(remark))
    return min(n_lines, least)


def _fitting(texts: Sequence[str], most: int) -> tuple[Sequence[str], int]:
    """Return the first comments that take at most so many lines of a terminal, always one, and how many they take."""
    n_lines = 0
    for number, text in enumerate(texts):
        more = len(comment_lines(text))
        if number and n_lines + more > most:
            return texts[:number], n_lines
        n_lines += more
    return texts, n_lines
