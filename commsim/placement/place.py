"""Ranks candidate placements of jobs by what the jobs lose, or by link scores as CASSINI does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from commsim.core.errors import InputError, wrong_kind
from commsim.core.remark import Remark
from commsim.core.units import count_text
from commsim.prediction.checks import texts
from commsim.training.sharing.periodic import JobsLike, PeriodicJob, read_jobs

from .affected import after_faults
from .cluster import Cluster, ClusterLike, read_cluster
from .finalists import ERROR, PACKED, Order, centre, simulate_all, simulated_first
from .link_classes import Scores, ScoreSettings
from .nic_counts import few_nics
from .node_names import on_nodes
from .other_hashes import inconsistency_of, values_of
from .ranking import PlacementRanking as PlacementRanking
from .ranking import with_cost
from .ranking_remarks import (
    agreement,
    disagreements,
    ended_early,
    estimated,
    few_tried,
    going_on,
    notes_of,
    other_paths,
    short_phases,
    slow_alone,
)
from .rankings import load_ranking
from .scored_placements import Placed, ScoredPlacement, in_turn, tried_of, tried_with_more, with_least_work

# Fields of jobs that are equal in all placements of one's own, with their names in jobs.json.
_SAME_OF = {"n_gpus": "gpus", "period": "iter_time_ms", "phases": "phases", "start": "start_ms"}
GENERATORS = ("packed", "balanced", "spread", "random")
_CENTRED = 40  # candidates whose start times are moved to the middle of their windows
N_CANDIDATES = 10
RANKINGS = ("slowdown", "mean", "min", "weighted")


def place_jobs(
    cluster: ClusterLike,
    jobs: JobsLike,
    *,
    n: int | None = None,
    candidates: int | None = None,
    generators: Sequence[str] = GENERATORS,
    loops: str = "merged",
    rank_by: str = "slowdown",
    check: bool | None = None,
    settings: ScoreSettings | None = None,
    fail: Sequence[str] = (),
    scale: Sequence[str] = (),
    costs: bool = False,
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
        whose jobs meet on the most links are not ranked where that takes long. If all are slower than
        the jobs alone, 3 times as many more of the best one's strategy are tried, at most 100, and the best `n` of all
        are left; not where `rank_by` is a score, or `loops` is literal.
    generators : sequence of str
        Names in ``STRATEGIES``, which give candidates in turn.
    loops : {"merged", "literal"}
        Same as in :func:`commsim.placement.evaluation.evaluate_all`; under the literal rule candidates with a loop are
        discarded, as the paper does.
    rank_by : {"slowdown", "mean", "min", "weighted"}, or FILE.py
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
    costs : bool
        Say what new jobs (:func:`new_jobs`) cost, themselves and those that run (:attr:`.PlacementCandidate.cost`);
        where none is newer than others, all are taken to be new.

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
    if fail or scale:
        cluster, jobs, remarks = after_faults(cluster, jobs, fail, scale, settings)
    placed = in_turn(cluster, jobs, generators, n, settings.seed)
    n_wanted = n if any(job.placement is None for job in jobs) else 0
    left_out = 0
    if is_usual and loops != "literal" and rank_by == "slowdown":
        placed, left_out = with_least_work(cluster, placed, Scores(jobs, settings))
    ranking = _ranked(cluster, jobs, placed, loops, rank_by, check, settings, n_wanted - left_out if n_wanted else 0)
    if left_out:
        text = f"{count_text(left_out, 'placement')} not ranked, whose jobs meet on more links than in the others"
        remarks.append(Remark("not-ranked", text, details=f"--candidates {2 * n} ranks such placements, too"))
    if costs:
        new = {job.name for job in new_jobs(jobs)}
        running = [job for job in jobs if new and job.name not in new]
        ranking = _with_costs(cluster, running, ranking, settings)
    return replace(ranking, remarks=(*remarks, *ranking.remarks))


def new_jobs(jobs: Sequence[PeriodicJob]) -> list[PeriodicJob]:
    """Return the jobs that are new beside others: those without a placement, else those without a start.

    Returns
    -------
    list of PeriodicJob
        Empty where all have a placement and a start, or none has what the others lack.
    """
    for new in ([job for job in jobs if job.placement is None], [job for job in jobs if job.start is None]):
        if new:
            return new if len(new) < len(jobs) else []
    return []


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
    placed: Mapping[str, JobsLike],
    *,
    loops: str = "merged",
    rank_by: str = "slowdown",
    check: bool | None = None,
    settings: ScoreSettings | None = None,
    new: Sequence[str] = (),
) -> PlacementRanking:
    """Rank placements of your own, such as those that a scheduler considers.

    Parameters
    ----------
    cluster : Cluster, path or dict
        Cluster on which the jobs are placed, as :func:`commsim.read_cluster` takes it.
    placed : mapping of str to jobs
        By name, which the ranking shows as the generator: the same jobs each time, plain dicts or others, all with a
        placement.
    loops, rank_by, check, settings
        Same as in :func:`place_jobs`.
    new : sequence of str
        Names of jobs that would be added to the others, which run: candidates say what they cost these
        (:attr:`.PlacementCandidate.cost`). By default none is, and they do not.

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
    if not isinstance(placed, Mapping):
        raise wrong_kind("placed", "a dict of jobs by name", placed)
    cluster = read_cluster(cluster)
    read = {name: on_nodes(cluster, read_jobs(jobs)) for name, jobs in placed.items()}
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
                "file alone finds one; `commsim place moves` says what moving a running job changes"
            )
    settings = settings or ScoreSettings()
    running = _running(read, new)
    ranking = _ranked(cluster, jobs, list(read.items()), loops, rank_by, check, settings)
    return _with_costs(cluster, running, ranking, settings) if new else ranking


def _running(placed: Mapping[str, Sequence[PeriodicJob]], new: Sequence[str]) -> list[PeriodicJob]:
    """Return the jobs that run where others are new, which are in the same places each time."""
    new = texts("resnet50")("new", new)
    first = next(iter(placed.values()))
    if unknown := [name for name in new if name not in {job.name for job in first}]:
        raise InputError(f"new: no job is named {unknown[0]}")
    running = [job for job in first if job.name not in new]
    for name, jobs in placed.items() if new else ():
        at = {job.name: (job.placement, job.start) for job in jobs}
        if moved := [job.name for job in running if at[job.name] != (job.placement, job.start)]:
            raise InputError(f"{name}: job {moved[0]} runs, as it is not new, and must stay where it is")
    return running


def _with_costs(
    cluster: Cluster, running: Sequence[PeriodicJob], ranking: PlacementRanking, settings: ScoreSettings
) -> PlacementRanking:
    """Hold each candidate against the running jobs alone, estimates against estimates."""
    before: dict[str, Mapping[str, float]] = {}
    for kind in {candidate.prediction for candidate in ranking.candidates} if running else ():
        check, now = kind == "simulation", [("now", tuple(running))]
        only = _ranked(cluster, now[0][1], now, "merged", "slowdown", check, settings)
        before[kind] = only.candidates[0].predicted
    found = tuple(with_cost(candidate, before.get(candidate.prediction, {})) for candidate in ranking.candidates)
    return replace(ranking, candidates=found)


def _ranked(
    cluster: Cluster,
    jobs: tuple[PeriodicJob, ...],
    placed: Sequence[Placed],
    loops: str,
    rank_by: str,
    check: bool | None,
    settings: ScoreSettings,
    n_wanted: int = 0,
) -> PlacementRanking:
    own = load_ranking(rank_by, RANKINGS)
    scores = Scores(jobs, settings)

    def order(candidate: ScoredPlacement) -> tuple[float, ...]:
        if own is None:
            return candidate.order(rank_by)
        return own(candidate.candidate, cluster), *candidate.order("slowdown")

    tried = tried_with_more(
        cluster, jobs, placed, lambda some: tried_of(cluster, some, loops, scores), order,
        n_wanted if loops != "literal" and rank_by == "slowdown" else 0, settings.seed,
    )  # fmt: skip
    n_tried = len(tried)
    if n_tried > len(placed):
        packed = [candidate for candidate in tried if candidate.generator == PACKED][:1]
        best = {id(candidate) for candidate in packed}
        for candidate in sorted(tried, key=order):
            if len(best) < n_wanted:
                best.add(id(candidate))
        tried = [candidate for candidate in tried if id(candidate) in best]
    kept = [candidate for candidate in tried if not (loops == "literal" and candidate.candidate.has_loop)]
    kept.sort(key=order)
    kept = _checked(cluster, jobs, kept, order, loops == "literal", rank_by, check, scores)
    for one in tried:  # those that are left, and not all that were tried: it may be a search for each link
        away = inconsistency_of(one.candidate, one.jobs, one.classes, scores)
        value = None if own is None else own(one.candidate, cluster)
        one.candidate = replace(one.candidate, inconsistency=away, own_value=value)
    discarded = tuple(one.candidate for one in tried if loops == "literal" and one.candidate.has_loop)
    ranked = [candidate.candidate for candidate in kept]
    notes = [*going_on(jobs), *short_phases(scores.blurred()), *notes_of([*ranked, *discarded], discarded)]
    notes += ended_early(n_wanted, len(placed), scores.descended)
    notes += estimated([one for one in ranked[:1] if one.prediction == "estimate"])
    notes += slow_alone(cluster.network, jobs, [candidate.use for candidate in kept])
    differ = [
        number
        for number, candidate in enumerate(kept, 1)
        if candidate.hashes is not None and len(candidate.hashes.ways) > 1
    ]
    if own is None and differ and kept[0].hashes is not None:
        values = values_of(cluster, kept[0].jobs, ranked[0], kept[0].hashes, scores, rank_by)
        notes += other_paths(rank_by, settings.hashes, values, differ)
    notes += [*agreement(ranked), *disagreements(ranked)] if check else []
    notes += [*few_nics([candidate.nics for candidate in kept]), *few_tried(n_wanted, n_tried, ranked)]
    return PlacementRanking(tuple(ranked), discarded, tuple(notes), n_tried)


def _checked(
    cluster: Cluster,
    jobs: Sequence[PeriodicJob],
    kept: list[ScoredPlacement],
    order: Order,
    is_literal: bool,
    rank_by: str,
    check: bool | None,
    scores: Scores,
) -> list[ScoredPlacement]:
    """Simulate all candidates, or the finalists, at start times in the middle of free windows; return them in order."""
    is_of_finalists = check is None and rank_by == "slowdown"
    if not is_literal:
        best = kept[0].candidate.stretch * (1 + ERROR) if kept else 0.0
        centre(cluster, [one for one in kept if check or one.candidate.stretch <= best][:_CENTRED], scores)
    if is_of_finalists:
        return simulated_first(cluster, jobs, kept, order, scores)
    if check:
        simulate_all(cluster, jobs, kept, scores.settings.seed)
        kept.sort(key=order)
    return kept
