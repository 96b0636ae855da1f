"""Right command lines of every verb with the files that they read, and names, specs and values to put into them."""

from __future__ import annotations

import argparse
import atexit
import contextlib
import functools
import inspect
import io
import itertools
import os
import random
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import commsim.prediction.solve  # noqa: F401 - switch systems are collectives from here on
from collectives import COLLECTIVES
from commsim.cli import commands_of, listed_verbs, main, parser_of
from commsim.cli.parsing.examples import examples_of
from topologies import TOPOLOGIES

from .draws import COUNTS, PARTS, RATES, SIZES, TIMES

ROOT = Path(__file__).parents[2]
ANSWERS = ROOT / "tests" / "answers"
# Verbs that measure, serve, or start processes of their own when they are right; `benchmarks.attacks` kills these.
LEFT_OUT = ("reproduce", "validate", "calibrate", "doctor", "warmup", "emulate", "testbed", "place serve", "mpirun",
            "torchrun", "NUMBA_", "switch serve", "switch all-reduce", "switch status", "workload profile",
            "sweep cheapest")  # fmt: skip
# What makes any line of them wrong, so that they end before they start anything.
REFUSED = {
    "validate": "validate mpi -b 0K", "calibrate": "calibrate --passes 0", "warmup": "warmup --jobs 0",
    "emulate": "emulate -n 0 --topology star:n_hosts=2 -- python none.py", "testbed up": "testbed up star:n_hosts=0",
    "testbed run": "testbed run --network star:n_hosts=0", "testbed share": "testbed share --name 0/ --jobs h0;",
    "testbed status": "testbed status extra", "testbed down": "testbed down no/such",
    "place serve": "place serve --cluster none.toml --port 99999", "switch serve": "switch serve --port 99999",
    "switch all-reduce": "switch all-reduce --rank 9 --workers 2", "switch status": "switch status --port 99999",
    "workload profile": "workload profile torch.nn:PReLU --input none", "doctor": "doctor extra",
    "reproduce": "reproduce none",
    "sweep cheapest": "sweep cheapest examples/sweep_cost.toml --executor none",
}  # fmt: skip
OPTIONS_LEFT_OUT = ("-h", "--help", "--report", "--draw", "--plot", "--timeline", "--port", "--during", "--jobs")
# Folder of the damaged files of a trial.
DAMAGED = "damaged"
# Examples that no line reads.
NOT_COPIED = (
    "__pycache__",
    "gallery",
    "notebooks",
    "extension",
    "cost_model",
    "*_x[0-9]*.toml",
    "tacos*",
    "train*",
)
# Bytes of a file that an example writes, up to which it is an input of other lines.
MAX_MADE = 300_000
SERIAL = ("sweep run", "sweep examples")  # their processes are started one after the other
_WRITES = re.compile(r"(?: > | -o | --output | --json )(?!-)(?!.*\.(?:svg|pdf|png|html)\b)")
PRESET_HEAD = re.compile(r"^\[presets\.([\w-]+)\]", re.MULTILINE)
SMALL = ("1", "2", "3", "4", "4", "8")
OF_KIND = {"Bandwidth": RATES[3:], "Seconds": TIMES[:6], "Ratio": ("1", "2:1", "3", "7:2"), "int": SMALL,
           "float": PARTS[1:7], "bool": ("true", "false"), "tuple[int, ...]": ("2x2", "4x2", "3x3", "2x2x2"),
           "Counts": ("1x2x3x4", "0x1x1x1"), "Order": ("nearest", "farthest"), "Algorithm": ("ring", "tree", "nvls"),
           "Choice": ("ll", "ll128", "simple"), "Mode": ("normal", "low_latency"), "Precision": ("fp8", "bf16"),
}  # fmt: skip
OF_METAVAR = {"SIZE": SIZES, "TIME": TIMES, "RATE": RATES, "N": COUNTS, "P": PARTS, "FRACTION": PARTS, "X": SMALL}


class Option(NamedTuple):
    """An option of a command.

    Parameters
    ----------
    name : str
        Longest of its names.
    takes : bool
        Whether a value follows.
    values : tuple of str
        Values that are right for it somewhere.
    """

    name: str
    takes: bool
    values: tuple[str, ...]


@functools.cache
def recorded_lines() -> tuple[str, ...]:
    """Return the command lines of ``tests/answers`` in the words of today, without those that are left out."""
    sys.path.append(str(ANSWERS))
    import record  # type: ignore[import-not-found]

    lines = [record.in_new_words(line) for line in record.command_lines()]
    return tuple(line for line in lines if ".py" not in line and "files_0_1" not in line and _is_run(line))


def _is_run(line: str) -> bool:
    return all(part.split()[0] in listed_verbs() and not part.startswith(LEFT_OUT) for part in line.split(" && "))


@functools.cache
def examples() -> tuple[str, ...]:
    """Return the examples of the help that one process can run without a shell, in their order."""
    lines = [line for verb in listed_verbs() for line in examples_of(f"commsim {verb}")]
    parts = [part.strip().removeprefix("commsim ") for line in lines for part in line.split("&&")]
    wanted = [part for part in parts if _is_run(part.partition(" > ")[0]) and not re.search(r"[;&|]", part)]
    return tuple(f"{part} --executor serial" if part.startswith(SERIAL) else part for part in wanted)


@functools.cache
def pool() -> dict[str, tuple[str, ...]]:
    """Return right lines by command; those of a command that is left out are refused."""
    found: dict[str, list[str]] = {}
    for line in (*recorded_lines(), *(line.partition(" > ")[0] for line in examples()), *REFUSED.values()):
        found.setdefault(command_of(shlex.split(line.split(" && ")[-1])), []).append(line)
    return {command: tuple(lines) for command, lines in found.items()}


def command_of(words: list[str]) -> str:
    """Return the verb of a line, with its second word where that is a verb, too."""
    commands = commands_of(words[0]) if words and words[0] in listed_verbs() else {}
    two = " ".join(words[:2])
    if two in commands:
        return two
    return next((name for name, one in commands.items() if one.is_usual), words[0] if commands else "no verb")


@functools.cache
def base() -> Path:
    """Make a folder in memory that goes with this process; processes that it forks work in folders of it."""
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    where, process = Path(tempfile.mkdtemp(prefix="volume-", dir=memory)), os.getpid()
    atexit.register(_remove, where, process)
    return where


def _remove(where: Path, process: int) -> None:
    if os.getpid() == process:  # not one that it forked
        shutil.rmtree(where, ignore_errors=True)


@functools.cache
def template() -> Path:
    """Make a folder with the inputs of recorded lines, examples, and what the examples of the help write."""
    where = base() / "template"
    shutil.copytree(ANSWERS / "inputs", where / "inputs")
    shutil.copytree(ROOT / "examples", where / "examples", ignore=shutil.ignore_patterns(*NOT_COPIED))
    with contextlib.chdir(where):
        for line in filter(_WRITES.search, examples()):
            words, _, target = line.partition(" > ")
            out = io.StringIO()
            silent = contextlib.redirect_stderr(io.StringIO())
            with contextlib.redirect_stdout(out), silent, contextlib.suppress(SystemExit):
                main(shlex.split(words))
            if target:
                Path(target).write_text(out.getvalue(), encoding="utf-8")
    for path in [path for path in where.rglob("*") if path.is_file()]:
        if path.stat().st_size > MAX_MADE:
            path.unlink()
    return where


@functools.cache
def files() -> tuple[str, ...]:
    """Return the names of the files of the template."""
    return tuple(sorted(str(path.relative_to(template())) for path in template().rglob("*") if path.is_file()))


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """Work in the folder of this process, which has the files of the template, and a folder for temporary files."""
    where, before, temporary = base() / str(os.getpid()), Path.cwd(), tempfile.tempdir
    _restore(where)
    os.chdir(where)
    tempfile.tempdir = str(where / "tmp")
    try:
        yield where
    finally:
        os.chdir(before)
        tempfile.tempdir = temporary


def _restore(where: Path) -> None:
    """Copy what is missing or was changed, and delete what is not of the template."""
    kept = _listed(where)
    for name, was in _listed(template()).items():
        if kept.pop(name, None) != was:
            path = where / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            shutil.copy2(template() / name, path)
    for name in kept:
        (where / name).unlink()
    shutil.rmtree(where / "tmp", ignore_errors=True)
    (where / "tmp").mkdir()
    shutil.rmtree(where / DAMAGED, ignore_errors=True)


def _listed(where: Path) -> dict[str, tuple[int, int]]:
    """Return size and time of change of each file below a folder, by name."""
    paths = {str(path.relative_to(where)): path.lstat() for path in where.rglob("*") if not path.is_dir()}
    return {name: (stat.st_size, stat.st_mtime_ns) for name, stat in paths.items()}


@functools.cache
def options_of(command: str) -> tuple[Option, ...]:
    """Return the options of a command, each with values that are right for it in some line or by its kind."""
    verb, _, second = command.partition(" ")
    parser = parser_of(verb)[0]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction) and second in action.choices:
            parser = action.choices[second]
    return tuple(
        Option(action.option_strings[-1], action.nargs != 0, _values(action))
        for action in parser._actions
        if action.option_strings and action.option_strings[-1] not in OPTIONS_LEFT_OUT
    )


def _values(action: argparse.Action) -> tuple[str, ...]:
    if action.choices:
        return tuple(map(str, action.choices))
    seen = tuple(value for name in action.option_strings for value in _seen().get(name, ()))
    return (*seen, *OF_METAVAR.get(str(action.metavar), ()))


@functools.cache
def _seen() -> dict[str, tuple[str, ...]]:
    """Return the values that right lines give to each option."""
    found: dict[str, list[str]] = {}
    for line in (line for lines in pool().values() for line in lines):
        words = shlex.split(line.split(" && ")[-1])
        for flag, value in itertools.pairwise(words):
            if flag.startswith("-") and not value.startswith("-"):
                found.setdefault(flag, []).append(value)
    return {flag: tuple(dict.fromkeys(values)) for flag, values in found.items()}


@functools.cache
def machines() -> tuple[str, ...]:
    """Return the names of the presets of machines and networks."""
    return tuple(PRESET_HEAD.findall((ROOT / "topologies" / "presets.toml").read_text("utf-8")))


def network_spec(draw: random.Random) -> str:
    """Draw a network of the registry, a machine, or machines on a fabric, with few nodes."""
    kind = draw.random()
    if kind < 0.2:
        return draw.choice(machines())
    name = draw.choice(list(TOPOLOGIES))
    head, given = name, _arguments(draw, TOPOLOGIES[name].parameters, 0.25)
    if kind < 0.4:
        head = f"{draw.choice(machines())}@{name}"
        given = [*(part for part in given if not part.startswith("n_hosts")), f"machines={draw.choice(SMALL)}"]
    return f"{head}:{','.join(given)}" if given else head


def collective_spec(draw: random.Random) -> str:
    """Draw a collective, with a parameter in some."""
    name = draw.choice(list(COLLECTIVES))
    parameters = {key: one for key, one in COLLECTIVES[name].parameters.items() if key != "n_ranks"}
    given = _arguments(draw, parameters, 0.15)
    return f"{name}:{','.join(given)}" if given else name


def _arguments(draw: random.Random, parameters: Mapping[str, inspect.Parameter], share: float) -> list[str]:
    given = []
    for key, one in parameters.items():
        if one.default is not one.empty and draw.random() > share:
            continue
        kind = str(one.annotation).removesuffix(" | None")
        given.append(f"{key}={draw.choice(OF_KIND.get(kind, SMALL))}")
    return given
