"""Ranks candidate placements of jobs by what the jobs lose, or by link scores as CASSINI does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from commsim.core.errors import InputError, located
from commsim.core.remark import Remark
from commsim.core.units import count_text
from commsim.prediction.checks import texts
from commsim.training.sharing.periodic import JobsLike, read_jobs

from .affected import after_faults
from .cluster import ClusterLike, read_cluster
from .evaluation import LOOPS
from .job_costs import RunningJobs, new_and_older, new_in, running_beside
from .node_names import on_nodes
from .ranked_placements import NOTHING_LOST, RANKINGS, ranked
from .ranking import PlacementRanking
from .scored_placements import in_turn, with_least_work
from .scores import Scores, ScoreSettings
from .strategies.free_gpus import FreeGpus

# Fields of jobs that are equal in all placements of one's own, with their names in jobs.json.
_SAME_OF = {
    "n_gpus": "gpus",
    "period": "iter_time_ms",
    "phases": "phases",
    "start": "start_ms",
    "gpus_per_host": "gpus_per_host",
}
GENERATORS = ("packed", "balanced", "spread", "random")
N_CANDIDATES = 10


def place_jobs(
    cluster: ClusterLike,
    jobs: JobsLike,
    *,
    n: int | None = None,
    candidates: int | None = None,
    generators: Sequence[str] = GENERATORS,
    loops: str = LOOPS[0],
    rank_by: str = RANKINGS[0],
    check: bool | None = None,
    settings: ScoreSettings | None = None,
    fail: Sequence[str] = (),
    scale: Sequence[str] = (),
    drain: Sequence[str] = (),
    costs: bool | None = None,
    new: Sequence[str] | None = None,
) -> PlacementRanking:
    """Rank ways to place jobs by what the network thinks of them.

    Parameters
    ----------
    cluster : Cluster, path or dict
        Cluster to place the jobs on, as :func:`commsim.read_cluster` takes it.
    jobs : sequence of PeriodicJob or of dict, or path
        Jobs, as :func:`commsim.read_jobs` takes them: plain dicts with the keys of a jobs.json, too. Those with a
        placement stay.
    n, candidates : int
        Candidates in all, at most (default: 10); the strategies alternate. Unless a number is given, placements
        whose jobs meet on the most links are not ranked where that takes long. If jobs lose more in all than those
        that run lose without the others, 3 times as many more of the best one's strategy are tried, at most 100, and
        the best `n` of all are left; not where `rank_by` is a score, or `loops` is literal.
    generators : sequence of str
        Names in ``STRATEGIES``, which give candidates in turn.
    loops : {"merged", "literal"}
        Same as in :func:`commsim.placement.evaluation.evaluate_all`; under the literal rule candidates with a loop are
        discarded, as the paper does.
    rank_by : {"stretch", "mean", "min", "weighted"}, or FILE.py
        What ranks: the predicted iteration times over the periods (:attr:`.Candidate.stretch`, which is the slow-down
        where no job is slow alone), or a score of the links. CASSINI's is the mean, which links that fit raise:
        of two placements that collide alike, the one that shares more other links is then better. Of those that are
        equal as they are printed the first has no job that leaves its machines by fewer NICs than it could; then the
        least estimated slow-down with the worst of the hashes that choose paths; then the fewest contended
        links, links between switches in use, and machines; then the least slow-down, then the order in which they were
        made.
    check : bool, optional
        Simulate every candidate, and predict iteration times from that. A remark has the rank correlation of estimates
        and simulations, and names candidates where they differ by more than 1 %. By default the candidates whose
        estimates (:func:`commsim.placement.iteration_times.estimate`) are within their error of the first one's are
        simulated, so that the first is (:func:`commsim.placement.finalists.simulated_first`); with False, none.
    settings : ScoreSettings, optional
        How scores are found.
    fail, scale : sequence of str
        Same as in :func:`commsim.with_faults`, which cannot say which hosts failed: jobs on these are moved.
    drain : sequence of str
        Hosts that are to be free, which work: no job is placed there, and jobs on them are moved.
    costs : bool, optional
        Say what new jobs (:func:`.new_jobs`) cost, themselves and those that run
        (:attr:`.PlacementCandidate.cost`). By default where some jobs are newer than others; with True all are new
        where none is.
    new : sequence of str
        Names of the new jobs, as in :func:`rank_placements`; all without a placement are. By default
        :func:`.new_jobs` finds them.

    Returns
    -------
    PlacementRanking

    Raises
    ------
    InputError
        If a name is unknown, or the cluster has no room.

    Examples
    --------
    >>> import commsim as cs
    >>> cluster = {"topology": {"spec": "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=2"}, "hosts": {"gpus": 2}}
    >>> phases = [{"offset_ms": 0, "dur_ms": 80, "rate_Gbps": 40}]
    >>> jobs = [{"job": name, "gpus": 4, "iter_time_ms": 100, "phases": phases} for name in ("a", "b")]
    >>> best = cs.place_jobs(cluster, jobs).candidates[0]
    >>> best.placement["a"], best.slowdown
    (('h0', 'h0', 'h1', 'h1'), 1.0)
    """
    generators = texts("packed")("generators", generators)
    cluster = read_cluster(cluster)
    jobs = on_nodes(cluster, read_jobs(jobs))
    is_usual = n is None and candidates is None
    settings, n = settings or ScoreSettings(), number_of(n, candidates)
    remarks: list[Remark] = []
    if fail or scale or drain:
        cluster, jobs, remarks = after_faults(cluster, jobs, fail, scale, settings, drain)
    newer, older = new_and_older(jobs, new)
    running = RunningJobs(cluster, older, settings)
    placed = in_turn(cluster, jobs, generators, n, settings.seed)
    n_wanted = n if any(job.placement is None for job in jobs) else 0
    left_out = 0
    if is_usual and loops != "literal" and rank_by == "stretch":
        placed, left_out = with_least_work(cluster, placed, Scores(jobs, settings))
    n_wanted = n_wanted - left_out if n_wanted else 0
    least = running.least(len(newer)) if n_wanted else NOTHING_LOST
    ranking = ranked(cluster, jobs, placed, loops, rank_by, check, settings, n_wanted, least)
    if left_out:
        text = f"{count_text(left_out, 'placement')} not ranked, whose jobs meet on more links than in the others"
        remarks.append(Remark("not-ranked", text, details=f"--candidates {2 * n} ranks such placements, too"))
    if costs or (costs is None and newer):
        ranking = running.with_costs(ranking)
    return replace(ranking, remarks=(*remarks, *ranking.remarks))


def number_of(n: int | None, candidates: int | None) -> int:
    """Return the number of candidates, which has two names: ``n``, and that of the flag and of the request's field.

    Raises
    ------
    InputError
        If both are given.
    """
    numbers = [value for value in (n, candidates) if value is not None]
    if len(numbers) > 1:
        raise InputError(f"n and candidates are two names of one number, got n={n} and candidates={candidates}")
    return numbers[0] if numbers else N_CANDIDATES


def rank_placements(
    cluster: ClusterLike,
    placed: Mapping[str, JobsLike] | JobsLike,
    *,
    loops: str = LOOPS[0],
    rank_by: str = RANKINGS[0],
    check: bool | None = None,
    settings: ScoreSettings | None = None,
    new: Sequence[str] | None = None,
) -> PlacementRanking:
    """Rank placements of your own, such as those that a scheduler considers.

    Parameters
    ----------
    cluster : Cluster, path or dict
        Cluster on which the jobs are placed, as :func:`commsim.read_cluster` takes it.
    placed : mapping of str to jobs, or jobs
        By name, which the ranking shows as the generator: the same jobs each time, plain dicts or others, all with a
        placement. Jobs without a name, such as a path, are one placement.
    loops, rank_by, check, settings
        Same as in :func:`place_jobs`.
    new : sequence of str
        Names of jobs that would be added to the others, which run: candidates say what they cost these
        (:attr:`.PlacementCandidate.cost`). By default those without a start, if others have one and run in the same
        places each time; none if empty.

    Returns
    -------
    PlacementRanking

    Raises
    ------
    InputError
        If the jobs are not the same each time, one has no placement, a placement is not one of the cluster, or `new`
        names another job, or leaves one out that does not stay where it is.

    Examples
    --------
    >>> import commsim as cs
    >>> cluster = {"topology": {"spec": "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=2,bandwidth=50Gbps"},
    ...            "hosts": {"gpus": 2}}
    >>> job = {"gpus": 2, "iter_time_ms": 100, "phases": [{"offset_ms": 0, "dur_ms": 80, "rate_Gbps": 40}]}
    >>> near = [{"job": "a", "placement": ["h0", "h1"]} | job, {"job": "b", "placement": ["h2", "h3"]} | job]
    >>> far = [{"job": "a", "placement": ["h0", "h2"]} | job, {"job": "b", "placement": ["h1", "h3"]} | job]
    >>> ranking = cs.rank_placements(cluster, {"far": far, "near": near})
    >>> [one.generator for one in ranking.candidates]
    ['near', 'far']
    """
    cluster = read_cluster(cluster)
    named = placed if isinstance(placed, Mapping) else {"given": placed}
    read = {name: on_nodes(cluster, read_jobs(jobs)) for name, jobs in named.items()}
    if not read:
        raise InputError("rank_placements needs at least one placement")
    first, jobs = next(iter(read.items()))
    for name, others in read.items():
        if [job.name for job in others] != [job.name for job in jobs]:
            raise InputError(f"{name}: its jobs must be those of {first}, in the same order")
        for job, same in zip(others, jobs, strict=True):
            if differ := [key for field, key in _SAME_OF.items() if getattr(job, field) != getattr(same, field)]:
                raise InputError(
                    f"{name}: job {job.name} has another {differ[0]} than in {first}; only placements may differ"
                )
        unplaced = [job.name for job in others if job.placement is None]
        if unplaced:
            raise InputError(
                f"{name}: job {unplaced[0]} needs a placement, to be compared with others: `commsim place` of this "
                "file alone (cs.place_jobs) finds one; `commsim place moves` says what moving a running job changes"
            )
        with located(name):
            FreeGpus(cluster, others)  # refuses GPUs that are not free
    settings = settings or ScoreSettings()
    new = new_in(read) if new is None else new
    running = RunningJobs(cluster, running_beside(read, new), settings)
    ranking = ranked(cluster, jobs, list(read.items()), loops, rank_by, check, settings)
    return running.with_costs(ranking) if new else ranking
