"""The command: makes all rows, says how long that takes, prints statistics, and writes pages and data."""

from __future__ import annotations

import argparse
import functools
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.accuracy.packet_grid import data_path, write_comparisons
from commsim.auto.known_error import REAL_FILE
from commsim.core.errors import CommsimError, InputError
from commsim.core.files.whole_files import replacing, write_json
from commsim.report.terminal import print_table

from .html_page import html
from .makers import MAKERS, Maker
from .page import markdown, percent
from .real import KEPT, real_rows, why_absent
from .real_cells import GROUPS
from .row import KINDS, Row
from .summary import looked_up, summary

REAL_SECONDS, QUICK_REAL_SECONDS = 900, 15


def main(argv: Sequence[str] | None = None) -> int:
    """Make the matrix; 0, or 2 when what the user gave is wrong. Misses are no failure: they are the result."""
    args = _parser().parse_args(argv)
    try:
        kinds = _kinds(args)
        makers = [maker for maker in _makers(args) if maker.kind in kinds]
        _print_budget(makers, args.quick)
        rows = [row for maker in makers for row in _made(maker, args.quick)]
        _refuse_same_names(rows)
        _print_summary(rows)
        _write(args, rows, {kind: _absence(kind, kinds, args.real) for kind in KINDS if _is_absent(kind, rows)})
    except CommsimError as error:
        print(f"benchmarks.validation: error: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks.validation", description="Every model beside what checks it.")
    parser.add_argument("--quick", action="store_true", help="a subset that takes some seconds")
    parser.add_argument("--json", metavar="FILE", help="write all rows, and the statistics")
    parser.add_argument("-o", metavar="DIR", dest="pages", help="write validation.md and validation.html there")
    parser.add_argument("--only", metavar="KIND[,KIND...]", help=f"of {', '.join(KINDS)} (all)")
    parser.add_argument("--real", metavar="FILE", help="rows of kind real, as --json writes them, instead of real runs")
    parser.add_argument(
        "--groups",
        metavar="NAME[,NAME...]",
        help=f"run only these groups of real runs, and take all others from --real ({KEPT.name})",
    )
    parser.add_argument(
        "--write-data",
        action="store_true",
        help=f"write real runs into commsim/auto/{REAL_FILE} and {KEPT.name}",
    )
    return parser


def _kinds(args: argparse.Namespace) -> tuple[str, ...]:
    kinds = tuple(KINDS) if args.only is None else tuple(args.only.split(","))
    for kind in kinds:
        if kind not in KINDS:
            raise InputError(f"--only takes kinds of {', '.join(KINDS)}, got {kind!r}")
    if args.write_data and (args.quick or "real" not in kinds):
        raise InputError("--write-data writes what was run for real: leave out --quick, and let --only have real")
    if args.groups is not None and (args.quick or "real" not in kinds):
        raise InputError("--groups are of real runs: leave out --quick, and let --only have real")
    return kinds


def _makers(args: argparse.Namespace) -> list[Maker]:
    """Return all makers; real runs last, since the others say within minutes whether something is wrong."""
    groups = _groups(args)
    absent = why_absent(None if groups else args.real)
    if absent and (groups or args.write_data):
        raise InputError(absent)
    if absent:
        return list(MAKERS)
    full, quick = (0.0, 0.0) if args.real else (REAL_SECONDS, QUICK_REAL_SECONDS)
    seconds = 4 * sum(_cells(name) for name in groups) if groups else full
    make = functools.partial(real_rows, path=args.real, groups=groups)
    return [*MAKERS, Maker("real runs", "real", seconds, quick, make)]


def _groups(args: argparse.Namespace) -> list[str]:
    """Return the groups of real runs that are asked for, which are known."""
    groups = args.groups.split(",") if args.groups is not None else []
    known = [group.name for group in GROUPS]
    for name in groups:
        if name not in known:
            raise InputError(f"--groups takes groups of {', '.join(known)}, got {name!r}")
    return groups


def _cells(name: str) -> int:
    """Real runs in a group."""
    return sum(
        (len(group.collectives) + len(group.native)) * len(group.sizes) for group in GROUPS if group.name == name
    )


def _print_budget(makers: Sequence[Maker], quick: bool) -> None:
    total = sum(maker.quick_seconds if quick else maker.seconds for maker in makers)
    print(f"# time budget: {total:.0f} s on one core when kernels are compiled", flush=True)


def _made(maker: Maker, quick: bool) -> list[Row]:
    began = time.perf_counter()
    rows = list(maker.make(quick))
    missed = sum(row.missed for row in rows)
    took = time.perf_counter() - began
    print(f"# {maker.kind}: {maker.name}: {len(rows)} rows, {missed} misses, {took:.1f} s", file=sys.stderr, flush=True)
    return rows


def _refuse_same_names(rows: Sequence[Row]) -> None:
    seen: set[str] = set()
    for row in rows:
        if row.id in seen:
            raise InputError(f"two rows have the id {row.id!r}")
        seen.add(row.id)


def _print_summary(rows: Sequence[Row]) -> None:
    lines = [
        [f["kind"], f["engine"], f["against"], f"{f['count']}",
         *(percent(f[key]) for key in ("median", "p90", "largest")), f"{f['misses']}"]
        for f in summary(rows)
    ]  # fmt: skip
    columns = ("kind", "engine", "against", "rows", "median", "p90", "largest", "misses")
    print_table(columns, lines, "absolute errors, ours / reference - 1")
    silent = [row.id for row in rows if row.missed and not row.note]
    if silent:
        print(f"# without a reason: {', '.join(silent)}")


def _is_absent(kind: str, rows: Sequence[Row]) -> bool:
    return not any(row.kind == kind for row in rows)


def _absence(kind: str, kinds: Sequence[str], real: str | None) -> str:
    if kind not in kinds:
        return "this run left it out (--only)"
    return (why_absent(real) if kind == "real" else "") or "nothing made any"


def _write(args: argparse.Namespace, rows: Sequence[Row], absent: dict[str, str]) -> None:
    if args.json:
        config = {"quick": args.quick, "only": args.only, "real": args.real}
        tree = {"schema": 1, "config": config, "absent": absent, "summary": summary(rows)}
        write_json(args.json, tree | {"rows": [row.json() for row in rows]})
    if args.pages:
        folder = Path(args.pages)
        if not folder.is_dir():
            raise InputError(f"{folder}: not a directory to write the pages to")
        real = " --real FILE" if args.real else ""
        for name, text in (("md", markdown(rows, absent, real)), ("html", html(rows, absent))):
            with replacing(folder / f"validation.{name}") as out:
                out.write(text.encode())
    if args.write_data:
        write_comparisons(data_path(REAL_FILE), looked_up(rows))
        lines = ",\n".join(json.dumps(row.json()) for row in rows if row.kind == "real")
        with replacing(KEPT) as out:
            out.write(f'{{"rows": [\n{lines}\n]}}\n'.encode())
