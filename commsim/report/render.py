"""The one renderer of answers: for a terminal, as JSON, as CSV, and as HTML for pages and notebooks."""

from __future__ import annotations

import html
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from commsim.core.errors import printable
from commsim.core.limits import EXPECTED
from commsim.core.remark import distinct

from .answer import Answer, Facts, Lines, Part, Remarks, Table
from .terminal import MOST_OF_TITLE, comment_lines, print_comment, print_facts, print_line, print_table, shortened

if TYPE_CHECKING:
    from commsim.core.remark import Remark

__all__ = ["announce", "html_of", "keep", "largest", "show", "show_step", "tell", "tree_of"]

# Code of a fault that a file of the network has: whoever reads the number must know it.
FAULT = "port-faults"
# Remarks that a short answer shows; lines of text of an answer on a terminal, with those of its title.
MOST_SHOWN = 3
MOST_OF_TEXT = MOST_SHOWN + 2


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
    _print_largest(answer.remarks, verbose, n_lines)
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
        **answer.more,
        "remarks": [remark.tree() for remark in answer.remarks],
    }


def largest(remarks: Iterable[Remark]) -> list[Remark]:
    """Return the remarks that a short answer shows, those of the largest effect first, at most ``MOST_SHOWN``."""
    shown = [remark for remark in remarks if remark.is_shown]
    return sorted(distinct(shown), key=lambda one: -one.size)[:MOST_SHOWN] if shown else []


def _print_largest(remarks: Sequence[Remark], verbose: bool, n_lines: int) -> None:
    """Print the remarks of the largest effect, on as many lines as there are left; a fault of a file always."""
    for number, remark in enumerate([] if verbose else largest(remarks)):
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


def html_of(parts: Sequence[Part]) -> str:
    """Return parts as HTML, without style, for a notebook or a page."""
    return "".join(_HTML[type(part)](part) for part in parts)


def _table(part: Table) -> str:
    title = f"<caption>{html.escape(part.title)}</caption>" if part.title else ""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in part.columns)
    body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in part.rows)
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _facts(part: Facts) -> str:
    left = "style='text-align:left'"
    rows = (
        f"<tr><th {left}>{html.escape(name)}</th><td {left}>{html.escape(value)}</td></tr>"
        for name, value in part.values.items()
    )
    return f"<table>{''.join(rows)}</table>"


def _lines(part: Lines) -> str:
    return f"<p>{'<br>'.join(html.escape(line) for line in part.texts)}</p>"


def _remark_lines(part: Remarks) -> str:
    return f"<p>{'<br>'.join(html.escape(str(remark)) for remark in part.items)}</p>"


_HTML: dict[type, Any] = {Table: _table, Facts: _facts, Lines: _lines, Remarks: _remark_lines}
