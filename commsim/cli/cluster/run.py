"""``commsim cluster run``: replay a trace under one policy, or under all."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from commsim.core.errors import InputError
from commsim.report.table import print_table, progress, write_results

if TYPE_CHECKING:
    from commsim.cluster.machines import Machines
    from commsim.cluster.outcome import Outcome
    from commsim.cluster.trace_file import TraceJob

COLUMNS = [
    "policy", "jct_mean(h)", "jct_p50(h)", "jct_p99(h)", "queued(h)", "makespan(h)", "gpus_used", "slowdown",
    "link_excess", "starts", "deadlines",
]  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    add = parser.add_argument
    add("cluster", metavar="cluster.toml", help="topology and hosts with GPUs")
    add("--trace", required=True, metavar="FILE.csv|KIND:...", help="jobs, such as poisson:jobs=500,load=0.9,seed=1")
    add("--policy", metavar="NAME[,NAME...]", help="such as fifo, or FILE.py; see commsim cluster policies")
    add("--cassini", action="store_true", help="rank placements and shift jobs by CASSINI")
    add("--compare", action="store_true", help="all policies (or those named), each without and with CASSINI")
    add("--assume", metavar="FILE.toml", help="models, types of GPUs, CPUs, hosts that inference lends, restart time")
    add("--largest", type=int, metavar="GPUS", help="leave larger jobs out; otherwise one is an error if it cannot fit")
    add("--seed", type=int, default=0, help="of shifts, of routes' hashes and of the models of public logs (0)")
    add("--json", metavar="FILE", help="also write the results as JSON")
    add("--csv", metavar="FILE", help="also write one line per job")
    add("--plot", metavar="FILE.svg", help="also draw the spread of JCT and the use of GPUs")


def main(args: argparse.Namespace) -> int:
    """Replay, print, write."""
    from commsim.cluster.machines import machines_of
    from commsim.cluster.models import Assumptions, read_assumptions
    from commsim.cluster.simulate import simulate_cluster
    from commsim.cluster.traces import load_trace
    from commsim.placement.cluster import read_cluster

    runs = _runs(args)
    if args.plot:
        from commsim.report.paint import check_drawable

        check_drawable(args.plot)
    if args.seed < 0:
        raise InputError(f"--seed must be 0 or more, got {args.seed}")
    assumed = read_assumptions(args.assume) if args.assume else Assumptions()
    machines = machines_of(read_cluster(args.cluster), assumed)
    jobs = load_trace(args.trace, machines.n_gpus, assumed.models, args.seed)
    kept = _small_enough(jobs, args.largest)
    _say_what_is_run(args, machines, jobs, kept)
    outcomes = [
        simulate_cluster(machines, kept, policy, cassini=cassini, assumed=assumed, seed=args.seed)
        for policy, cassini in progress(runs, "policies")
    ]
    print_table(COLUMNS, [_row(one) for one in outcomes])
    _write(args, outcomes)
    return 0


def _runs(args: argparse.Namespace) -> list[tuple[str, bool]]:
    from commsim.cluster.policy import POLICIES, load_policy

    named = [load_policy(text).name for text in args.policy.split(",")] if args.policy else []
    if args.compare:
        if args.cassini:
            raise InputError("--compare runs every policy without and with CASSINI; --cassini says nothing beside it")
        return [(name, cassini) for name in named or POLICIES for cassini in (False, True)]
    if not named:
        raise InputError(f"run needs --policy or --compare; policies are {', '.join(POLICIES)}")
    return [(name, args.cassini) for name in named]


def _small_enough(jobs: tuple[TraceJob, ...], largest: int | None) -> tuple[TraceJob, ...]:
    kept = tuple(job for job in jobs if largest is None or job.gpus <= largest)
    if not kept:
        raise InputError(f"--largest {largest} leaves no job of {len(jobs)}")
    return kept


def _say_what_is_run(
    args: argparse.Namespace, machines: Machines, jobs: tuple[TraceJob, ...], kept: tuple[TraceJob, ...]
) -> None:
    name = machines.cluster.network.name
    print(f"# {len(kept)} jobs on {machines.n_gpus} GPUs of {len(machines.names)} hosts, {name}")
    if len(kept) < len(jobs):
        print(f"# left out: {len(jobs) - len(kept)} jobs of more than {args.largest} GPUs")
    if machines.inference.any():
        print(
            f"# inference lends {int(machines.gpus[machines.inference].sum())} more GPUs, by the time of day (assumed)"
        )
    if any(job.model for job in kept):
        print("# iteration times and traffic of models are assumed: commsim cluster models; --assume sets them")


def _row(outcome: Outcome) -> list[str]:
    row = outcome.row()
    hours = [
        f"{row[key] / 3600:.3f}" for key in ("jct_mean_s", "jct_p50_s", "jct_p99_s", "queued_mean_s", "makespan_s")
    ]
    met = "-" if row["deadlines_met"] is None else f"{row['deadlines_met']:.1%}"
    shares = [f"{row['utilisation']:.1%}", f"{row['slowdown_mean']:.3f}", f"{row['link_excess']:.2%}"]
    return [outcome.label, *hours, *shares, f"{row['starts']}", met]


def _write(args: argparse.Namespace, outcomes: list[Outcome]) -> None:
    if args.json:
        config = {key: value for key, value in vars(args).items() if key not in ("json", "csv", "plot", "what")}
        write_results(args.json, config, [one.row() for one in outcomes])
    if args.csv:
        from commsim.cluster.outcome import write_jobs

        write_jobs(args.csv, outcomes)
    if args.plot:
        from commsim.report.chart import draw_outcomes
        from commsim.report.paint import write_picture

        write_picture(draw_outcomes(outcomes), args.plot)
