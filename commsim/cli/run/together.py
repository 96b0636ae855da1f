"""``commsim run --jobs FILE``: several jobs and background traffic on one network at once."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from commsim.core.errors import InputError
from commsim.report.table import given_remarks, print_remarks, print_table

from .config import network_and_options

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from commsim.run.together.composition import JobEntry

    from .config import Config

COLUMNS = ["job", "ranks", "size(B)", "start(us)", "time(us)", "alone(us)", "slowdown", "exact"]
BACKGROUND = ["messages", "mean(us)", "p50(us)", "p99(us)", "last(us)", "slowdown p50", "p99", "largest"]
PERCENTILES = (1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9, 100)

# Flags of one collective that have no meaning for several jobs.
OF_ONE = ("operation", "algorithm", "group", "compressor", "bound", "report", "draw", "flap", "start_jitter")


def run_jobs(config: Config) -> None:
    """Simulate all jobs of the file together, and each alone; print what sharing costs.

    Raises
    ------
    InputError
        If the file is wrong, or a flag of one collective is given.
    """
    from commsim.run.together.composition import read_composition
    from commsim.run.together.predict import prepare_together

    given = config.given(*OF_ONE)
    if config.collective or given:
        raise InputError(f"--jobs names all that runs, got {given[0] if given else config.collective[0]} beside it")
    composition = read_composition(config.jobs or "")
    config = dataclasses.replace(config, engine=config.engine or "flow", collective=("ring_all_reduce",))
    config, network, options, notes = network_and_options(config)
    print_remarks(notes)
    together = prepare_together(
        composition, network, placement=config.placement, routing=config.routing, seed=config.seed or 0
    )
    print_remarks(dict.fromkeys(note for prepared in together.prepared for note in prepared.notes))
    chosen = {name: options[name] for name in ("framing", "transport", "fabric") if name in options}
    results, took, ideal = together.predict(engine=config.engine, **chosen)
    rows = []
    for k, (entry, result) in enumerate(zip(composition.jobs, results, strict=True)):
        (alone,), _, _ = together.alone(k).predict(engine=config.engine, **chosen)
        rows.append(_row(entry, result, alone.time))
    title = f"{len(rows)} jobs and {len(took)} background messages on {network.name}, engine {config.engine}"
    print_table(COLUMNS, [_cells(row) for row in rows], title, ["start(us)", "ranks"])
    background = _background(took, ideal)
    if background is not None:
        print_table(BACKGROUND, [_background_cells(background)], "background messages, from start to the last byte")
    more = {"background": background, "remarks": list(given_remarks())}
    config.write_json(rows, config.flags(), **more)


def _row(entry: JobEntry, result: Any, alone: float) -> dict[str, Any]:
    row: dict[str, Any] = result.row()
    return row | {
        "job": entry.name, "ranks": list(entry.ranks), "start_s": entry.start, "alone_s": alone,
        "slowdown": result.time / alone if alone else 1.0,
        "exact": bool(result.counters["exact"]) if "exact" in result.counters else None,
    }  # fmt: skip


def _cells(row: dict[str, Any]) -> list[str]:
    return [
        row["job"], str(len(row["ranks"])), f"{row['size_B']:.0f}", f"{row['start_s'] * 1e6:.2f}",
        f"{row['time_s'] * 1e6:.2f}", f"{row['alone_s'] * 1e6:.2f}", f"{row['slowdown']:.3f}",
        {None: "-", True: "yes", False: "NO"}[row["exact"]],
    ]  # fmt: skip


def _background(took: NDArray[np.float64], ideal: NDArray[np.float64]) -> dict[str, Any] | None:
    """Completion times, and the distribution of slowdowns: times over those alone; None without messages."""
    if not len(took):
        return None
    slowdown = np.maximum(took / ideal, 1.0)
    return {
        "messages": len(took),
        "mean_s": float(took.mean()),
        "percentiles": list(PERCENTILES),
        "time_s": np.percentile(took, PERCENTILES).tolist(),
        "slowdown": np.percentile(slowdown, PERCENTILES).tolist(),
    }


def _background_cells(background: dict[str, Any]) -> list[str]:
    time = dict(zip(PERCENTILES, background["time_s"], strict=True))
    slowdown = dict(zip(PERCENTILES, background["slowdown"], strict=True))
    times = [background["mean_s"], time[50], time[99], time[100]]
    return [str(background["messages"]), *(f"{t * 1e6:.2f}" for t in times),
            *(f"{slowdown[p]:.2f}" for p in (50, 99, 100))]  # fmt: skip
