"""Lines of a log as the program printed them: without colours, and without what launchers and collectors put before.

Known prefixes are cut off by their form. Any other one is learned from the header of a table: what stands before its
``#`` stands before every line of the program, with other digits and words of letters at the same places.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

from commsim.core.files.whole_files import parse_json

from .log_formats import LOG_FORMATS

# Characters of a line that are looked at.
LOOKED_AT = 4096
_COLOUR = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]|\x1b\][^\x07\n]{0,200}\x07")
_KNOWN = re.compile(
    r"""\s*
    (?:>[ ]){0,4}                                                        # quotes of Markdown
    (?:\[pod/[^\]\s]{1,200}\]\s)?                                        # kubectl logs --prefix
    (?:\d{4}-\d\d-\d\dT[\d:.]{8,24}(?:Z|[+-]\d\d:?\d\d)\s)?              # times of kubectl and docker
    (?:\w{3}\s\w{3}\s{1,2}\d{1,2}\s[\d:]{8}\s\d{4}\s?(?=\[|<))?          # mpirun --timestamp-output
    (?:
      (?:\[(?:[^\]\s@]{1,200}@)?\d{1,9},\d{1,9}\])?\s?<std(?:out|err|diag)>\s*:   # mpirun --tag-output, prterun
    | \d{1,9}:(?=\s)                                                     # srun --label
    | \[\d{1,9}\]\s(?=\s*[\d\#])                                         # mpiexec -prepend-rank
    )?""",
    re.VERBOSE | re.ASCII,
)
# The beginning of a row of nccl-tests, which is printed in parts.
_ROW = re.compile(r"\s*\d+\s+\d+\s+[a-z]\w+\s", re.ASCII)
# Headers of tables, which begin with a sign of their own, and the most characters that stand before them.
_HEADER = re.compile("|".join(one.header for one in LOG_FORMATS))
LONGEST = 200
# Forms of prefixes in one file, such as those of several collectors.
MOST_FORMS = 8
_WRAPPED = re.compile(r'\s*\{"log"\s*:\s*"')
# No two neighbours are of one kind, so that a line matches them in one way only.
_PIECE = re.compile(r"[0-9]+|[^\W\d_]+|\s+|.", re.DOTALL)


def lines_of_log(text: str) -> Iterator[str]:
    """Yield the lines of a log with their ends, without what stands before the program's own text.

    Parameters
    ----------
    text : str
        The log.
    """
    if _WRAPPED.match(text):
        text = "".join(map(_unwrapped, text.splitlines()))
    if "\x1b" in text:
        text = _COLOUR.sub("", text)
    learned = _learned(text)
    for raw in io.StringIO(text):
        line = raw[:LOOKED_AT] if len(raw) <= LOOKED_AT else f"{raw[:LOOKED_AT]}\n"
        match = next(filter(None, (prefix.match(line) for prefix in learned)), None) or _KNOWN.match(line)
        yield _without(match[0].strip(), line[match.end() :]) if match and not line.isspace() else line


def _without(label: str, line: str) -> str:
    """Return a row of a table without the labels in it, which launchers write again before each of its parts."""
    return line.replace(label, " ") if label and _ROW.match(line) and label in line else line


def _unwrapped(line: str) -> str:
    """Return the line of a program that Docker's json-file holds in one of JSON; an empty one of what is none."""
    try:
        tree = parse_json(line)
    except (ValueError, RecursionError):
        return "\n"
    said = tree.get("log") if isinstance(tree, dict) else None
    return f"{said}\n".replace("\n\n", "\n") if isinstance(said, str) else "\n"


def _learned(text: str) -> list[re.Pattern[str]]:
    """Return the forms of what stands before the headers of tables, where it is none that is known."""
    forms = dict[str, None]()
    for found in _HEADER.finditer(text):
        before = text[max(text.rfind("\n", 0, found.start()) + 1, found.start() - LONGEST) : found.start()]
        known = _KNOWN.match(before + found[0])
        if before.strip() and not (known and known.end() >= len(before.rstrip())):
            forms[_form(before.rstrip())] = None
    return [re.compile(form) for form in [*forms][:MOST_FORMS]]


def _form(prefix: str) -> str:
    """Return an expression for a prefix with any digits, words and blanks at the same places."""
    kinds = (r"[0-9]+", r"[^\W\d_]+", r"\s+")
    pieces = _PIECE.findall(prefix.lstrip())
    parts = [next((kind for kind in kinds if re.fullmatch(kind, piece)), re.escape(piece)) for piece in pieces]
    return rf"\s*{''.join(parts)}(?![0-9])[ \t]?"
