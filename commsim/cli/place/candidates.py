"""``commsim place CLUSTER JOBS``: candidate placements, best first.

The flags that say how the scores of ``commsim place`` are found, and where they go.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.core.units import parse_time
from commsim.files.whole_files import write_json
from commsim.report.table import print_table

if TYPE_CHECKING:
    from commsim.placement.candidate import Candidate
    from commsim.placement.cluster import Cluster
    from commsim.placement.link_use import Settings
    from commsim.placement.place import Ranking
    from commsim.workload.sharing.periodic import PeriodicJob


def add_score_arguments(parser: argparse.ArgumentParser, longest: str) -> None:
    """Add the flags."""
    add = parser.add_argument
    add("--angles", type=int, default=72, metavar="N", help="into how many a circle is cut at least (72: 5 degrees)")
    add("--step", metavar="TIME", help="time of one angle instead, such as 1ms")
    add("--quantum", default="1ms", metavar="TIME", help="iteration times are rounded to multiples of this (1ms)")
    add("--longest", default=longest, metavar="TIME", help=f"perimeter at most; longer ones are cut off ({longest})")
    add("--check", action="store_true", help="simulate the same jobs, and say where that disagrees with the scores")
    what = "write JSON to FILE, or to standard output instead of the table without a name"
    add("--json", nargs="?", const="-", metavar="FILE", help=what)


def settings_of(args: argparse.Namespace) -> Settings:
    """Read the flags."""
    from commsim.placement.link_use import Settings

    seed = getattr(args, "seed", 0)
    if seed < 0:
        raise InputError(f"--seed must be 0 or more, got {seed}")
    step = None if args.step is None else parse_time(args.step, "--step")
    quantum, longest = parse_time(args.quantum, "--quantum"), parse_time(args.longest, "--longest")
    return Settings(args.angles, step, quantum, longest, seed)


def write(args: argparse.Namespace, tree: Mapping[str, Any]) -> None:
    """Write the answer where ``--json`` says, under the schema and the configuration."""
    from commsim import __version__

    config = {"version": __version__, **{k: v for k, v in vars(args).items() if k != "json"}}
    tree = {"schema": 1, "config": config, **tree}
    if args.json == "-":
        print(json.dumps(tree, indent=1, allow_nan=False))
    elif args.json:
        write_json(args.json, tree)


COLUMNS = ["rank", "generator", "score_mean", "score_min", "contended_links", "worst_link", "slowdown"]
_MOST_NAMES = 6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    from commsim.core.placement import STRATEGIES

    add = parser.add_argument
    add("cluster", metavar="CLUSTER.toml", help="a topology, and hosts with GPUs")
    add("jobs", metavar="JOBS.json", help="jobs with their phases; those with a placement stay")
    add("--candidates", type=int, default=10, metavar="N", help="how many to look at, at most (10)")
    what = f"where they come from, in turn: {', '.join(STRATEGIES)}, or FILE.py (packed,spread,random)"
    add("--generator", default="packed,spread,random", metavar="NAME[,NAME...]", help=what)
    what = "merged: links that are alike count once; literal: each counts, and candidates with loops are discarded"
    add("--loops", default="merged", choices=("merged", "literal"), help=what)
    add("--rank-by", default="mean", choices=("mean", "min", "weighted"), help="which score of the links (mean)")
    what = "also say which paths, priorities and how many levels of them Crux would give each candidate's jobs"
    add("--crux", type=int, metavar="LEVELS", help=what)
    add("--seed", type=int, default=0, metavar="N", help="of random candidates, and of the hashes in routing (0)")
    add_score_arguments(parser, longest="2.4s")


def main(args: argparse.Namespace) -> int:
    """Make candidates, score and rank them."""
    from commsim.core.placement import STRATEGIES
    from commsim.core.registry import resolve
    from commsim.placement.cluster import read_cluster
    from commsim.placement.place import place_jobs
    from commsim.workload.sharing.periodic import read_jobs

    settings = settings_of(args)
    cluster, jobs = read_cluster(args.cluster), read_jobs(args.jobs)
    ranking = place_jobs(
        cluster,
        jobs,
        n=args.candidates,
        generators=[resolve(STRATEGIES, text.strip())[0].name for text in args.generator.split(",")],
        loops=args.loops,
        rank_by=args.rank_by,
        check=args.check,
        settings=settings,
    )
    crux = [_crux(args, cluster, jobs, candidate) for candidate in ranking.candidates]
    if args.json != "-":
        _print(ranking, jobs, f"{len(jobs)} jobs on {cluster.network.name}")
        if crux and crux[0]:
            _print_crux(crux[0]["crux"])
    rows = {
        "candidates": [candidate.row() | more for candidate, more in zip(ranking.candidates, crux, strict=True)],
        "discarded": [candidate.row() for candidate in ranking.discarded],
        "notes": list(ranking.notes),
    }
    write(args, rows)
    return 0


def _crux(
    args: argparse.Namespace, cluster: Cluster, jobs: tuple[PeriodicJob, ...], candidate: Candidate
) -> dict[str, Any]:
    if args.crux is None:
        return {}
    from commsim.placement.crux_plan import plan_crux

    placed = [dataclasses.replace(job, placement=candidate.placement[job.name]) for job in jobs]
    return {"crux": plan_crux(cluster, placed, n_levels=args.crux, seed=args.seed).rows(placed)}


def _print_crux(rows: dict[str, dict[str, Any]]) -> None:
    columns = ["job", "intensity", "priority", "level", "ports"]
    shown = [
        [name, f"{row['intensity']:.4g}", f"{row['priority']:.4g}", f"{row['level']}", " ".join(map(str, row["ports"]))]
        for name, row in rows.items()
    ]
    print_table(columns, shown, "Crux, for the best: level 0 goes first, ports choose the paths of a ring's edges")


def _print(ranking: Ranking, jobs: tuple[PeriodicJob, ...], title: str) -> None:
    from commsim.placement.candidate import slowdown

    for note in ranking.notes:
        print(f"# {note}")
    rows = []
    for i, c in enumerate(ranking.candidates):
        worst = min(c.links, key=lambda link: link.score, default=None)
        name = "-" if worst is None else f"{worst.link} ({', '.join(worst.jobs[:_MOST_NAMES])})"
        scores = [f"{c.score_mean:.4f}", f"{c.score_min:.4f}", f"{len(c.links)}"]
        rows.append([f"{i + 1}", c.generator, *scores, name, f"{slowdown(jobs, c):.4f}x"])
    print_table(COLUMNS, rows, title)
    if not ranking.candidates:
        return
    best = ranking.candidates[0]
    print(f"# the best, iteration times by {best.prediction}:")
    columns = ["job", "start(ms)", "alone(ms)", "iteration(ms)", "placement"]
    print_table(columns, [
        [
            job.name,
            f"{best.shifts[job.name] * 1e3:.3f}",
            f"{job.period * 1e3:.3f}",
            f"{best.predicted[job.name] * 1e3:.3f}",
            _places(best.placement[job.name]),
        ]
        for job in jobs
    ])  # fmt: skip


def _places(nodes: tuple[str, ...]) -> str:
    """Names of nodes with how often each comes, in order, shortened."""
    counts = {name: nodes.count(name) for name in dict.fromkeys(nodes)}
    shown = [f"{name}x{n}" if n > 1 else name for name, n in list(counts.items())[:_MOST_NAMES]]
    return " ".join(shown) + (" ..." if len(counts) > _MOST_NAMES else "")
