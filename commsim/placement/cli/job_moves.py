"""``commsim place moves``: which running job to move, so that it and the others lose less."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commsim.cli.flags import DefaultOf, flag, switched
from commsim.cli.flags.faults import Faults, Hashes
from commsim.core.units import format_time, parse_time
from commsim.report.answer import Answer, Table, comments, remarks

from .rank_and_score import MAX_HOSTS, Draining, Scoring, drained_hosts, generators_of, settings_of

if TYPE_CHECKING:
    from commsim.placement.moves import Move


class PlaceMovesConfig(Hashes, Scoring, Faults, Draining):
    """All flags of ``commsim place moves``."""

    cluster: str = flag("cluster", metavar="CLUSTER.toml", help="a topology, and hosts with GPUs")
    jobs: str = flag("jobs", metavar="JOBS.json", help="running jobs, with their phases and placements")
    candidates: int = flag(
        default=DefaultOf("commsim.placement.place:N_CANDIDATES"),
        metavar="N",
        help="number of places that are tried for each job",
    )
    generator: str = flag(
        default=DefaultOf("commsim.placement.place:GENERATORS", ",".join), metavar="NAME[,NAME...]",
        help="sources of places, in turn: names of placement strategies, or FILE.py",
    )  # fmt: skip
    restart: str | None = flag(
        metavar="TIME",
        help="pause of a moved job, such as 90s; column 'pays after': time after which the move is a gain",
    )
    check: bool = switched(help="simulate each placement, and rank by the simulated times; it takes longer")
    seed: int = flag(default=0, metavar="N", help="seed of random candidates, of hashes in routing and of faults")


def run(config: PlaceMovesConfig) -> Answer:
    """Rank the moves."""
    from commsim.placement.candidate import counted_names
    from commsim.placement.cluster import read_cluster
    from commsim.placement.moves import rank_moves
    from commsim.placement.node_names import on_nodes
    from commsim.training.sharing.periodic import read_jobs

    cluster = read_cluster(config.cluster)
    jobs = on_nodes(cluster, read_jobs(config.jobs))
    how: dict[str, Any] = {
        "n": config.candidates,
        "generators": generators_of(config.generator, config.jobs),
        "check": config.check or None,
    }
    how["settings"] = settings_of(config, config.seed, config.hashes)
    restart = parse_time(config.restart, "--restart") if config.restart else 0.0
    drain = drained_hosts(config)
    ranked_moves = rank_moves(cluster, jobs, fail=config.fail, scale=config.scale, drain=drain, restart=restart, **how)
    forced = [move.job for move in ranked_moves.forced]
    columns = ["job", "now", "after", "gain", "others now", "others after", "from", "to"]
    columns[6:6] = ["pays after"] if restart else []
    rows = []
    for move in ranked_moves.moves:
        values = [f"{value:.4f}x" for value in (move.now.stretch, move.after.stretch)]
        values += [f"{move.gain:.4f}", *(f"{value:.4f}x" for value in move.others)]
        is_only_forced = move.job in forced and not move.gain
        to = "no further move" if is_only_forced else move.to(MAX_HOSTS)
        pays = [_pays(move, restart)] if restart else []
        rows.append([move.job, *values, *pays, counted_names(move.now.placement[move.job], MAX_HOSTS), to])
    by = ranked_moves.moves[0].now.prediction
    title = f"stretch of the jobs (iteration time over iter_time_ms), by {by}, now and with one job moved"
    title += f"; {', '.join(forced)} already moved now" if forced else ""
    parts = [
        *comments(ranked_moves.remark_lines(MAX_HOSTS)),
        *remarks(ranked_moves.remarks),
        Table(columns, rows, title, ["from", "gain"]),
    ]
    best = ranked_moves.moves[0]
    parts += [_times(best)] if best.gain else []
    more: dict[str, Any] = {"forced": ranked_moves.forced_rows()} if forced else {}
    more |= {"stopped_gpu_s": round(ranked_moves.stopped, 9)} if forced and restart else {}
    rows_of_json = [move.row_with_restart(restart) for move in ranked_moves.moves]
    return Answer(parts, rows_of_json, more=more, key="moves")


def _pays(move: Move, restart: float) -> str:
    """Time after which a move has paid for the restart, as a table shows it."""
    time = move.pays_after(restart) if move.gain else None
    return "-" if time is None else format_time(time)


def _times(best: Move) -> Table:
    """Return the iteration times of all jobs with the best move."""
    rows = [
        [name, f"{best.now.predicted[name] * 1e3:.3f}", f"{best.after.predicted[name] * 1e3:.3f}"]
        for name in best.now.predicted
    ]
    return Table(["job", "now(ms)", "after(ms)"], rows, f"iteration times with {best.job} moved:")
