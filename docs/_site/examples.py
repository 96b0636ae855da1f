"""The examples of a page: run them, compare what they print with what the page says, or write it into the page.

``python docs/_site/examples.py [PAGE...]`` writes these pages, by default all; texts with three dots that still fit
stay. ``tests/docs`` compares. A page with ``<!-- terminal: 80 columns -->`` has what a terminal of that width shows.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", ROOT / "docs" / "tutorial.md", *sorted((ROOT / "docs").glob("howto_*.md")),
         *sorted((ROOT / "docs").glob("theory/*.md"))]  # fmt: skip
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"^<!-- file: (\S+) -->\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_WIDTH = re.compile(r"^<!-- terminal: (\d+) columns -->$", re.MULTILINE)
_COMMAND = re.compile(r"((?:[^\n]*\\\n)*[^\n]*)\n?(.*)", re.DOTALL)


def sessions(block: str) -> Iterator[tuple[str, str]]:
    """Commands of a block, as they are written, and what each prints: from its dollar sign to the next."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        found = _COMMAND.match(part)
        assert found is not None
        yield found[1], found[2]


def matches(expected: str, printed: str) -> bool:
    """Whether a text is what is expected, in which three dots stand for anything; widths of columns do not count."""
    expected, printed = (
        re.sub(r"^ | $", "", re.sub(r"[ \t]+", " ", text), flags=re.MULTILINE).strip("\n")
        for text in (expected, printed)
    )
    return re.fullmatch(re.escape(expected).replace(r"\.\.\.", ".*"), printed, re.DOTALL) is not None


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def width_of(text: str) -> int | None:
    """Columns of the terminal whose output a page shows; None: its output is that of a pipe."""
    found = _WIDTH.search(text)
    return int(found[1]) if found else None


def run(command: str, width: int | None = None) -> tuple[int, str]:
    """Run a command of commsim in this process; its exit code, and what it printed, or why it refused."""
    from collectives import COLLECTIVES
    from commsim.cli import main

    verb, *words = shlex.split(command.replace("\\\n", " "), comments=True)
    if verb != "commsim":
        raise ValueError(f"only commands of commsim can be run here, got {command}")
    kept = {name: COLLECTIVES[name] for name in COLLECTIVES}
    out, err = io.StringIO() if width is None else _Terminal(), io.StringIO()
    plain = {} if width is None else {"COLUMNS": f"{width}", "NO_COLOR": "1"}
    try:
        with mock.patch.dict(os.environ, plain), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(words)
    except SystemExit as stop:
        code = int(stop.code or 0)
    finally:
        COLLECTIVES._entries = kept  # what a page's own file registered is gone
    return code, err.getvalue() if code else out.getvalue()


@contextlib.contextmanager
def beside(text: str) -> Iterator[None]:
    """Work in a directory that has the examples, and the files that a page shows."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "examples", Path(folder) / "examples")
        for name, content in FILE.findall(text):
            (Path(folder) / name).write_text(content)
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def filled(text: str) -> str:
    """Return a page with what its examples print now."""

    def fill(block: re.Match[str]) -> str:
        parts = []
        for command, expected in sessions(block[1]):
            _, printed = run(command, width_of(text))
            shown = expected if expected.strip() and matches(expected, printed) else printed
            parts.append(f"$ {command}\n{shown}")
        return f"```console\n{''.join(parts)}```"

    with beside(text):
        return BLOCK.sub(fill, text)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    for path in map(Path, sys.argv[1:] or PAGES):
        page = path.read_text(encoding="utf-8")
        path.write_text(filled(page), encoding="utf-8")
