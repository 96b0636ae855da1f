"""The gate of accuracy: fails when a class of predictions has become worse.

python -m benchmarks.accuracy [--data DIR] [--only NAME[,NAME...]] [--testbed [FILE]] [--check | --accept] [--json FILE]

DIR has the folders ``measured``, ``measured2``, ``experts``, ``training`` and ``uec``; a class whose data are absent is
left as it is in the file, and said. Without a flag, figures that are better are written into the file, the page
docs/accuracy.md and README's sentence.
Exit code 1: a figure is worse by more than its noise; 2: wrong input.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.accuracy.gate.errors import Errors, compare, merged, read_errors
from benchmarks.accuracy.gate.page import in_readme, page
from benchmarks.accuracy.gate.sources import SOURCES, Source
from commsim.core.errors import CommsimError, InputError
from commsim.core.files.whole_files import read_tree, replacing

FILE = Path(__file__).with_name("errors.json")
PAGE = Path(__file__).parents[3] / "docs" / "accuracy.md"
README = Path(__file__).parents[3] / "README.md"


def main(argv: Sequence[str] | None = None) -> int:
    """Make the classes, compare them with the file, and write what is better."""
    parser = argparse.ArgumentParser(prog="benchmarks.accuracy", description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="folder with measured, measured2, experts, training and uec"
    )
    parser.add_argument("--only", metavar="NAME[,NAME...]", help=f"of {', '.join(source.name for source in SOURCES)}")
    parser.add_argument(
        "--testbed", nargs="?", const=Path(), type=Path, metavar="FILE",
        help="also run in the testbed (root, 15 minutes, idle cores), or read the rows of benchmarks.validation --json",
    )  # fmt: skip
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="write nothing")
    what.add_argument("--accept", action="store_true", help="write figures that are worse too: say why in the commit")
    parser.add_argument("--json", type=Path, default=FILE, metavar="FILE", help="figures to compare with, and to write")
    flags = parser.parse_args(argv)
    try:
        wanted = _wanted(flags.only, flags.testbed is not None)
        if flags.data is not None and not flags.data.is_dir():
            raise InputError(f"--data {flags.data}: not a directory")
        before = read_errors(read_tree(flags.json), str(flags.json)) if flags.json.exists() else {}
        now = _made(wanted, flags.data, flags.testbed)
    except CommsimError as error:
        print(f"benchmarks.accuracy: error: {error}", file=sys.stderr)
        return 2
    worse, other = compare(before, now)
    for change in worse:
        print(f"WORSE {change.text()}")
    for change in other:
        print(f"better {change.text()}")
    new = sorted(now.keys() - before.keys())
    for name in new:
        print(f"new {name}: median {now[name].median:.2%}, p90 {now[name].p90:.2%} of {now[name].rows} rows")
    made = [source for source in wanted if any(_is_of(name, source) for name in now)]
    gone = [name for name in before if name not in now and any(_is_of(name, source) for source in made)]
    for name in gone:
        print(f"WORSE {name}: gone")
    refused = bool(worse or gone) and not flags.accept
    print(f"{len(now)} classes, {len(worse) + len(gone)} worse, {len(other)} better, {len(new)} new")
    if not (flags.check or refused):
        kept = merged({name: found for name, found in before.items() if name not in gone}, now)
        _write(flags.json, {name: kept[name] for source in SOURCES for name in kept if _is_of(name, source)})
    return int(refused)


def _wanted(only: str | None, testbed: bool) -> list[Source]:
    known = {source.name: source for source in SOURCES}
    if only is None:
        return [source for source in SOURCES if testbed or not source.measures]
    for name in only.split(","):
        if name not in known:
            raise InputError(f"--only takes names of {', '.join(known)}, got {name!r}")
    asked = only.split(",")
    return [source for source in SOURCES if source.name in asked or (testbed and source.measures)]


def _made(wanted: Sequence[Source], data: Path | None, recorded: Path | None) -> dict[str, Errors]:
    now: dict[str, Errors] = {}
    for source in wanted:
        began = time.process_time()
        found = source.classes(data, recorded)
        if found is None:
            print(f"# {source.name}: left out: it reads --data DIR with a folder {source.folder!r}")
            continue
        now |= found
        print(f"# {source.name}: {len(found)} classes, {time.process_time() - began:.0f} s", flush=True)
    return now


def _is_of(name: str, source: Source) -> bool:
    return name.startswith(f"{source.name}: ")


def _write(path: Path, classes: dict[str, Errors]) -> None:
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(found.json())}" for name, found in classes.items())
    with replacing(path) as out:
        out.write(f'{{\n "schema": 1,\n "classes": {{\n{lines}\n }}\n}}\n'.encode())
    if path == FILE:
        with replacing(PAGE) as out:
            out.write(page(classes).encode())
        made = in_readme(README.read_text(encoding="utf-8"), classes)
        with replacing(README) as out:
            out.write(made.encode())
