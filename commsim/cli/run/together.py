"""``commsim run --jobs FILE``: several jobs and background traffic on one network at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commsim.core.units import counted
from commsim.report.answer import Table, remarks

from .tables import Answered, Row, json_row

if TYPE_CHECKING:
    from commsim.scenario.together.composition import JobEntry

    from .config import Config

COLUMNS = ["job", "ranks", "size(B)", "start(us)", "time(us)", "alone(us)", "slowdown", "exact"]
BACKGROUND = ["messages", "mean(us)", "p50(us)", "p99(us)", "last(us)", "slowdown p50", "p99", "largest"]


def answer_jobs(config: Config) -> Answered:
    """Simulate all jobs of the file together, and each on its own; say what sharing costs.

    Raises
    ------
    InputError
        If the file is wrong, or the engine does not know a job's kind.
    """
    from commsim.scenario.solve import solve
    from commsim.scenario.together.composition import read_composition

    composition = read_composition(config.jobs or "")
    solution = solve(config.scenario("", jobs=composition), [0.0])
    shared, network = solution.details, solution.plan.network
    costs = zip(shared.alone, shared.slowdowns(solution.results), strict=True)
    jobs = zip(composition.jobs, solution.plan.prepared, solution.results, costs, strict=True)
    rows = [_row(entry, Row(result, network, plan.schedule), *cost) for entry, plan, result, cost in jobs]
    engine = solution.scenario.wish.engine
    what = f"{counted(len(rows), 'job')} and {counted(len(shared.took), 'background message')}"
    title = f"{what} on {network.name}, engine {engine}"
    parts = [*remarks(solution.derived), Table(COLUMNS, [_cells(r) for r in rows], title, ["start(us)", "ranks"])]
    background = shared.background()
    if background is not None:
        title = "background messages, from start to the last byte"
        parts.append(Table(BACKGROUND, [_background_cells(background)], title))
    parts += remarks(solution.remarks)
    chosen = {"engine": engine}
    return Answered(parts, rows, solution.results, network, {"background": background}, chosen=chosen)


def _row(entry: JobEntry, row: Row, alone: float, slowdown: float) -> dict[str, Any]:
    result = row.result
    return json_row(row) | {
        "job": entry.name, "ranks": list(entry.ranks), "start_s": entry.start, "alone_s": alone,
        "slowdown": slowdown,
        "exact": bool(result.counters["exact"]) if "exact" in result.counters else None,
    }  # fmt: skip


def _cells(row: dict[str, Any]) -> list[str]:
    return [
        row["job"], str(len(row["ranks"])), f"{row['size_B']:.0f}", f"{row['start_s'] * 1e6:.2f}",
        f"{row['time_s'] * 1e6:.2f}", f"{row['alone_s'] * 1e6:.2f}", f"{row['slowdown']:.3f}",
        {None: "-", True: "yes", False: "NO"}[row["exact"]],
    ]  # fmt: skip


def _background_cells(background: dict[str, Any]) -> list[str]:
    parts = background["percentiles"]
    time, slowdown = (dict(zip(parts, background[name], strict=True)) for name in ("time_s", "slowdown"))
    times = [background["mean_s"], time[50], time[99], time[100]]
    return [str(background["messages"]), *(f"{t * 1e6:.2f}" for t in times),
            *(f"{slowdown[p]:.2f}" for p in (50, 99, 100))]  # fmt: skip
