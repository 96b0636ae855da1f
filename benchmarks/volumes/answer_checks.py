"""What is wrong with how a command ended: its status, its words, its numbers, its JSON, and what it left."""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import re
import shlex
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jsonschema

from commsim.cli.schema import schemas

# JSON that a line is asked for where it asks for none.
ANSWER = "answer.json"
# A bound is computed in floats, too.
SLACK = 1e-9
# Characters that a word of an error has at most: what it quotes of a user's text is cut.
LONGEST_WORD = 300
# Processes of Python's own, which end with the one that began them.
_HELPERS = re.compile(r"multiprocessing\.(?:resource_tracker|forkserver)|commsim\.core\.compiling\.beside import")
_WRONG_TEXT = re.compile(r"(?<![\w.-])-?(?:nan|inf)(?![\w-])")
_NOT_NEGATIVE = re.compile(r"(?:^|_)(?:time|bytes|size|algbw|busbw|packets|drops|resent|bound)(?:_s|_us|_ms|_B|_Bps)?$")
_ERROR = re.compile(r"commsim( [\w-]+)*: error: .")
# Lines that may stand before an error: an old name, and kernels that are compiled.
_NOTE = re.compile(r"commsim: |compiling |# ")


def wrong_end(code: object, out: str, err: str) -> str:
    """Return what is wrong with the status and the words of a command that ended."""
    if code not in (None, 0, 1, 2) or "Traceback" in err:
        return f"exit {code}: {err[-600:]}"
    if code != 2:
        return ""
    lines = [line for line in err.splitlines() if not _NOTE.match(line)]
    if len(lines) != 1 or not _ERROR.match(lines[0]):
        return f"exit 2 with {len(lines)} lines in place of one: {err[-600:]!r}"
    if out:
        return f"exit 2, and prints {out[:200]!r}"
    longest = max(map(len, lines[0].split(" ")))
    return f"an error quotes {longest} letters: {lines[0][:200]!r}" if longest > LONGEST_WORD else ""


def wrong_numbers(words: Sequence[str], text: str) -> str:
    """Return the first number of an answer that cannot be: not finite, a negative time or size, one below its bound."""
    asked = " ".join(words)
    for line in text.splitlines():
        if not line.startswith("#") and (found := _WRONG_TEXT.search(line)) and found[0] not in asked:
            return f"prints {found[0]}: {line[:200]}"
    for path in Path().glob("*.json"):
        with contextlib.suppress(ValueError, OSError, RecursionError):
            tree = json.loads(path.read_bytes(), parse_constant=lambda name: _Constant(name))
            if wrong := next(_wrong_leaves(tree, path.name), ""):
                return wrong
    return ""


class _Constant(str):
    """NaN or an infinity in a file of JSON, which has none."""

    __slots__ = ()


def _wrong_leaves(tree: object, key: str) -> Iterator[str]:
    if isinstance(tree, _Constant):
        yield f"{key} is {tree}"
    elif isinstance(tree, dict):
        time, bound = tree.get("time_s"), tree.get("bound_s")
        if isinstance(time, float) and isinstance(bound, float) and time < bound * (1 - SLACK):
            yield f"time_s {time} is below bound_s {bound}"
        for name, leaf in tree.items():
            yield from _wrong_leaves(leaf, str(name))
    elif isinstance(tree, list):
        for leaf in tree:
            yield from _wrong_leaves(leaf, key)
    elif isinstance(tree, (int, float)) and tree < 0 and _NOT_NEGATIVE.search(key):
        yield f"{key} is {tree}"


@functools.cache
def _schema(command: str) -> Any:
    text = schemas().get(command) or schemas().get(command.partition(" ")[0])
    return jsonschema.Draft202012Validator(json.loads(text)) if text else None


def wrong_json(command: str, table: str) -> str:
    """Return what is wrong with the JSON of an answer: its text, its schema, of ``run`` its rows beside the table."""
    path = Path(ANSWER)
    if not path.exists():
        return "writes no JSON that was asked for"
    try:
        tree = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        return f"its JSON cannot be read: {error}"
    schema = _schema(command)
    if schema is not None and (wrong := next(schema.iter_errors(tree), None)) is not None:
        return f"its JSON is not that of its schema: {wrong.json_path}: {wrong.message[:300]}"
    return _rows_differ(tree, table) if command == "run" else ""


def _rows_differ(tree: Mapping[str, Any], table: str) -> str:
    """Return the first row of the tables of ``run`` whose time is not that of the JSON."""
    times = iter([row["time_s"] for row in tree.get("results", ()) if isinstance(row.get("time_s"), float)])
    at = 0
    for line in table.splitlines():
        if head := re.search(r"\btime\(us\)", line):  # of the first table, or of the next collective's
            at = head.end()  # cells end where their names do
        elif at and not line.startswith("#"):
            cell, time = (line[:at].split() or [""])[-1], next(times, math.nan)
            with contextlib.suppress(ValueError):
                near = 0.51 * 10 ** -len(cell.partition(".")[2])
                if not math.isnan(time) and not math.isclose(float(cell), time * 1e6, abs_tol=near, rel_tol=1e-12):
                    return f"prints {cell} us where its JSON has {time} s"
    return ""


def files_here() -> set[str]:
    """Return the files of the current folder."""
    return {str(path) for path in Path().rglob("*") if path.is_file()}


def leftovers(before: set[str], words: Sequence[str], running: Collection[str] = ()) -> str:
    """Return files that no word of the command names, and processes that it left beside those that ran before."""
    new = sorted(files_here() - before)
    named = [Path(word.partition("=")[2] or word).parts[:1] for word in words]
    strange = [name for name in new if name.startswith("tmp/") or not _is_named(name, words, named)]
    if strange:
        return f"leaves {strange[:3]}"
    left = [child for child in children() if child not in running]
    return f"leaves processes {left}" if left else ""


def children() -> list[str]:
    """Return the numbers of processes that this one began and that have not ended.

    The tracker of resources, the server that forks workers of sweeps and what compiles kernels beside this process are
    not among them: they end with it.
    """
    listed = Path(f"/proc/self/task/{os.getpid()}/children")
    commands = [(one, _command(one)) for one in (listed.read_text("ascii").split() if listed.exists() else ())]
    return [child for child, what in commands if what and not _HELPERS.search(what)]


def _command(process: str) -> str:
    """Return the command line of a process, "" if it has ended; while it starts a program it has none for a moment."""
    folder, until = Path(f"/proc/{process}"), time.monotonic() + 1.0
    with contextlib.suppress(OSError):
        while not (words := (folder / "cmdline").read_bytes().decode(errors="replace")) and time.monotonic() < until:
            if (folder / "stat").read_text("ascii", "replace").rpartition(")")[2].split()[0] == "Z":
                return ""
            time.sleep(0.001)
        return shlex.join(words.rstrip("\0").split("\0")) if words else ""
    return ""


def _is_named(name: str, words: Sequence[str], named: Sequence[tuple[str, ...]]) -> bool:
    first = Path(name).parts[0]
    stem = first.split(".")[0]
    return (first,) in named or any(stem in word for word in words)
