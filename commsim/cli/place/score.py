"""``commsim place score``: jobs on one link, without a cluster."""

from __future__ import annotations

import argparse

from commsim.core.units import format_bandwidth, parse_bandwidth
from commsim.report.table import print_table

from .candidates import add_score_arguments, settings_of, write


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    parser.add_argument("jobs", metavar="JOBS.json", help="jobs with their phases; all send over the link")
    parser.add_argument("--capacity", required=True, metavar="RATE", help="of the link, such as 50Gbps")
    add_score_arguments(parser, longest="10s")


def main(args: argparse.Namespace) -> int:
    """Turn the circles, and say when each job should start."""
    from commsim.placement.candidate import simulated_times
    from commsim.placement.score import score_link
    from commsim.workload.sharing.periodic import read_jobs

    capacity, s = parse_bandwidth(args.capacity, "--capacity"), settings_of(args)
    jobs = read_jobs(args.jobs)
    found = score_link(jobs, capacity, angles=s.angles, step=s.step, quantum=s.quantum, longest=s.longest)
    circle = found.circle
    shifts = {job.name: round(shift * 1e3, 9) for job, shift in zip(jobs, found.shifts.tolist(), strict=True)}
    tree = {
        "score": round(found.score, 9) + 0.0,
        "shifts_ms": shifts,
        "perimeter_ms": round(circle.perimeter * 1e3, 9),
        "is_common_multiple": circle.is_common,
        "angles": circle.n_angles,
        "is_exhaustive": found.is_exhaustive,
        "period_rounding_ms": round(circle.rounding * 1e3, 9),
    }
    if args.check:
        times = simulated_times(jobs, capacity, found.shifts)
        tree["predicted_iteration_ms"] = {name: round(time * 1e3, 9) for name, time in times.items()}
        tree["agrees"] = (found.score > 1 - 1e-9) == all(times[job.name] < job.period * 1.001 for job in jobs)
    if args.json != "-":
        for key, value in tree.items():
            if not isinstance(value, dict):
                print(f"# {key}: {value}")
        columns = ["job", "start(ms)", "alone(ms)"] + (["iteration(ms)"] if args.check else [])
        rows = [[job.name, f"{shifts[job.name]:.3f}", f"{job.period * 1e3:.3f}"] for job in jobs]
        if args.check:
            rows = [[*row, f"{times[job.name] * 1e3:.3f}"] for row, job in zip(rows, jobs, strict=True)]
        print_table(columns, rows, f"{len(jobs)} jobs on a link of {format_bandwidth(capacity)}")
    write(args, tree)
    return 0
