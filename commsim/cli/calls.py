"""``commsim calls FILE ...``: the collective calls of a profile, as a job for ``place`` and as a graph of tasks."""

from __future__ import annotations

import argparse
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from commsim.core.errors import InputError
from commsim.core.units import format_size, format_time, parse_time
from commsim.report.table import print_remarks, print_table, write_results

from .flags.outputs import check_written

if TYPE_CHECKING:
    from commsim.formats.calls import Call, Iteration

COLUMNS = ["operation", "size", "group", "ranks", "calls", "median", "untimed"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    add = parser.add_argument
    add("files", nargs="+", metavar="FILE", help="flight recorder (JSON, pickle) or Kineto trace, one a rank")
    add("--name", metavar="TEXT", help="of the job (the first file's)")
    add("--period", metavar="TIME", help="of an iteration, where nothing in the profile repeats")
    add("--gap", metavar="TIME", default="0ms", help="phases of the job that are no further apart are one (0ms)")
    add("--job", metavar="FILE.json", help="write the job for `commsim place`: its phases on a link")
    add("--graph", metavar="FILE.toml", help="write one iteration as tasks for `commsim workload run --graph`")
    add("--json", metavar="FILE", help="also write the calls of one iteration as JSON")


def main(args: argparse.Namespace) -> int:
    """Read, print and write."""
    from commsim.formats.calls import last_iteration, periodic_job, task_tables
    from commsim.formats.profiles import read_calls

    check_written([args.job, args.graph, args.json], args.files)
    period = _period(args.period)
    if args.graph and Path(args.graph).suffix not in (".toml", ".json"):
        raise InputError(f"{args.graph}: a graph of tasks is a file that ends with .toml or .json")
    gap = parse_time(args.gap, "--gap")
    notes: list[str] = []
    profiles = [read_calls(path, notes) for path in args.files]
    print_remarks((*notes, *_missing_ranks([calls for calls, _ in profiles])))
    calls, steps = profiles[0]
    print_table(COLUMNS, _rows(calls), f"{args.files[0]}: {len(calls)} calls of rank {_shown(calls[0].rank)}")
    if not (args.job or args.graph or args.json or args.period):
        return 0
    iteration = last_iteration(calls, steps, period)
    name = args.name or Path(args.files[0]).name.split(".")[0]
    seen = f"{iteration.n_seen} in the profile" if iteration.n_seen > 1 else "the only one in the profile"
    print(f"# iteration: {len(iteration.calls)} calls in {format_time(iteration.period)}, {seen}")
    if args.job:
        from commsim.files.whole_files import write_json

        write_json(args.job, [periodic_job(iteration, name, gap)])
    if args.graph:
        from commsim.files.whole_files import write_tree

        write_tree(args.graph, task_tables(iteration))
    if args.json:
        config = {k: v for k, v in vars(args).items() if k != "json"}
        write_results(args.json, config, _json_rows(iteration), period_s=iteration.period)
    for path in filter(None, (args.job, args.graph)):
        print(f"{path}: written")
    return 0


def _period(text: str | None) -> float | None:
    if text is None:
        return None
    period = parse_time(text, "--period")
    if not period:
        raise InputError(f"--period must be more than 0, got {text!r}")
    return period


def _rows(calls: tuple[Call, ...]) -> list[list[str]]:
    """One row for each kind of call, those that send the most first."""
    import statistics

    kinds: dict[tuple[str, float, str, int | None], list[float | None]] = {}
    for call in calls:
        kinds.setdefault((call.operation, call.size, call.group, call.n_ranks), []).append(call.duration)
    rows = []
    for kind, durations in sorted(kinds.items(), key=lambda item: -item[0][1] * len(item[1])):
        operation, size, group, n_ranks = kind
        times = [time for time in durations if time is not None]
        median = format_time(statistics.median(times)) if times else "-"
        rows.append([operation, format_size(size), group or "-", _shown(n_ranks), f"{len(durations)}", median,
                     f"{len(durations) - len(times)}"])  # fmt: skip
    return rows


def _missing_ranks(profiles: list[tuple[Call, ...]]) -> list[str]:
    """Say which ranks have no file, and refuse two files of one rank."""
    ranks = [calls[0].rank for calls in profiles]
    known = [rank for rank in ranks if rank is not None]
    if len(set(known)) < len(known):
        twice = next(rank for rank in known if known.count(rank) > 1)
        raise InputError(f"two files are of rank {twice}; give one file for each rank")
    expected = max((call.n_ranks or 0 for calls in profiles for call in calls), default=0)
    missing = list(islice((rank for rank in range(expected) if rank not in known), 9))
    if len(known) < len(ranks) or not missing:
        return []
    names = ", ".join(map(str, missing[:8])) + (" and so on" if len(missing) > 8 else "")
    return [f"{len(known)} of {expected} ranks have a file; without one: {names}"]


def _json_rows(iteration: Iteration) -> list[dict[str, object]]:
    return [
        {"operation": c.operation, "size_B": c.size, "n_ranks": c.n_ranks, "group": c.group,
         "start_s": c.start - iteration.begin, "time_s": c.duration}
        for c in iteration.calls
    ]  # fmt: skip


def _shown(value: int | None) -> str:
    return "unknown" if value is None else str(value)
