"""The table of jobs that share a network: each beside its time alone, and what background messages meet."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from commsim.core.operations import meaning_of_size
from commsim.core.remark import Remark
from commsim.core.units import count_text, microseconds
from commsim.jobs.several_jobs import JobsWork, entries_of
from commsim.packets.beside_table import met_by_packets
from commsim.prediction.bounds.limited_by import limit_of
from commsim.report.answer import Lines, Part, Table, remarks
from commsim.report.hash_columns import COST, cost_cells, with_spread
from commsim.report.table_of_run import RunRow, json_row, parts_of, rows_of, with_interval
from commsim.report.titles import costs_in_title, hashes_in_title, least_in_title

if TYPE_CHECKING:
    from commsim.jobs.job_entries import JobEntry
    from commsim.prediction.solve import Solution

# Links that jobs share which a table lists, unless it is verbose.
MAX_LINKS = 3
COLUMNS = ["job", "ranks", "size(B)", "start(us)", "time(us)", "alone(us)", "slowdown", "exact"]
LEAST = ["start(us)", "ranks", "exact", "fastest(us)"]  # the first to go where the terminal is narrow
BACKGROUND = ["messages", "mean(us)", "p50(us)", "p99(us)", "last(us)", "slowdown p50", "p99", "largest"]


def rows_of_jobs(solution: Solution) -> list[dict[str, Any]]:
    """Return the JSON row of each job of a solution."""
    shared, network, jobs = solution.details, solution.plan.network, entries_of(solution)
    each = zip(
        jobs, solution.plan.schedules, solution.results, shared.alone, shared.slowdowns(solution.results),
        strict=True,
    )  # fmt: skip
    rows = [
        _row(
            entry, RunRow(result, network, schedule, key=entry.collective, limit=limit_of(solution.plan, result)), *cost
        )
        for entry, schedule, result, *cost in each
    ]
    how = [{"transport": transport} for transport in shared.transports] or [{}] * len(rows)
    return [row | more for row, more in zip(rows, how, strict=True)]


def shared_links(solution: Solution) -> list[dict[str, Any]]:
    """Return the links that carry bytes of several jobs, first those that need longest for them.

    Returns
    -------
    list of dict
        Name of the link, the jobs and the bytes of each, the seconds that the link needs for them, and that as a share
        of the time from the first of their starts to their last end. Background traffic is not counted.
    """
    network, jobs = solution.plan.network, entries_of(solution)
    carried = np.array([result.link_bytes for result in solution.results if result.link_bytes.size == network.n_links])
    if len(carried) < len(solution.results):  # an engine without links
        return []
    start = np.array([job.start for job in jobs])
    end = start + [result.time for result in solution.results]
    needed = carried.sum(axis=0) / network.bandwidth
    links = np.flatnonzero((carried > 0).sum(axis=0) > 1)
    rows = []
    for link in links[np.argsort(-needed[links], kind="stable")].tolist():
        of_link = np.flatnonzero(carried[:, link])
        lasted = float(end[of_link].max() - start[of_link].min())
        rows.append({
            "link": network.link_name(link), "jobs": [jobs[k].name for k in of_link.tolist()],
            "bytes": carried[of_link, link].tolist(), "needed_s": float(needed[link]),
            "busy": float(needed[link]) / lasted if lasted else 0.0,
        })  # fmt: skip
    return rows


def _parts_of_links(rows: Sequence[dict[str, Any]], verbose: bool) -> list[Part]:
    """Return the table of links that jobs share; without `verbose` the first ones."""
    if not rows:
        return remarks([Remark("nothing-shared", "no link carries bytes of more than one job", needed=True)])
    shown = rows if verbose else rows[:MAX_LINKS]
    cells = [
        [row["link"], ", ".join(row["jobs"]), f"{sum(row['bytes']):.0f}", microseconds(row["needed_s"]),
         f"{row['busy']:.1%}"] for row in shown
    ]  # fmt: skip
    some = f"{len(shown)} of {len(rows)} (-v: all)" if len(shown) < len(rows) else f"all {len(rows)}"
    title = f"links that jobs share, {some}; busy: part of the jobs' time"
    return [Table(["link", "jobs", "bytes(B)", "needs(us)", "busy"], cells, title, ["bytes(B)"])]


def parts_of_jobs(solution: Solution, verbose: bool = False) -> list[Part]:
    """Return the tables of jobs, of background messages and of shared links, between what was derived and remarks."""
    shared, rows = solution.details, rows_of_jobs(solution)
    from commsim.packets.packet_options import told_transport

    wish = solution.scenario.wish
    how = told_transport(wish.model.transport) if not shared.transports else "transports by job"
    engine = f"packet, {how}" if wish.engine == "packet" else wish.engine
    what = count_text(len(rows), "job")
    what += f" and {count_text(len(shared.took), 'background message')}" if len(shared.took) else ""
    costs = costs_in_title(solution.plan.network, solution.results, has_own_costs=solution.plan.has_own_costs)
    title = f"{what} on {solution.plan.network.name}, engine {engine}, {costs}{_meaning_of_sizes(rows)}"
    columns, cells = [*COLUMNS, *(["transport"] if shared.transports else [])], [_cells(r) for r in rows]
    results, at = solution.results, COLUMNS.index("alone(us)")
    title += hashes_in_title(results)
    if any(result.whole is not None for result in results):
        columns = [*columns[:at], *COST, *columns[at:]]
        cells = [[*row[:at], *cost_cells(result), *row[at:]] for row, result in zip(cells, results, strict=True)]
    columns, cells = with_spread(columns, cells, results)
    columns, cells = with_interval(columns, cells, results)
    pieces = functools.partial(
        least_in_title, solution.plan.network, results, has_own_costs=solution.plan.has_own_costs
    )
    parts = [*remarks(solution.derived), Table(columns, cells, title, LEAST, pieces)]
    background = shared.background()
    if background is not None:
        title = "background messages, from start to the last byte"
        parts.append(Table(BACKGROUND, [_background_cells(background)], title))
    met = _met(solution) if wish.engine == "packet" else []
    links = _parts_of_links(shared_links(solution), verbose) if len(rows) > 1 else []
    return [*parts, *met, *links, *remarks(solution.remarks)]


def _meaning_of_sizes(rows: Sequence[dict[str, Any]]) -> str:
    """Describe, after a comma, what the sizes of jobs are of, with the jobs where not all are alike."""
    jobs: dict[str, list[str]] = {}
    for row in rows:
        jobs.setdefault(meaning_of_size(row["operation"], row["n_ranks"], [row["size_B"]]), []).append(row["job"])
    if len(jobs) == 1:
        return next(iter(jobs))
    return "".join(f"{meaning} of {', '.join(names)}" for meaning, names in jobs.items() if meaning)


def _met(solution: Solution) -> list[Part]:
    """Return what packets met with: those of all messages together, and of each switch system."""
    whose = {
        "all messages" if "packets" in result.counters else entry.name: result
        for entry, result in zip(entries_of(solution), solution.results, strict=True)
    }
    return [Lines(met_by_packets(result, name)) for name, result in whose.items()]


def parts_of_solution(solution: Solution) -> list[Part]:
    """Return what people see of any solution, as ``commsim run`` shows it."""
    if isinstance(solution.scenario.work, JobsWork):
        return parts_of_jobs(solution)
    groups = [name["group"] for name in solution.scenario.work.parts]
    return parts_of(solution, rows_of(solution, groups=groups), groups)


def _row(entry: JobEntry, row: RunRow, alone: float, slowdown: float) -> dict[str, Any]:
    result = row.result
    return json_row(row) | {
        "job": entry.name, "ranks": list(entry.ranks), "start_s": entry.start, "alone_s": alone,
        "slowdown": slowdown,
        "exact": bool(result.counters["exact"]) if "exact" in result.counters else None,
    }  # fmt: skip


def _cells(row: dict[str, Any]) -> list[str]:
    return [
        row["job"], str(len(row["ranks"])), f"{row['size_B']:.0f}", microseconds(row["start_s"]),
        microseconds(row["time_s"]), microseconds(row["alone_s"]), f"{row['slowdown']:.3f}",
        {None: "-", True: "yes", False: "NO"}[row["exact"]], *([row["transport"]] if "transport" in row else []),
    ]  # fmt: skip


def _background_cells(background: dict[str, Any]) -> list[str]:
    parts = background["percentiles"]
    time, slowdown = (dict(zip(parts, background[name], strict=True)) for name in ("time_s", "slowdown"))
    times = [background["mean_s"], time[50], time[99], time[100]]
    return [str(background["messages"]), *(microseconds(t) for t in times),
            *(f"{slowdown[p]:.2f}" for p in (50, 99, 100))]  # fmt: skip
