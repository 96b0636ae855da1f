"""The answer of a verb: tables, facts and remarks to be shown, and rows for programs.

A verb returns an :class:`Answer` and prints nothing; :mod:`commsim.report.render` shows it on a terminal, as JSON, as
CSV, or as HTML.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, overload

from commsim.core.remark import Remark

Cells: TypeAlias = Sequence[str]
__all__ = ["Answer", "Facts", "LazyRows", "Lines", "Part", "Remarks", "Table", "comments", "remarks", "without"]


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
        Further keys of the JSON, beside the results.
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


class LazyRows(Sequence[Mapping[str, Any]]):
    """Rows for programs, each made when it is read: a terminal shows none.

    Parameters
    ----------
    make : callable
        Function from an item to its row.
    items : sequence
        What the rows are made of.
    """

    def __init__(self, make: Callable[[Any], Mapping[str, Any]], items: Sequence[Any]) -> None:
        self._make, self._items = make, items

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, at: int) -> Mapping[str, Any]: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Mapping[str, Any]]: ...
    def __getitem__(self, at: int | slice) -> Mapping[str, Any] | Sequence[Mapping[str, Any]]:
        return LazyRows(self._make, self._items[at]) if isinstance(at, slice) else self._make(self._items[at])


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
