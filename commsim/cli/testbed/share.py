"""``commsim testbed share``: two jobs on the same links, at once and shifted."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import numpy as np

from commsim.core.errors import InputError
from commsim.core.units import parse_size, parse_time
from commsim.report.table import print_table, write_results

from .run import add_testbed_arguments, testbed_of

if TYPE_CHECKING:
    from commsim.testbed.layout import Layout
    from commsim.testbed.share import Shared

COLUMNS = ["shift(ms)", "job", "time(ms)", "spread(ms)", "alone(ms)", "predicted(ms)", "error", "slowdown"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    add = parser.add_argument
    add_testbed_arguments(parser)
    add("--jobs", metavar="h0,h2;h1,h3", required=True, help="hosts of each job, in rank order")
    add("--collective", default="ring_all_reduce", metavar="NAME:key=value,...", help="of each (ring_all_reduce)")
    add("--size", default="4MiB", metavar="SIZE", help="of each all-reduce (4MiB)")
    add("--compute", default="500ms", metavar="TIME", help="between two all-reduces of a job (500ms)")
    add("--shifts", default="0ms,250ms", metavar="TIME,...", help="of the second job's start (0ms,250ms)")
    add("--iterations", type=int, default=5, metavar="N", help="all-reduces of each job (5)")
    add("--json", metavar="FILE", help="also write the results as JSON")


def main(args: argparse.Namespace) -> int:
    """Run, predict, and print."""
    size, compute = int(parse_size(args.size, "--size")), parse_time(args.compute, "--compute")
    shifts = [parse_time(text, "--shifts") for text in args.shifts.split(",")]
    if args.iterations < 1:
        raise InputError(f"--iterations must be at least 1, got {args.iterations}")
    from commsim.run.inputs import load_schedule
    from commsim.testbed.share import share

    with testbed_of(args) as (place, layout):
        seats = _seats(args.jobs, layout)
        schedules = [load_schedule(args.collective, len(nodes)) for nodes in seats]
        found = share(place, layout, schedules, seats, size, shifts, compute=compute, iterations=args.iterations)
    print_table(COLUMNS, [_text(one, j) for one in found for j in range(len(seats))], layout.network.name)
    if args.json:
        config = {k: v for k, v in vars(args).items() if k not in ("json", "what")}
        write_results(args.json, config, [_row(one, j) for one in found for j in range(len(seats))])
    return 0


def _seats(text: str, layout: Layout) -> list[list[int]]:
    names = {layout.network.nodes[seat]: seat for seat in layout.seats}
    jobs = [[name.strip() for name in job.split(",")] for job in text.split(";")]
    for name in (name for job in jobs for name in job if name not in names):
        raise InputError(f"--jobs: {layout.network.name} has no host {name!r}; it has {', '.join(names)}")
    if min(len(job) for job in jobs) < 2:
        raise InputError(f"--jobs: a job has two hosts at least, got {text}")
    return [[names[name] for name in job] for job in jobs]


def _row(one: Shared, j: int) -> dict[str, Any]:
    return {"shift_s": one.shift, "job": j, "time_s": float(one.measured[j]), "alone_s": float(one.alone[j]),
            "predicted_s": float(one.predicted[j]), "error": float(one.error[j]),
            "samples_s": one.times[j].tolist(), "foreign_load": one.load.foreign}  # fmt: skip


def _text(one: Shared, j: int) -> list[str]:
    numbers = (one.shift, one.measured[j], np.ptp(one.times[j]), one.alone[j], one.predicted[j])
    ms = [f"{1e3 * x:.2f}" for x in numbers]
    return [ms[0], str(j), *ms[1:], f"{one.error[j]:+.1%}", f"{one.measured[j] / one.alone[j]:.2f}"]
