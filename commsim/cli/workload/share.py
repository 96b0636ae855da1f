"""``commsim workload share``: several jobs on one network, iteration after iteration."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.core.units import format_time, parse_time
from commsim.report.table import print_table, write_results

if TYPE_CHECKING:
    from commsim.placement.cluster import Cluster
    from commsim.workload.sharing.periodic import PeriodicJob
    from commsim.workload.sharing.shared_links import Mltcp
    from commsim.workload.sharing.shared_run import SharedRun

N_LINKS = 10
"""How many links are printed; the JSON has all that jobs share."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    add = parser.add_argument
    add("cluster", metavar="CLUSTER.toml|NAME:key=value,...|FILE", help="a cluster, or a network")
    add("jobs", metavar="JOBS.json", help="jobs with their phases and placements")
    add("--sharing", default="fair", metavar="HOW", help="fair, weighted, priority or mltcp (fair)")
    what = "when jobs start (0 s), or what `commsim place --json` wrote: shifts, and placements where jobs have none"
    add("--shifts", metavar="JOB=TIME,...|FILE.json", help=what)
    add("--weights", metavar="JOB=X,...", help="of weighted sharing (1)")
    add("--priorities", metavar="JOB=N,...|crux", help="of priority sharing, 0 first (0); crux: its paths and 8 levels")
    add("--mltcp", metavar="slope=X,intercept=Y", help="of mltcp sharing (slope=4,intercept=0.25)")
    add("--iterations", type=int, default=100, metavar="N", help="of each job (100)")
    add("--jitter", type=float, default=0.0, metavar="SIGMA", help="standard deviation of the log of compute times (0)")
    add("--adjust", type=float, metavar="X", help="a job waits that is out of step by this part of its iteration")
    add("--seed", type=int, metavar="N", help="of jitter, and of the hashes in routing (0)")
    add("--json", metavar="FILE", help="also write the results as JSON")


def main(args: argparse.Namespace) -> int:
    """Run the jobs together, and print what each lost, and where."""
    seed = args.seed or 0
    if seed < 0:
        raise InputError(f"--seed must be 0 or more, got {seed}")
    from commsim.placement.link_use import link_uses
    from commsim.workload.sharing.periodic import read_jobs
    from commsim.workload.sharing.shared_links import simulate_jobs

    cluster, jobs = _cluster(args.cluster), read_jobs(args.jobs)
    jobs, shifts = _shifts(args.shifts, jobs)
    _check_placed(args.jobs, cluster, jobs)
    options: dict[str, Any] = {"mltcp": _mltcp(args.mltcp)}
    if args.priorities == "crux":
        from commsim.placement.crux_plan import plan_crux

        plan = plan_crux(cluster, jobs, seed=seed)
        use, options["priorities"] = plan.use, plan.level
        levels = ", ".join(f"{job.name}={level}" for job, level in zip(jobs, plan.level, strict=True))
        print(f"# priorities by Crux, on the paths that it chose: {levels}")
    else:
        use = link_uses(cluster, [job.placement or () for job in jobs], seed)
        if args.priorities is not None:
            options["priorities"] = _values("--priorities", args.priorities, jobs, 0.0, float)
    if args.weights is not None:
        options["weights"] = _values("--weights", args.weights, jobs, 1.0, float)
    elif args.sharing == "weighted":
        raise InputError("weighted sharing needs --weights JOB=X,...")
    if args.sharing == "priority" and args.priorities is None:
        raise InputError("priority sharing needs --priorities JOB=N,... or --priorities crux")
    run = simulate_jobs(
        cluster.network, jobs, list(use), shifts=shifts, iterations=args.iterations, sharing=args.sharing,
        jitter=args.jitter, adjust=args.adjust, seed=seed, **options,
    )  # fmt: skip
    _print(run, args)
    if args.json:
        config = {k: v for k, v in vars(args).items() if k not in ("json", "what") and v is not None}
        write_results(args.json, config, run.job_rows(), links=run.link_rows(), time_s=run.time)
    return 0


def _cluster(text: str) -> Cluster:
    """Read a cluster, or take the hosts of a network, on which places are not counted."""
    from commsim.files.whole_files import read_tree
    from commsim.placement.cluster import Cluster, read_cluster
    from commsim.run.inputs import load_network

    if Path(text).suffix in (".toml", ".json") and "topology" in read_tree(text):
        return read_cluster(text)
    return Cluster(load_network(text), 0)


def _check_placed(path: str, cluster: Cluster, jobs: Sequence[PeriodicJob]) -> None:
    seats = {cluster.network.nodes[i] for i in cluster.network.endpoints}
    for job in jobs:
        if job.placement is None:
            raise InputError(f"{path}: {job.name} needs a placement, or --shifts a file that has one")
        for name in job.placement:
            if name not in seats:
                raise InputError(f"{path}: {job.name} is placed on {name!r}, not a host of {cluster.network.name}")


def _shifts(text: str | None, jobs: tuple[PeriodicJob, ...]) -> tuple[tuple[PeriodicJob, ...], list[float]]:
    """Read when jobs start; a file that `commsim place` wrote also says where."""
    if text is None or Path(text).suffix != ".json":
        return jobs, _values("--shifts", text or "", jobs, 0.0, lambda value: parse_time(value, "--shifts"))
    import dataclasses

    from commsim.files.fields import Fields
    from commsim.files.whole_files import read_tree

    top = Fields(read_tree(text), text)
    best = top
    if "candidates" in top:
        candidates = top.tables("candidates")
        if not candidates:
            top.fail("candidates", "must not be empty")
        best = candidates[0]
    if "shifts_ms" not in best:
        best.fail(None, "has no shifts_ms: a table of milliseconds by job")
    table, places = best.table("shifts_ms"), best.table("placement")
    names = {job.name for job in jobs}
    if unknown := [name for name in table if name not in names]:
        table.fail(unknown[0], f"is not one of the jobs: {', '.join(sorted(names))}")
    shifts = [table.number(job.name, 0.0) / 1e3 for job in jobs]
    placed = [
        dataclasses.replace(job, placement=tuple(places.items(job.name, str, "the name of a node")))
        if job.placement is None and job.name in places
        else job
        for job in jobs
    ]
    return tuple(placed), shifts


def _values(
    flag: str, text: str, jobs: Sequence[PeriodicJob], usual: float, parse: Callable[[str], float]
) -> list[float]:
    """Read ``JOB=VALUE,...``; jobs that are not named have the usual value."""
    values = {job.name: usual for job in jobs}
    named: set[str] = set()
    for part in filter(None, text.split(",")):
        name, equals, value = part.strip().rpartition("=")
        if not equals or name not in values:
            known = ", ".join(values)
            raise InputError(f"{flag} must be JOB=VALUE,... with the jobs {known}, got {part!r}")
        if name in named:
            raise InputError(f"{flag} names {name} twice")
        named.add(name)
        try:
            values[name] = parse(value)
        except InputError:
            raise
        except ValueError:
            raise InputError(f"{flag} of {name} must be a number, got {value!r}") from None
    return list(values.values())


def _mltcp(text: str | None) -> Mltcp | None:
    if text is None:
        return None
    from commsim.core.spec import read_arguments, split_spec
    from commsim.workload.sharing.shared_links import Mltcp

    return Mltcp(**read_arguments(Mltcp, split_spec(f"mltcp:{text}")[1]))


def _print(run: SharedRun, args: argparse.Namespace) -> None:
    title = f"{len(run.jobs)} jobs on {run.network.name}, {args.sharing} sharing, {args.iterations} iterations"
    jobs = [
        [
            row["job"],
            format_time(row["shift_s"]),
            format_time(row["alone_s"]),
            format_time(row["iteration_s"]),
            format_time(row["iteration_p90_s"]),
            f"{row['slowdown']:.4f}x",
            format_time(row["communication_s"]),
            f"{row['contended_s'] / run.time:.1%}",
            f"{row['adjustments']}",
        ]
        for row in run.job_rows()
    ]
    columns = ["job", "start", "alone", "iteration", "p90", "slowdown", "communication", "held back", "adjusted"]
    print_table(columns, jobs, title)
    links = run.link_rows()
    if not links:
        print("# no two jobs share a link")
        return
    shown = [
        [row["link"], f"{row['utilisation']:.1%}", f"{row['contended_share']:.1%}", f"{row['excess_share']:.1%}",
         ", ".join(row["jobs"])]
        for row in links[:N_LINKS]
    ]  # fmt: skip
    more = f", the first {N_LINKS} of {len(links)}" if len(links) > N_LINKS else ""
    print_table(["link", "used", "contended", "excess", "jobs"], shown, f"links that jobs share{more}")
