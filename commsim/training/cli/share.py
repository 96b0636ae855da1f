"""``commsim workload share``: several jobs on one network, iteration after iteration."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from commsim.cli.flags import DefaultOf, WithJson, flag
from commsim.cli.flags.faults import Faults, Hashes, with_faults
from commsim.core.errors import InputError
from commsim.core.remark import Remark
from commsim.core.units import count_text, format_time, parse_time
from commsim.prediction.node_lists import placement_file
from commsim.report.answer import Answer, Part, Table, remarks
from commsim.report.hash_columns import with_ends

if TYPE_CHECKING:
    from commsim.placement.cluster import Cluster
    from commsim.training.sharing.over_hashes import Laid, RunOfHashes
    from commsim.training.sharing.periodic import PeriodicJob
    from commsim.training.sharing.shared_links import Mltcp
    from commsim.training.sharing.shared_run import SharedRun

# How many links are printed; the JSON has all that jobs share.
N_LINKS = 10


class WorkloadShareConfig(WithJson, Faults, Hashes):
    """All flags of ``commsim workload share``."""

    cluster: str = flag("cluster", metavar="CLUSTER.toml|NAME:key=value,...|FILE", help="a cluster, or a network")
    jobs: str = flag("jobs", metavar="JOBS.json", help="jobs with their phases and placements")
    sharing: str = flag(
        default=DefaultOf("commsim.training.sharing.shared_links:simulate_jobs.sharing"),
        metavar="HOW",
        help="fair, weighted, priority or mltcp",
    )
    shifts: str | None = flag(
        metavar="JOB=TIME,...|FILE.json",
        help="start times (default: 0 s). JSON of `commsim place` gives start times, and placements of jobs without "
        "one. It also gives --fail, --scale, --seed and --hashes, unless you give them",
    )
    weights: str | None = flag(metavar="JOB=X,...", help="weights, for weighted sharing (default: 1)")
    priorities: str | None = flag(
        metavar="JOB=N,...|crux",
        help="priorities, for priority sharing; 0 is the highest (default: 0); crux: paths and 8 priority levels as "
        "Crux assigns them",
    )
    mltcp: str | None = flag(
        metavar="slope=X,intercept=Y",
        help="parameters, for mltcp sharing (default: slope=%(slope)s,intercept=%(intercept)s)",
        shown={
            name: DefaultOf(f"commsim.training.sharing.shared_links:Mltcp.{name}", "{:g}".format)
            for name in ("slope", "intercept")
        },
    )
    iterations: int = flag(
        default=DefaultOf("commsim.training.sharing.shared_links:simulate_jobs.iterations"),
        metavar="N",
        help="iterations of each job; times are means of the second half of them",
    )
    jitter: float = flag(
        default=0.0, metavar="SIGMA", help="standard deviation of the logarithm of compute times (default: 0)"
    )
    adjust: float | None = flag(
        metavar="X", help="delay jobs that are out of step by more than this fraction of an iteration"
    )
    seed: int | None = flag(metavar="N", help="seed of jitter, of hashes in routing and of faults (default: 0)")


def run(config: WorkloadShareConfig) -> Answer:
    """Run the jobs together, and say what each lost, and where."""
    from commsim.placement.node_names import on_nodes
    from commsim.placement.starts.demand import delivered
    from commsim.prediction.plans.draws import HASHES, hash_seeds
    from commsim.routing.routing import is_hashed
    from commsim.training.sharing.over_hashes import run_over_hashes
    from commsim.training.sharing.periodic import read_jobs
    from commsim.training.sharing.shared_links import simulate_jobs

    cluster, jobs = _cluster(config.cluster), read_jobs(config.jobs)
    config, notes, hash_seed = _as_placed(config)
    seed = config.seed or 0
    if config.fail or config.scale:
        network, drawn = with_faults(cluster.network, config)
        cluster, notes = dataclasses.replace(cluster, network=network), [*notes, *drawn]
    jobs, shifts = _shifts(config.shifts, jobs)
    jobs = on_nodes(cluster, jobs)
    _check_placed(config.jobs, cluster, jobs)
    lay, options = _laid_by(config, cluster, jobs)
    seeds = [seed, *hash_seeds(seed, (config.hashes or HASHES) if is_hashed(cluster.network.routing) else 1)]
    if hash_seed is not None and hash_seed not in seeds:
        seeds.insert(0, hash_seed)

    def play(laid: Laid) -> SharedRun:
        sent = delivered(cluster, jobs, np.asarray(laid.use), laid.seed)
        levels = {} if laid.levels is None else {"priorities": laid.levels}
        return simulate_jobs(
            cluster.network, sent, list(laid.use), shifts=shifts, iterations=config.iterations, sharing=config.sharing,
            jitter=config.jitter, adjust=config.adjust, seed=seed, **options | levels,
        )  # fmt: skip

    found = run_over_hashes(cluster.network, seeds, lay, play, hash_seed)
    outcome = found.run
    more = {"links": outcome.link_rows(), "time_s": outcome.time}
    if config.priorities == "crux":
        levels = zip((job.name for job in jobs), found.laid.levels or (), strict=True)
        text = ", ".join(f"{name}={level}" for name, level in levels)
        notes.append(Remark("priorities", f"priorities by Crux, on its paths: {text}"))
    return Answer([*remarks(notes), *_parts(found, config)], found.job_rows(), more=more)


def _laid_by(
    config: WorkloadShareConfig, cluster: Cluster, jobs: Sequence[PeriodicJob]
) -> tuple[Callable[[int], Laid], dict[str, Any]]:
    """Return what lays jobs over links by a hash, and the other options of the simulation.

    Raises
    ------
    InputError
        If a way of sharing lacks its numbers, or these are wrong.
    """
    from commsim.placement.starts.job_uses import job_uses
    from commsim.training.sharing.over_hashes import Laid

    options: dict[str, Any] = {"mltcp": _mltcp(config.mltcp)}
    if config.weights is not None:
        options["weights"] = _values("--weights", config.weights, jobs, 1.0, float)
    elif config.sharing == "weighted":
        raise InputError("weighted sharing needs --weights JOB=X,...")
    if config.sharing == "priority" and config.priorities is None:
        raise InputError("priority sharing needs --priorities JOB=N,... or --priorities crux")
    if config.priorities != "crux":
        if config.priorities is not None:
            options["priorities"] = _values("--priorities", config.priorities, jobs, 0.0, float)
        return lambda seed: Laid(job_uses(cluster, jobs, seed), seed=seed), options
    from commsim.placement.crux_plan import plan_crux

    def lay(seed: int) -> Laid:
        plan = plan_crux(cluster, jobs, seed=seed)
        return Laid(plan.use, tuple(plan.level), seed)

    return lay, options


def _as_placed(config: WorkloadShareConfig) -> tuple[WorkloadShareConfig, list[Remark], int | None]:
    """Take the faults and the seed of a file of `commsim place`, whose start times are for that network.

    Returns
    -------
    WorkloadShareConfig, list of Remark, int or None
        The flags with them, what was taken, and the seed of the hash of paths with which the first candidate is the
        median; None where one hash was drawn, or another seed is given.
    """
    if config.shifts is None or placement_file(config.shifts) is None:
        return config, [], None
    from commsim.core.files.fields import TableFields
    from commsim.core.files.whole_files import read_tree

    tree = TableFields(read_tree(config.shifts), config.shifts)
    placed = tree.table("config")
    found: dict[str, Any] = {
        name: tuple(placed.items(name, str, "text, as of the flag")) for name in ("fail", "scale") if name in placed
    }
    if placed.raw("seed") is not None:
        found["seed"] = placed.whole("seed", maximum=2**63 - 1)
    if placed.raw("hashes") is not None:
        found["hashes"] = placed.whole("hashes", 1)
    found = {name: value for name, value in found.items() if value and not getattr(config, name)}
    each = [(name, one) for name, value in found.items() for one in (value if isinstance(value, tuple) else [value])]
    text = " ".join(f"--{name} {one}" for name, one in each)
    notes = [Remark("as-placed", f"as in {config.shifts}: {text}")] if text else []
    hash_seed = None
    if not config.seed and "candidates" in tree and (candidates := tree.tables("candidates")):
        best = candidates[0]
        hash_seed = None if best.raw("hash_seed") is None else best.whole("hash_seed", maximum=2**63 - 1)
    return dataclasses.replace(config, **found), notes, hash_seed


def _cluster(text: str) -> Cluster:
    """Read a cluster, or take the hosts of a network, on which places are not counted."""
    from commsim.core.files.whole_files import read_tree
    from commsim.placement.cluster import Cluster, read_cluster
    from commsim.prediction.inputs import load_network

    if Path(text).suffix in (".toml", ".json") and "topology" in read_tree(text):
        return read_cluster(text)
    return Cluster(load_network(text), 0)


def _check_placed(path: str, cluster: Cluster, jobs: Sequence[PeriodicJob]) -> None:
    hosts = {cluster.network.nodes[i] for i in cluster.network.endpoints}
    for job in jobs:
        if job.placement is None:
            raise InputError(f"{path}: {job.name} needs a placement, or --shifts a file that has one")
        for name in job.placement:
            if name not in hosts:
                raise InputError(f"{path}: {job.name} is placed on {name!r}, not a host of {cluster.network.name}")


def _shifts(text: str | None, jobs: tuple[PeriodicJob, ...]) -> tuple[tuple[PeriodicJob, ...], list[float]]:
    """Read when jobs start; a file that `commsim place` wrote also says where."""
    if text is None or placement_file(text) is None:
        starts = [job.start or 0.0 for job in jobs]
        return jobs, _values("--shifts", text or "", jobs, starts, lambda value: parse_time(value, "--shifts"))
    from commsim.core.files.fields import TableFields
    from commsim.core.files.whole_files import read_tree

    top = TableFields(read_tree(text), text)
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
    shifts = [table.number(job.name, (job.start or 0.0) * 1e3) / 1e3 for job in jobs]
    placed = [
        dataclasses.replace(job, placement=tuple(places.items(job.name, str, "the name of a node")))
        if job.placement is None and job.name in places
        else job
        for job in jobs
    ]
    return tuple(placed), shifts


def _values(
    flag: str, text: str, jobs: Sequence[PeriodicJob], usual: float | Sequence[float], parse: Callable[[str], float]
) -> list[float]:
    """Read ``JOB=VALUE,...``; jobs that are not named have the usual value, one for all or for each."""
    each = [usual] * len(jobs) if isinstance(usual, (int, float)) else usual
    values = {job.name: value for job, value in zip(jobs, each, strict=True)}
    names: set[str] = set()
    for part in filter(None, text.split(",")):
        name, equals, value = part.strip().rpartition("=")
        if not equals or name not in values:
            known = ", ".join(values)
            raise InputError(f"{flag} must be JOB=VALUE,... with the jobs {known}, got {part!r}")
        if name in names:
            raise InputError(f"{flag} names {name} twice")
        names.add(name)
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
    from commsim.training.sharing.shared_links import Mltcp

    return Mltcp(**read_arguments(Mltcp, split_spec(f"mltcp:{text}")[1], name="--mltcp"))


def _parts(found: RunOfHashes, config: WorkloadShareConfig) -> list[Part]:
    """Return what each job lost, and the links that jobs share."""
    outcome, rows = found.run, found.job_rows()
    jobs_on = f"{count_text(len(outcome.jobs), 'job')} on {outcome.network.name}"
    title = f"{jobs_on}, {config.sharing} sharing, {count_text(config.iterations, 'iteration')}"
    jobs = [
        [
            row["job"],
            format_time(row["shift_s"]),
            format_time(row["alone_s"]),
            format_time(row["iteration_s"]),
            format_time(row["iteration_p90_s"]),
            f"{row['slowdown']:.4f}x",
            format_time(row["communication_s"]),
            f"{row['contended_s'] / outcome.time:.1%}",
            f"{row['adjustments']}",
        ]
        for row in rows
    ]
    if found.hashes is not None:
        title += f", median of {found.hashes[0].n} hashes of ECMP"
    columns = ["job", "start", "alone", "iteration", "p90", "slowdown", "communication", "held back", "adjusted"]
    table = Table(*with_ends(columns, jobs, 4, rows), title)
    links = outcome.link_rows()
    if not links:
        return [table, *remarks([Remark("nothing-shared", "no two jobs share a link", needed=True)])]
    shown = [
        [row["link"], f"{row['utilisation']:.1%}", f"{row['contended_share']:.1%}", f"{row['excess_share']:.1%}",
         ", ".join(row["jobs"])]
        for row in links[:N_LINKS]
    ]  # fmt: skip
    more = f", the first {N_LINKS} of {len(links)}" if len(links) > N_LINKS else ""
    return [table, Table(["link", "used", "contended", "excess", "jobs"], shown, f"links that jobs share{more}")]
