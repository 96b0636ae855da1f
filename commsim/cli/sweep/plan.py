"""``commsim sweep plan``: how many points a sweep has, and what they will take."""

from __future__ import annotations

import argparse
import os

from commsim.core.units import format_size, format_time
from commsim.report.table import print_facts, write_results


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    add = parser.add_argument
    add("config", metavar="SWEEP.toml", help="the sweep")
    add("--jobs", type=int, metavar="N", help="workers (one for each processor)")
    add("--max-points", type=int, metavar="N", help="refuse more points than that, before filters (10000000)")
    add("--json", metavar="FILE", help="also write the results as JSON")


def main(args: argparse.Namespace) -> int:
    """Count, measure, and print."""
    from commsim.sweep.config import read_config
    from commsim.sweep.executors import processors
    from commsim.sweep.plan import plan_sweep
    from commsim.sweep.points import MAX_POINTS
    from commsim.sweep.progress import duration

    jobs = processors(args.jobs)
    config = read_config(args.config)
    plan = plan_sweep(config, args.max_points or MAX_POINTS)
    time, uncertain = plan.start + plan.work / jobs, plan.uncertain / jobs
    print_facts({
        "points": f"{plan.n_points} of {plan.n_candidates} before filters" if plan.n_points != plan.n_candidates
                  else f"{plan.n_points}",
        "prepared": f"{plan.n_groups} times; points that differ only in size and engine options share that",
        "measured": f"{plan.n_measured} points: {format_time(plan.first)} with preparation, "
                    f"{format_time(plan.other)} without",
        "work": f"{duration(plan.work)} of processor time, give or take {duration(plan.uncertain)}",
        "time": f"{duration(time)} with {jobs} workers, give or take {duration(uncertain)}, of which "
                f"{duration(plan.start)} to start",
        "memory": f"{format_size(jobs * plan.memory)}: {format_size(plan.memory)} for each worker",
    })  # fmt: skip
    print("# 95 of 100 such plans are not further off, on processors as free as they are now")
    if plan.n_walked < plan.n_points:
        print(f"# only the first {plan.n_walked} points were looked at; the others are taken to be like these")
    for why in plan.failed:
        print(f"# a measured point fails: {why}")
    if args.json:
        row = {
            "n_candidates": plan.n_candidates, "n_points": plan.n_points, "n_prepared": plan.n_groups,
            "n_measured": plan.n_measured, "first_s": plan.first, "other_s": plan.other, "start_s": plan.start,
            "work_s": plan.work, "work_uncertain_s": plan.uncertain, "jobs": jobs, "time_s": time,
            "uncertain_s": uncertain, "memory_B": jobs * plan.memory,
            "failed": list(plan.failed),
        }  # fmt: skip
        write_results(args.json, {"config": os.fspath(args.config)}, [row])
    return 0
