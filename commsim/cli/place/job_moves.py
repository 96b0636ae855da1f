"""``commsim place moves``: which running job to move, so that it and the others lose less."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from commsim.cli.flags import flag, switched
from commsim.cli.flags.faults import Faults
from commsim.report.answer import Answer, Table, remarks

from .candidates import MAX_HOSTS, Scoring, generators_of, settings_of

if TYPE_CHECKING:
    from commsim.placement.cluster import Cluster
    from commsim.placement.moves import Move
    from commsim.workload.sharing.periodic import PeriodicJob


class Config(Scoring, Faults):
    """All flags of ``commsim place moves``."""

    cluster: str = flag("cluster", metavar="CLUSTER.toml", help="a topology, and hosts with GPUs")
    jobs: str = flag("jobs", metavar="JOBS.json", help="running jobs, with their phases and placements")
    candidates: int = flag(default=10, metavar="N", help="number of places that are tried for each job")
    generator: str = flag(
        default="packed,balanced,spread,random", metavar="NAME[,NAME...]",
        help="sources of places, in turn: names of placement strategies, or FILE.py",
    )  # fmt: skip
    check: bool = switched(help="simulate each placement, and rank by that; it takes longer")
    seed: int = flag(default=0, metavar="N", help="seed of random candidates, of hashes in routing and of faults")


def run(config: Config) -> Answer:
    """Rank the moves."""
    from commsim.placement.candidate import counted_names
    from commsim.placement.cluster import read_cluster
    from commsim.placement.moves import rank_moves
    from commsim.placement.node_names import on_nodes
    from commsim.workload.sharing.periodic import read_jobs

    cluster = read_cluster(config.cluster)
    jobs = on_nodes(cluster, read_jobs(config.jobs))
    how: dict[str, Any] = {"n": config.candidates, "generators": generators_of(config.generator), "check": config.check}
    how["settings"] = settings_of(config, config.seed)
    cluster, jobs, said, forced = _off_failed(config, cluster, jobs, how)
    found = rank_moves(cluster, jobs, **how)
    columns = ["job", "now", "after", "gain", "others now", "others after", "from", "to"]
    rows = []
    for one in found.moves:
        values = [f"{value:.4f}x" for value in (one.now.stretch, one.after.stretch)]
        values += [f"{one.gain:.4f}", *(f"{value:.4f}x" for value in one.others)]
        rows.append([one.job, *values, counted_names(one.now.placement[one.job], MAX_HOSTS), one.to(MAX_HOSTS)])
    by = found.moves[0].now.prediction
    title = f"stretch of the jobs (iteration time over iter_time_ms), by {by}, now and with one job moved"
    parts = [*remarks([*said, *found.remarks]), Table(columns, rows, title, ["from", "gain"])]
    best = found.moves[0]
    parts += [_times(best)] if best.gain else []
    return Answer(parts, [one.row() for one in found.moves], more={"forced": forced} if forced else {}, key="moves")


def _off_failed(
    config: Config, cluster: Cluster, jobs: tuple[PeriodicJob, ...], how: Mapping[str, Any]
) -> tuple[Cluster, tuple[PeriodicJob, ...], list[str], list[dict[str, Any]]]:
    """Place the jobs on hosts that failed anew, before moves are sought; return remarks, and what had to be moved."""
    from commsim.placement.affected import after_faults
    from commsim.placement.candidate import counted_names
    from commsim.placement.place import place_jobs

    if not (config.fail or config.scale):
        return cluster, jobs, [], []
    cluster, left, said = after_faults(cluster, jobs, config.fail, config.scale, how["settings"])
    moved = [job for job, now in zip(jobs, left, strict=True) if job.placement and now.placement is None]
    if not moved:
        return cluster, left, said, []
    stays = [one for one, job in zip(left, jobs, strict=True) if job.placement]
    best = place_jobs(cluster, stays, **how).candidates[0]
    to = {job.name: best.placement[job.name] for job in moved}
    said += [f"job {name} has to be moved: {counted_names(nodes, MAX_HOSTS)}" for name, nodes in to.items()]
    left = tuple(replace(job, placement=to[job.name], placed=()) if job.name in to else job for job in left)
    forced = [
        {"job": job.name, "placement_now": [*(job.placement or ())], "placement_after": [*to[job.name]],
         "shift_after_ms": round(best.shifts[job.name] * 1e3, 9)}
        for job in moved
    ]  # fmt: skip
    return cluster, left, said, forced


def _times(best: Move) -> Table:
    """Return the iteration times of all jobs with the best move."""
    rows = [
        [name, f"{best.now.predicted[name] * 1e3:.3f}", f"{best.after.predicted[name] * 1e3:.3f}"]
        for name in best.now.predicted
    ]
    return Table(["job", "now(ms)", "after(ms)"], rows, f"iteration times with {best.job} moved:")
