"""``commsim run --jobs FILE``: several jobs and background traffic on one network at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from commsim.core.units import counted
from commsim.report.answer import Table, remarks

from .tables import Answered, Row, json_row

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from commsim.scenario.together.composition import JobEntry

    from .config import Config

COLUMNS = ["job", "ranks", "size(B)", "start(us)", "time(us)", "alone(us)", "slowdown", "exact"]
BACKGROUND = ["messages", "mean(us)", "p50(us)", "p99(us)", "last(us)", "slowdown p50", "p99", "largest"]
PERCENTILES = (1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9, 100)


def answer_jobs(config: Config) -> Answered:
    """Simulate all jobs of the file together, and each on its own; say what sharing costs.

    Raises
    ------
    InputError
        If the file is wrong, or the engine does not know a job's kind.
    """
    from commsim.scenario.solve import solve

    scenario = config.scenario(config.collective[0] if config.collective else "", jobs=config.jobs)
    solution = solve(scenario, [0.0])
    entries = () if scenario.jobs is None else scenario.jobs.jobs
    shared, network = solution.details, solution.plan.network
    jobs = zip(entries, solution.plan.schedules, solution.results, shared.alone, strict=True)
    rows = [_row(entry, Row(result, network, schedule), alone) for entry, schedule, result, alone in jobs]
    engine = solution.scenario.wish.engine
    what = f"{counted(len(rows), 'job')} and {counted(len(shared.took), 'background message')}"
    title = f"{what} on {network.name}, engine {engine}"
    parts = [*remarks(solution.derived), Table(COLUMNS, [_cells(r) for r in rows], title, ["start(us)", "ranks"])]
    background = _background(shared.took, shared.ideal)
    if background is not None:
        title = "background messages, from start to the last byte"
        parts.append(Table(BACKGROUND, [_background_cells(background)], title))
    parts += remarks(solution.remarks)
    chosen = {"engine": engine}
    return Answered(parts, rows, solution.results, network, {"background": background}, chosen=chosen)


def _row(entry: JobEntry, row: Row, alone: float) -> dict[str, Any]:
    result = row.result
    return json_row(row) | {
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
    """Completion times, and the distribution of slowdowns: times over those without others; None without messages."""
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
