"""Command lines: those whose answers are recorded, each with one to four changes that a hurried user could make."""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

from commsim.cli import main, parser_of
from commsim.cli.verbs import listed_verbs

from .draws import other_number, value
from .trials import IDLE_S, LIMIT_S, cpu_s

ANSWERS = Path(__file__).parents[2] / "tests" / "answers"
# Peak of a process of its own that is reported, bytes.
MAX_MEMORY = 500e6
# Verbs that measure, serve, or start processes of their own; benchmarks.attacks kills these.
LEFT_OUT = ("reproduce", "validate", "calibrate", "doctor", "warmup", "emulate", "testbed", "place serve", "schema",
            "switch serve", "switch all-reduce", "switch status", "sweep run", "sweep cheapest")  # fmt: skip
OPTIONS_LEFT_OUT = ("-h", "--help", "--report", "--draw", "--plot")
# Lines that are run unchanged before the others.
N_LOADED = 30
_WRONG_TEXT = re.compile(r"(?<![\w.-])-?(?:nan|inf)(?![\w-])")
_NOT_NEGATIVE = re.compile(r"(?:^|_)(?:time|bytes|size|algbw|busbw|packets|drops|resent|bound)(?:_s|_us|_ms|_B|_Bps)?$")


@functools.cache
def recorded_lines() -> tuple[str, ...]:
    """Return the command lines of ``tests/answers`` in the words of today, without those that are left out."""
    sys.path.append(str(ANSWERS))
    import record  # type: ignore[import-not-found]

    lines = [record.in_new_words(line) for line in record.command_lines()]
    wanted = [line for line in lines if ".py" not in line and "files_0_1" not in line]
    return tuple(
        line for line in wanted
        if all(part.split()[0] in listed_verbs() and not part.startswith(LEFT_OUT) for part in line.split(" && "))
    )  # fmt: skip


def load() -> None:
    """Load what lines of all verbs need, so that processes forked from this one have it."""
    for line in recorded_lines()[:: len(recorded_lines()) // N_LOADED]:
        with folder(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            for part in line.split(" && "):
                with contextlib.suppress(SystemExit):
                    main(shlex.split(part))


def drawn_line(seed: int, number: int) -> list[list[str]]:
    """Return the commands of a trial; the last is changed, those before it make its input."""
    draw = random.Random(f"{seed} lines {number}")
    commands = [shlex.split(part) for part in draw.choice(recorded_lines()).split(" && ")]
    words = commands[-1]
    for _ in range(draw.randrange(1, 5)):
        _change(draw, words)
    return commands


def _change(draw: random.Random, words: list[str]) -> None:
    kind, at = draw.randrange(7), draw.randrange(1, len(words)) if len(words) > 1 else 0
    if kind <= 1 and at:
        words[at] = other_number(draw, words[at])
    elif kind == 2 and at:
        words[at] = value(draw)
    elif kind == 3 and at:
        del words[at]
    elif kind == 4 and at:
        other = shlex.split(draw.choice(recorded_lines()).split(" && ")[-1])
        words[at] = draw.choice(other)
    elif options := _options(words[0], words[1] if len(words) > 1 else ""):
        name, takes = draw.choice(options)
        words += [name, value(draw)] if takes else [name]


@functools.cache
def _options(verb: str, second: str) -> list[tuple[str, bool]]:
    """Return the options of a verb, and whether each takes a value."""
    try:
        parser = parser_of(verb)[0]
    except SystemExit:
        return []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction) and second in action.choices:
            parser = action.choices[second]
    return [(action.option_strings[-1], action.nargs != 0) for action in parser._actions
            if action.option_strings and action.option_strings[-1] not in OPTIONS_LEFT_OUT]  # fmt: skip


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """Work in an empty folder with the inputs, and its own folder for temporary files."""
    where = Path(tempfile.mkdtemp(prefix="volume-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    before, temporary = Path.cwd(), tempfile.tempdir
    try:
        (where / "tmp").mkdir()
        shutil.copytree(ANSWERS / "inputs", where / "inputs")
        os.chdir(where)
        tempfile.tempdir = str(where / "tmp")
        yield where
    finally:
        os.chdir(before)
        tempfile.tempdir = temporary
        shutil.rmtree(where, ignore_errors=True)


def text_of(seed: int, number: int) -> str:
    """Return the commands of a trial as a shell takes them."""
    return " && ".join(map(shlex.join, drawn_line(seed, number)))


def trial(seed: int, number: int) -> str:
    """Run the commands of a trial in this process; return what is wrong."""
    with folder():
        for command in drawn_line(seed, number):
            before = _files()
            if problem := _ran(command) or _leftovers(before, command):
                return problem
    return ""


def _files() -> set[str]:
    return {str(path) for path in Path().rglob("*") if path.is_file()}


def _ran(words: list[str]) -> str:
    out, err = io.StringIO(), io.StringIO()
    from commsim.core.limits import EXPECTED

    EXPECTED.clear()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
            warnings.simplefilter("error")
            code: object = main(list(words))
    except SystemExit as stop:
        code = stop.code
    said = err.getvalue()
    if code not in (None, 0, 1, 2) or "Traceback" in said:
        return f"exit {code}: {said[-600:]}"
    if code in (1, 2):
        errors = [line for line in said.splitlines() if "error:" in line]
        return "" if errors or code == 1 else f"exit 2 without a word: {said[-300:]!r}"
    return _wrong_numbers(words, out.getvalue())


def _wrong_numbers(words: list[str], text: str) -> str:
    """Return the first number of an answer that cannot be: not finite, or a negative time or size."""
    asked = " ".join(words)
    for line in text.splitlines():
        if not line.startswith("#") and (found := _WRONG_TEXT.search(line)) and found[0] not in asked:
            return f"prints {found[0]}: {line[:200]}"
    for path in Path().glob("*.json"):
        with contextlib.suppress(ValueError, OSError):
            tree = json.loads(path.read_bytes(), parse_constant=lambda name: _Constant(name))
            if wrong := _wrong_leaf(tree, path.name):
                return wrong
    return ""


class _Constant(str):
    """NaN or an infinity in a file of JSON, which has none."""

    __slots__ = ()


def _wrong_leaf(tree: object, key: str) -> str:
    if isinstance(tree, _Constant):
        return f"{key} is {tree}"
    if isinstance(tree, dict):
        return next((wrong for name, leaf in tree.items() if (wrong := _wrong_leaf(leaf, str(name)))), "")
    if isinstance(tree, list):
        return next((wrong for leaf in tree if (wrong := _wrong_leaf(leaf, key))), "")
    is_negative = isinstance(tree, (int, float)) and tree < 0 and _NOT_NEGATIVE.search(key)
    return f"{key} is {tree}" if is_negative else ""


def _leftovers(before: set[str], words: list[str]) -> str:
    """Return files that no word of the command names."""
    new = sorted(_files() - before)
    named = [Path(word.partition("=")[2] or word).parts[:1] for word in words]
    strange = [name for name in new if name.startswith("tmp/") or not _is_named(name, words, named)]
    return f"leaves {strange[:3]}" if strange else ""


def _is_named(name: str, words: list[str], named: list[tuple[str, ...]]) -> bool:
    first = Path(name).parts[0]
    stem = first.split(".")[0]
    return (first,) in named or any(stem in word for word in words)


def alone(text: str) -> str:
    """Run a line in a process of its own; return what is wrong there: silence, memory, or how it ended.

    What takes long is right as long as it says so, and ends on Ctrl-C.
    """
    with folder():
        for part in text.split(" && "):
            command = [sys.executable, "-m", "commsim", *shlex.split(part)]
            with Path("tmp/err").open("w+b") as err:
                process = subprocess.Popen(
                    command, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, stderr=err,
                    preexec_fn=_hears_ctrl_c,
                )  # fmt: skip
                peak, status, interrupted = _waited(process)
                err.seek(0)
                said = err.read().decode(errors="replace")
            if peak > MAX_MEMORY:
                return f"takes {peak / 1e6:.0f} MB; status {status}: {said[-200:]}"
            if interrupted and "so far" not in said:
                return f"says nothing for {LIMIT_S:g} s of processor time"
            if status < 0 or (status not in (0, 1, 2) and not interrupted) or "Traceback" in said:
                return f"status {status}: {said[-800:]}"
    return ""


def _hears_ctrl_c() -> None:
    """Undo what a shell does to what it starts in the background."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _waited(process: subprocess.Popen[bytes]) -> tuple[float, int, bool]:
    """Wait for a process, and interrupt it after a time; return its peak, bytes, its status, and whether it was."""
    interrupted, moved, last = 0.0, time.monotonic(), 0.0
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return usage.ru_maxrss * 1024.0, process.returncode, bool(interrupted)
        used, now = cpu_s(process.pid), time.monotonic()
        if used > last + 0.1:
            moved, last = now, used
        if interrupted and now > interrupted + IDLE_S:
            process.kill()
        elif not interrupted and (used > LIMIT_S or now > moved + IDLE_S):
            process.send_signal(signal.SIGINT)
            interrupted = now
        time.sleep(0.02)
