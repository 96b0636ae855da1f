"""``commsim place moves``: which running job to move, so that it and the others lose less."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commsim.cli.flags import flag, switched
from commsim.report.answer import Answer, Table, remarks

from .candidates import MAX_HOSTS, Scoring, generators_of, settings_of

if TYPE_CHECKING:
    from commsim.placement.moves import Move


class Config(Scoring):
    """All flags of ``commsim place moves``."""

    cluster: str = flag("cluster", metavar="CLUSTER.toml", help="a topology, and hosts with GPUs")
    jobs: str = flag("jobs", metavar="JOBS.json", help="running jobs, with their phases and placements")
    candidates: int = flag(default=10, metavar="N", help="number of places that are tried for each job")
    generator: str = flag(
        default="packed,balanced,spread,random", metavar="NAME[,NAME...]",
        help="sources of places, in turn: names of placement strategies, or FILE.py",
    )  # fmt: skip
    check: bool = switched(help="simulate each placement, and rank by that; it takes longer")
    seed: int = flag(default=0, metavar="N", help="seed of random candidates and of hashes in routing")


def run(config: Config) -> Answer:
    """Rank the moves."""
    from commsim.placement.candidate import counted_names
    from commsim.placement.moves import rank_moves

    found = rank_moves(
        config.cluster, config.jobs, n=config.candidates, generators=generators_of(config.generator),
        check=config.check, settings=settings_of(config, config.seed),
    )  # fmt: skip
    columns = ["job", "now", "after", "gain", "others now", "others after", "from", "to"]
    rows = []
    for one in found.moves:
        values = [f"{value:.4f}x" for value in (one.now.slowdown, one.after.slowdown)]
        values += [f"{one.gain:.4f}", *(f"{value:.4f}x" for value in one.others)]
        rows.append([one.job, *values, counted_names(one.now.placement[one.job], MAX_HOSTS), one.to(MAX_HOSTS)])
    title = f"mean slowdown of the jobs, by {found.moves[0].now.prediction}, now and with one job moved"
    parts = [*remarks(found.remarks), Table(columns, rows, title, ["from", "gain"])]
    best = found.moves[0]
    return Answer([*parts, *([_times(best)] if best.gain else [])], [one.row() for one in found.moves], key="moves")


def _times(best: Move) -> Table:
    """Return the iteration times of all jobs with the best move."""
    rows = [
        [name, f"{best.now.predicted[name] * 1e3:.3f}", f"{best.after.predicted[name] * 1e3:.3f}"]
        for name in best.now.predicted
    ]
    return Table(["job", "now(ms)", "after(ms)"], rows, f"iteration times with {best.job} moved:")
