"""``commsim place CLUSTER JOBS``: candidate placements, best first; ``place score``: jobs on one link."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from commsim.cli.flags import DefaultOf, Flags, WithJson, flag, switched
from commsim.cli.flags.faults import Faults, Hashes
from commsim.core.errors import InputError
from commsim.core.remark import Remark
from commsim.core.units import count_text, format_bandwidth, parse_bandwidth, parse_time, write_time
from commsim.report.answer import Answer, Facts, Part, Table, remarks

if TYPE_CHECKING:
    from commsim.placement.candidate import PlacementCandidate
    from commsim.placement.cluster import Cluster
    from commsim.placement.ranking import PlacementRanking
    from commsim.placement.scores import ScoreSettings
    from commsim.training.sharing.periodic import PeriodicJob

COLUMNS = ["rank", "generator", "score_mean", "score_min", "contended_links", "worst_link", "slowdown"]
_MAX_NAMES = 6
_SOME = ("window(ms)", "before(ms)")  # columns that are left out where no job has one
MAX_HOSTS = 32  # hosts, or ranges of them, of a job


def settings_of(config: Scoring, seed: int = 0, hashes: int | None = None) -> ScoreSettings:
    """Read the flags."""
    from commsim.placement.scores import ScoreSettings
    from commsim.prediction.plans.draws import HASHES

    step = None if config.step is None else parse_time(config.step, "--step")
    quantum, longest = parse_time(config.quantum, "--quantum"), parse_time(config.longest, "--longest")
    return ScoreSettings(config.angles, step, quantum, longest, seed, hashes or HASHES)


def generators_of(text: str, job_file: str) -> list[str]:
    """Read the value of ``--placement``, which is also called ``--generator``.

    Parameters
    ----------
    job_file : str
        File of the jobs, in which a placement of one's own stands.
    """
    from commsim.core.files.own_files import resolve
    from commsim.core.placement import STRATEGIES
    from commsim.core.spec import derived

    try:
        return [resolve(STRATEGIES, derived(text, name.strip()))[0].name for name in text.split(",")]
    except InputError as error:
        told = f'; hosts of your own are a job\'s "placement" in {job_file}' if str(error).startswith("unknown") else ""
        raise InputError(f"{error}{told}") from None


class Scoring(WithJson):
    """How the scores of links are computed, and where they go."""

    TITLE: ClassVar[str] = ""
    angles: int = flag(
        default=DefaultOf("commsim.placement.scores:ScoreSettings.angles"),
        metavar="N",
        help="minimum number of time steps (angles of a circle) of a hyperperiod",
    )
    step: str | None = flag(metavar="TIME", help="length of one time step, in place of --angles, such as 1ms")
    quantum: str = flag(
        default=DefaultOf("commsim.placement.scores:ScoreSettings.quantum", write_time),
        metavar="TIME",
        help="round iteration times to multiples of this time",
    )
    longest: str = flag(
        default=DefaultOf("commsim.placement.scores:ScoreSettings.longest", write_time),
        metavar="TIME",
        help="limit on the least common multiple of the iteration times (hyperperiod); longer ones are truncated",
    )
    check: bool = switched(
        help="also simulate the candidates, rank them by the simulated times, and print how well the estimates agree"
    )


class Draining(Flags):
    """Hosts that take no job."""

    drain: str | None = flag(
        metavar="HOSTS",
        help="hosts to free, such as n[019-024],n30, or all below a switch, such as leaf0; their jobs are moved, like "
        "jobs on failed hosts",
    )


def drained_hosts(config: Draining) -> tuple[str, ...]:
    """Read the value of ``--drain``."""
    from commsim.core.names.hostlist import expand_hosts

    return () if config.drain is None else tuple(expand_hosts(config.drain))


class PlaceRankConfig(Hashes, Scoring, Faults, Draining):
    """All flags of ``commsim place rank``."""

    cluster: str = flag("cluster", metavar="CLUSTER.toml", help="a topology, and hosts with GPUs")
    jobs: str = flag(
        "jobs", metavar="JOBS.json", help="jobs with their phases; jobs with a placement stay where they are"
    )
    others: tuple[str, ...] = flag(
        "others", nargs="*", metavar="JOBS.json",
        help="more files with the same jobs: rank the placements that the files give",
    )  # fmt: skip
    candidates: int = flag(
        default=DefaultOf("commsim.placement.place:N_CANDIDATES"), metavar="N",
        help="number of candidates; if all of them slow jobs down, up to 3 times as many others are tried, at most 100",
    )  # fmt: skip
    generator: str = flag(
        default=DefaultOf("commsim.placement.place:GENERATORS", ",".join), metavar="NAME[,NAME...]",
        help="sources of candidates, in turn: names of placement strategies, or FILE.py",
    )  # fmt: skip
    loops: str = flag(
        default=DefaultOf("commsim.placement.place:place_jobs.loops"), choices=("merged", "literal"),
        help="how loops in CASSINI's graph of jobs and links are found. merged: links with the same demands count "
        "once. literal: each link counts, and candidates with loops are discarded",
    )  # fmt: skip
    rank_by: str = flag(
        default=DefaultOf("commsim.placement.place:place_jobs.rank_by"), metavar="WHAT",
        help="stretch: mean of predicted iteration times over iter_time_ms. mean (as in CASSINI), min or weighted: "
        "mean, least or weighted mean score of the links. hosts: number of hosts. Or a FILE.py of your own",
    )  # fmt: skip
    crux: int | None = flag(
        metavar="LEVELS",
        help="also print the paths and priorities that Crux assigns to the jobs, with this number of levels",
    )
    seed: int = flag(default=0, metavar="N", help="seed of random candidates, of hashes in routing and of faults")


class ScoreConfig(Scoring):
    """All flags of ``commsim place score``."""

    DEFAULTS: ClassVar[dict[str, DefaultOf]] = {
        "longest": DefaultOf("commsim.placement.starts.circles:LONGEST", write_time)
    }
    jobs: str = flag("jobs", metavar="JOBS.json", help="jobs with their phases; all send over the link")
    capacity: str = flag(required=True, metavar="RATE", help="rate of the link, such as 50Gbps")
    check: bool = switched(
        help="also simulate the jobs, and print their iteration times and whether simulation and score agree (`agrees` "
        "in JSON): score 1, and no job more than 0.1 %% slower; or a lower score, and some job slower"
    )


def run(config: PlaceRankConfig) -> Answer:
    """Make candidates, score and rank them."""
    from commsim.placement.affected import after_faults, cut_off_by, nodes_of_hosts
    from commsim.placement.cluster import read_cluster
    from commsim.placement.node_names import on_nodes
    from commsim.placement.place import place_jobs, rank_placements
    from commsim.prediction.faults import failed_hosts
    from commsim.training.sharing.periodic import read_jobs

    cluster, jobs = read_cluster(config.cluster), read_jobs(config.jobs)
    notes: list[Remark] = []
    whole = cluster.network
    settings, drain = settings_of(config, config.seed, config.hashes), drained_hosts(config)
    if config.fail or config.scale or drain:
        cluster, jobs, notes = after_faults(cluster, jobs, config.fail, config.scale, settings, drain)
    how: dict[str, Any] = {"loops": config.loops, "rank_by": config.rank_by, "check": config.check or None}
    how["settings"] = settings
    if config.others:
        if flags := config.given("candidates", "generator"):
            raise InputError(f"{flags[0]} has no effect: the placements of the files are ranked")
        placed = {path: on_nodes(cluster, read_jobs(path)) for path in (config.jobs, *config.others)}
        dead = failed_hosts(whole, config.fail) | cut_off_by(whole, cluster.network) | nodes_of_hosts(whole, drain)
        _refuse_failed(dead, placed)
        ranking = rank_placements(cluster, placed, **how)
    else:
        n = config.candidates if config.given("candidates") else None
        ranking = place_jobs(cluster, jobs, n=n, generators=generators_of(config.generator, config.jobs), **how)
    crux = [_crux(config, cluster, jobs, candidate) for candidate in ranking.candidates]
    parts = remarks(notes) + _parts(ranking, jobs, f"{count_text(len(jobs), 'job')} on {cluster.network.name}")
    if crux and crux[0]:
        parts.append(_crux_table(crux[0]["crux"]))
    tree = ranking.to_dict()
    candidates = [row | more for row, more in zip(tree.pop("candidates"), crux, strict=True)]
    del tree["schema"], tree["remarks"]  # those of the answer are written
    return Answer(parts, candidates, more=tree | {"notes": [*map(str, notes), *tree["notes"]]}, key="candidates")


def _refuse_failed(dead: Collection[str], placed: Mapping[str, Sequence[PeriodicJob]]) -> None:
    """Refuse placements of one's own on hosts that failed: a job that is moved has another."""
    for path, jobs in placed.items():
        for job in jobs:
            if lost := [name for name in job.placement or () if name in dead]:
                raise InputError(
                    f"{path}: job {job.name} is placed on {lost[0]}, which failed, is drained or cut off: `commsim "
                    "place` of this file alone moves it"
                )


def _crux(
    config: PlaceRankConfig, cluster: Cluster, jobs: tuple[PeriodicJob, ...], candidate: PlacementCandidate
) -> dict[str, Any]:
    if config.crux is None:
        return {}
    if config.crux < 1:
        raise InputError(f"--crux must be at least 1, got {config.crux}")
    from commsim.placement.crux_plan import plan_crux

    placed = [dataclasses.replace(job, placement=candidate.placement[job.name]) for job in jobs]
    return {"crux": plan_crux(cluster, placed, n_levels=config.crux, seed=config.seed).rows(placed)}


def _crux_table(rows: dict[str, dict[str, Any]]) -> Table:
    columns = ["job", "intensity", "priority", "level", "ports"]
    shown = [
        [name, f"{row['intensity']:.4g}", f"{row['priority']:.4g}", f"{row['level']}", " ".join(map(str, row["ports"]))]
        for name, row in rows.items()
    ]
    title = "Crux, for the best: level 0 is the highest, ports choose the paths of a ring's edges"
    return Table(columns, shown, title)


def _parts(ranking: PlacementRanking, jobs: tuple[PeriodicJob, ...], title: str) -> list[Part]:
    """Return the candidates, and where and when the jobs of the best run."""
    from commsim.placement.candidate import SHORTENED

    rows = []
    is_simulated = any(c.prediction == "simulation" for c in ranking.candidates)
    # where another hash makes one faster or slower
    has_spread = any(round((c.slowdown_worst or 1) - (c.slowdown_best or 1), 4) > 0 for c in ranking.candidates)
    # where the mean hides what one job loses
    # where a job is slow without any other job: candidates rank by both
    has_stretch = any(round(c.stretch - c.slowdown, 4) > 0 for c in ranking.candidates)
    has_victim = any(round(c.worst_job[1] - c.slowdown, 4) > 0 for c in ranking.candidates)
    for i, c in enumerate(ranking.candidates):
        worst = min(c.links, key=lambda link: link.score, default=None)
        name = "-" if worst is None else f"{worst.link} ({', '.join(worst.jobs[:_MAX_NAMES])})"
        scores = [f"{c.score_mean:.4f}", f"{c.score_min:.4f}", f"{c.n_contended}"]
        ends = [of or c.slowdown_estimated for of in (c.slowdown_best, c.slowdown_worst)]
        slow = [c.slowdown_estimated, *(ends if has_spread else [])]
        slow += ([c.slowdown] if is_simulated else []) + ([c.stretch] if has_stretch else [])
        victim = ["-" if round(c.worst_job[1] - 1, 4) <= 0 else f"{c.worst_job[0]} {c.worst_job[1]:.4f}x"]
        slows = [f"{value:.4f}x" for value in slow]
        own = [] if c.own_value is None else [f"{c.own_value:.6g}"]
        rows.append([f"{i + 1}", c.generator, *own, *scores, name, *slows, *(victim if has_victim else [])])
    shown = [
        *COLUMNS[:2],
        *(["own_value"] if any(c.own_value is not None for c in ranking.candidates) else []),
        *COLUMNS[2:-1],
        "estimated" if is_simulated else "slowdown",
        *(["best_hash", "worst_hash"] if has_spread else []),
    ]
    shown += (["slowdown"] if is_simulated else []) + (["stretch"] if has_stretch else [])
    shown += ["worst_job"] if has_victim else []
    parts = [
        *remarks(ranking.remarks),
        Table(shown, rows, title, ["worst_link", "score_min", "contended_links", "best_hash", "score_mean"]),
    ]
    if not ranking.candidates:
        return parts
    best, *others = ranking.candidates
    cells = _jobs_of(best, jobs)
    cut = sum(row[-1].endswith(SHORTENED) for row in cells)
    text = f"placements of {count_text(cut, 'job')} are shortened: --json has all hosts"
    more = [Remark("shortened", text)] if cut else []
    return [
        *parts,
        _jobs_table(cells, f"the best, iteration times by {best.prediction}:"),
        *remarks(more),
        *(
            _jobs_table(_jobs_of(one, jobs), f"candidate {number}:", only_verbose=True)
            for number, one in enumerate(others, 2)
        ),
    ]


def _jobs_table(cells: list[list[str]], title: str, *, only_verbose: bool = False) -> Table:
    """Return the table of a candidate's jobs; windows, and times before the new jobs, only where one has any."""
    columns = ["job", "start(ms)", "window(ms)", "alone(ms)", "before(ms)", "iteration(ms)", "placement"]
    shown = [i for i, name in enumerate(columns) if name not in _SOME or any(row[i] != "-" for row in cells)]
    rows = [[row[i] for i in shown] for row in cells]
    return Table([columns[i] for i in shown], rows, title, only_verbose=only_verbose)


def _jobs_of(candidate: PlacementCandidate, jobs: Sequence[PeriodicJob]) -> list[list[str]]:
    """Return where and when each job of a candidate runs, and how long its iterations take."""
    from commsim.placement.candidate import counted_names

    return [
        [
            job.name,
            f"{candidate.shifts[job.name] * 1e3:.3f}",
            window_text(candidate.windows.get(job.name)),
            f"{candidate.alone[job.name] * 1e3:.3f}",
            _before(candidate, job),
            f"{candidate.predicted[job.name] * 1e3:.3f}",
            counted_names(candidate.placement[job.name], MAX_HOSTS),
        ]
        for job in jobs
    ]


def _before(candidate: PlacementCandidate, job: PeriodicJob) -> str:
    """Return the iteration time of a job that runs without the new ones, in ms; dashes where these cost nobody any."""
    cost = candidate.cost
    if cost is None or not cost["added"] or job.name in cost["own"]:
        return "-"
    return f"{(candidate.predicted[job.name] - cost['added'].get(job.name, 0.0) * job.period) * 1e3:.3f}"


def window_text(window: tuple[float, float] | None) -> str:
    """Return the first and the last start of a job in ms; a dash where it has no window."""
    return "-" if window is None else "..".join(f"{round(end * 1e3, 6) + 0.0:.4g}" for end in window)


def score(config: ScoreConfig) -> Answer:
    """Score a link, and say when each job should start."""
    from commsim.placement.candidate import simulated_times
    from commsim.placement.ranking_remarks import drifting
    from commsim.placement.starts.link_scores import score_link
    from commsim.training.sharing.periodic import read_jobs

    capacity, s = parse_bandwidth(config.capacity, "--capacity"), settings_of(config)
    jobs = read_jobs(config.jobs)
    scored = score_link(jobs, capacity, angles=s.angles, step=s.step, quantum=s.quantum, longest=s.longest)
    tree, said = scored.row(jobs), drifting(scored.circle)
    alone = dict(zip((job.name for job in jobs), scored.alone.tolist(), strict=True))
    windows = dict(zip((job.name for job in jobs), scored.windows.tolist(), strict=True))
    if config.check:
        times = simulated_times(jobs, capacity, scored.shifts)
        tree["predicted_iteration_ms"] = {name: round(time * 1e3, 9) for name, time in times.items()}
        if scored.score > 1 - 1e-9 and any(times[job.name] >= alone[job.name] * 1.001 for job in jobs):
            rounded_by, seen = scored.circle.rounding * 1e3, scored.circle.perimeter
            lines = f"the score is of iteration times rounded by up to {rounded_by:.4g} ms, over {seen:.4g} s"
            said.append(Remark("score-rounded", lines, needed=True, details="a shorter --quantum, a longer --longest"))
        slower = sum(times[job.name] >= alone[job.name] * 1.001 for job in jobs)
        tree["agrees"] = (scored.score > 1 - 1e-9) == (slower == 0)
    rounded = {key: round(value, 4) if isinstance(value, float) else value for key, value in tree.items()}
    values = {key: f"{value}" for key, value in rounded.items() if not isinstance(value, dict) and key != "agrees"}
    if config.check:
        values["simulation"] = f"{slower or 'none'} of {count_text(len(jobs), 'job')} slower" + (
            ", as the score says" if tree["agrees"] else f", while a score of {rounded['score']} says otherwise"
        )
    columns = ["job", "start(ms)", "window(ms)", "alone(ms)"] + (["iteration(ms)"] if config.check else [])
    rows = [
        [name, f"{tree['shifts_ms'][name]:.3f}", window_text(windows[name]), f"{time * 1e3:.3f}"]
        for name, time in alone.items()
    ]
    if config.check:
        rows = [[*row, f"{times[job.name] * 1e3:.3f}"] for row, job in zip(rows, jobs, strict=True)]
    table = Table(columns, rows, f"{count_text(len(jobs), 'job')} on a link of {format_bandwidth(capacity)}")
    return Answer([*remarks(said), Facts(values), table], [tree], more=tree, key=None)
