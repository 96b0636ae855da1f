"""Search of placements for a request: beside known jobs by what the new ones cost, else as ``commsim place``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from commsim.core.errors import InputError
from commsim.core.remark import Remark
from commsim.placement.affected import after_faults
from commsim.placement.candidate import counted_names
from commsim.placement.cluster import Cluster
from commsim.placement.job_costs import new_jobs
from commsim.placement.node_names import on_nodes
from commsim.placement.place import GENERATORS, place_jobs, rank_placements
from commsim.placement.ranking import PlacementRanking
from commsim.placement.scores import ScoreSettings
from commsim.placement.strategies.free_gpus import FreeGpus
from commsim.training.sharing.periodic import PeriodicJob

from .beside.kept_jobs import KeptJobs, seeds_of, with_links
from .beside.ranking_beside import RankingBeside, without_kept
from .limits import require_answer, require_work
from .models import Search
from .own_placements import KEY, on_cluster, read_placements
from .state import ClusterState, JobRecord, read_known_jobs

SCHEMA = 1
_LARGE = 20_000  # places in an answer: fewer need not be counted


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """Answer of a search, and the jobs of the request as they were read, for a reservation."""

    tree: dict[str, Any]
    jobs: tuple[PeriodicJob, ...]


def read_search(asked: Search, state: ClusterState) -> Callable[[], SearchAnswer]:
    """Read the request of a search.

    Parameters
    ----------
    asked : Search
        The request.
    state : ClusterState
        The jobs that are known and placed stay where they are and keep their starts, unless the request has one of the
        same name.

    Returns
    -------
    function
        Does the search, and returns the candidates, best first, and notes.

    Raises
    ------
    InputError
        Naming the field that is wrong, or if the search is too much work.
    """
    rows = [job if isinstance(job, str) else job.row() for job in asked.jobs]
    wanted = [known.job for known in read_known_jobs(rows, "request", ("jobs",), state.jobs)]
    own = _own_of(asked, wanted)
    notes = _notes(wanted, state, is_placed=bool(own))
    gone = [job.name for job in wanted if job.name in state.kept.jobs]
    kept = state.kept.changed({}, gone) if gone else state.kept
    is_beside = (
        bool(kept.jobs) and asked.rank_by == "stretch" and asked.loops == "merged" and not asked.check
        and not asked.fail and not asked.scale and not asked.drain
    )  # fmt: skip
    n_gpus, n = sum(job.n_gpus for job in wanted), len(own) or asked.candidates
    if is_beside:
        require_work(len(wanted), n_gpus, n, simulated=False)
        return lambda: _beside(asked, kept, state.seeds, wanted, own, notes)
    jobs = [one.job for one in kept.jobs.values()] + wanted
    require_work(len(jobs), n_gpus, n, simulated=asked.check, n_links=state.cluster.network.n_links)
    return lambda: _as_command(asked, state.cluster, jobs, wanted, own, notes, len(state.seeds))


def _own_of(asked: Search, wanted: Sequence[PeriodicJob]) -> dict[str, list[PeriodicJob]]:
    """Read the placements that the request gives; none without."""
    if asked.placements is None:
        return {}
    if useless := sorted(asked.model_fields_set & {"candidates", "generators"}):
        raise InputError(f"request: {useless[0]} has no effect beside {KEY}, which are the candidates")
    return read_placements(asked.placements, wanted, "request")


def reserved_jobs(found: SearchAnswer) -> list[JobRecord]:
    """Return the jobs of a request with the places and starts of the first candidate."""
    best = found.tree["candidates"][0]
    known = []
    for job in found.jobs:
        start = best["shifts_ms"][job.name] / 1e3
        placed = tuple(best["placement"][job.name])
        known.append(JobRecord(replace(job, placement=None, placed=(), start=start), placed))
    return known


def _notes(wanted: Sequence[PeriodicJob], state: ClusterState, *, is_placed: bool) -> list[str]:
    names = {job.name for job in wanted}
    lines = [
        f"job {known.job.name} has {len(known.placed)} of its {known.job.n_gpus} GPUs: none are kept for the others"
        for known in state.jobs.values()
        if known.placed and known.n_left and known.job.name not in names
    ]
    lines += [
        f"job {known.job.name} is known and has no GPUs yet: none are kept for it; to place both, send its name, too"
        for known in state.jobs.values()
        if not known.placed and known.job.name not in names
    ]
    anew = [job.name for job in wanted if not is_placed and job.placement is None and not job.placed]
    return lines + [
        f"job {name} is known on {counted_names(state.jobs[name].placed)}, and is placed anew: the request has "
        "neither placement nor placed"
        for name in anew
        if name in state.jobs and state.jobs[name].placed
    ]


def _beside(
    asked: Search,
    kept: KeptJobs,
    seeds: tuple[int, ...],
    wanted: Sequence[PeriodicJob],
    own: Mapping[str, Sequence[PeriodicJob]],
    notes: list[str],
) -> SearchAnswer:
    """Rank by what the new jobs cost themselves and those that run."""
    free = without_kept(kept)
    placed, taken = on_cluster(free, own)
    jobs = placed[0][1] if placed else on_nodes(free, wanted)
    new = {job.name for job in new_jobs(wanted) or wanted}
    if asked.seed != seeds[0]:  # other hashes than those that are kept
        seeds = seeds_of(kept.cluster, asked.seed, len(seeds))
        known = [one.job for one in kept.jobs.values()]
        kept = KeptJobs.none(kept.cluster, seeds).changed(with_links(kept.cluster, known, seeds))
    if running := [job for job in jobs if job.name not in new]:
        FreeGpus(free, running)  # refuses GPUs that are not free
        kept = kept.changed(with_links(kept.cluster, running, seeds))
    ranking = RankingBeside(kept, seeds, [job for job in jobs if job.name in new])
    n = len(placed) or asked.candidates
    placed = [(name, [job for job in each if job.name in new]) for name, each in placed]
    ranked = ranking.rank(n, asked.generators or GENERATORS, asked.seed, placed=placed)
    rows = [ranking.row(one, [job.name for job in running]) for one in ranked]
    tree = {"schema": SCHEMA, "candidates": rows, "discarded": [], "notes": [*notes, *ranking.remarks(ranked)]}
    tree |= {"refused": taken} if taken else {}
    if sum(job.n_gpus for job in jobs) * len(rows) > _LARGE:
        require_answer(tree)
    return SearchAnswer(tree, tuple(jobs))


def _as_command(
    asked: Search,
    cluster: Cluster,
    jobs: Sequence[PeriodicJob],
    wanted: Sequence[PeriodicJob],
    own: Mapping[str, Sequence[PeriodicJob]],
    notes: list[str],
    hashes: int,
) -> SearchAnswer:
    """Rank as ``commsim place`` does, with what the jobs cost those that have a placement."""
    running = jobs[: len(jobs) - len(wanted)]
    settings, remarks, taken = ScoreSettings(seed=asked.seed, hashes=hashes), list[Remark](), dict[str, str]()
    left = on_nodes(cluster, running if own else jobs)
    if asked.fail or asked.scale or asked.drain:
        cluster, left, remarks = after_faults(cluster, left, asked.fail, asked.scale, settings, asked.drain)
    if asked.reserve and (away := [job.name for job in left[: len(running)] if job.placement is None]):
        raise InputError(
            f"request: job {away[0]} has to be moved, and the reservation would leave it where it is: name it in jobs"
        )
    how: dict[str, Any] = {"settings": settings, "rank_by": asked.rank_by, "loops": asked.loops}
    how["check"] = asked.check or None
    if own:
        (ranking, taken), left = _ranked_own(cluster, left, wanted, own, how), (*left, *wanted)
    else:
        ranking = place_jobs(
            cluster, left, n=asked.candidates, generators=asked.generators or GENERATORS, costs=True, **how
        )
    tree = ranking.to_dict()
    left_out = ("remarks", *(() if asked.check else ranking.agreement))  # notes has the remarks
    answer = {
        **{key: tree[key] for key in tree if key not in left_out},
        "notes": [*notes, *map(str, remarks), *tree["notes"]],
        **({"refused": taken} if taken else {}),
    }
    require_answer(answer)
    return SearchAnswer(answer, tuple(left[len(left) - len(wanted) :]))


def _ranked_own(
    cluster: Cluster,
    running: Sequence[PeriodicJob],
    wanted: Sequence[PeriodicJob],
    own: Mapping[str, Sequence[PeriodicJob]],
    how: Mapping[str, Any],
) -> tuple[PlacementRanking, dict[str, str]]:
    """Rank placements of the request beside jobs that stay, and say why others cannot be had."""
    if moved := [job.name for job in running if job.placement is None]:
        raise InputError(f"job {moved[0]} has to be moved: name it in jobs, and its nodes in {KEY}")
    placed, taken = on_cluster(cluster, {name: (*running, *new) for name, new in own.items()})
    new = [job.name for job in new_jobs(wanted) or wanted]
    return rank_placements(cluster, dict(placed), new=new, **how), taken
