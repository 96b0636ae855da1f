"""The table of a prediction: the columns of nccl-tests, and what only a simulation knows."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from commsim.core.operations import OPERATIONS
from commsim.core.remark import as_remarks
from commsim.core.result import mean_busbw
from commsim.core.units import microseconds
from commsim.extensions import house
from commsim.prediction.bounds.limited_by import Limit, bytes_up, limit_of, row_of_limit, told_limits
from commsim.report.answer import Lines, Part, Table, remarks
from commsim.report.hash_columns import COST, TIME, cost_cells, with_spread
from commsim.report.titles import least_of_run, software_costs, title_of

if TYPE_CHECKING:
    from commsim.core.network import Network
    from commsim.core.remark import Remark
    from commsim.core.result import Result
    from commsim.core.schedule import Schedule
    from commsim.prediction.scenario import Wish
    from commsim.prediction.solve import Solution

# Links that a verbose table lists.
MAX_LINKS = 10
# Bytes of an element of the types of nccl-tests.
DATATYPES = {
    "float": 4, "double": 8, "half": 2, "bfloat16": 2, "fp8_e4m3": 1, "fp8_e5m2": 1,
    "int8": 1, "uint8": 1, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8,
}  # fmt: skip
GROUP = "group"
ENDS = ("low(us)", "high(us)")
# Columns that a narrow terminal leaves out, the least important first.
LEAST = (
    "type", "redop", "root", "#wrong", "count", "wire(B)", "busiest(B)", "busiest(GB/s)", "busiest_link", "algbw(GB/s)",
    ENDS[1], ENDS[0], COST[0],  # the cost beside it says as much
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RunRow:
    """One result, with what its cells are made of.

    Parameters
    ----------
    result : Result
        Prediction.
    network : Network
        Network on which it was predicted.
    schedule : Schedule
        Schedule of the collective.
    datatype : str
        Type of the elements that are counted, one of ``DATATYPES``.
    group : str
        Ranks of the group, where several run at once.
    costs : str
        What the time includes of the cost of software.
    key : str
        Collective as it was asked for.
    limit : Limit, optional
        What limits the time, where it is known.
    """

    result: Result
    network: Network
    schedule: Schedule
    datatype: str = "float"
    group: str = ""
    costs: str = ""
    key: str = ""
    limit: Limit | None = None


class EngineReport(NamedTuple):
    """What an engine adds to the table of a prediction.

    Parameters
    ----------
    told : callable
        Function from the wish to words behind the engine's name in the heading.
    more : callable
        Function from the wish to further keys of the JSON.
    parts : callable
        Function from the results to parts below the table.
    remarks : callable
        Function from the solution to remarks.
    """

    told: Callable[[Wish], str]
    more: Callable[[Wish], dict[str, Any]]
    parts: Callable[[Sequence[Result]], list[Part]]
    remarks: Callable[[Solution], list[Remark]]


def rate_cell(bytes_per_s: float) -> str:
    """Write a rate as a cell in GB/s; ``-`` for what takes no time, and has none."""
    return f"{bytes_per_s / 1e9:.3f}" if math.isfinite(bytes_per_s) else "-"


def rows_of(solution: Solution, datatype: str = "float", groups: Sequence[str] = ()) -> list[RunRow]:
    """Return the rows of a solution: one for each result."""
    network, schedules = solution.plan.network, solution.plan.schedules
    names = groups or ("",) * len(schedules)
    costs = software_costs(network, has_own_costs=solution.plan.has_own_costs)
    return [
        RunRow(
            result,
            network,
            schedules[i % len(schedules)],
            datatype,
            names[i % len(schedules)],
            costs,
            solution.scenario.work.title,
            limit_of(solution.plan, result),
        )
        for i, result in enumerate(solution.results)
    ]


def table_of(rows: Sequence[RunRow], title: str, title_least: Callable[[], Sequence[str]] = tuple) -> Table:
    """Return rows as a table; groups, hashes, faults and intervals have columns where there are some."""
    by_name, results = [_cells(row) for row in rows], [row.result for row in rows]
    names = [name for name in by_name[0] if name != GROUP or any(row.group for row in rows)]
    cells = [[one[name] for name in names] for one in by_name]
    if any(result.hashes is not None for result in results):
        names, cells = with_spread(names, cells, results)
    if any(result.whole is not None for result in results):
        names += COST
        cells = [[*row, *cost_cells(result)] for row, result in zip(cells, results, strict=True)]
    if any(result.interval is not None for result in results):
        names, cells = with_interval(names, cells, results)
    return Table(names, cells, title, [name for name in LEAST if name in names], title_least)


def with_interval(
    names: Sequence[str], cells: Sequence[Sequence[str]], results: Sequence[Result]
) -> tuple[list[str], list[list[str]]]:
    """Add the ends of the interval of each time to a table with a row for each result, where any has one."""
    if all(result.interval is None for result in results):
        return list(names), [list(row) for row in cells]
    ends = (map(microseconds, result.interval) if result.interval else "--" for result in results)
    return [*names, *ENDS], [[*row, *two] for row, two in zip(cells, ends, strict=True)]


def _cells(row: RunRow) -> dict[str, str]:
    """Return the cells that every row has, by their columns: those of nccl-tests, and of the busiest link."""
    result, operation = row.result, OPERATIONS.get(row.result.operation)
    link, load, rate = result.busiest_link(row.network)
    parts = operation.least_chunks(result.n_ranks) if operation and operation.layout == "none" else 1
    return {
        GROUP: row.group,
        "size(B)": f"{result.size:.0f}",
        "count": f"{result.size / DATATYPES[row.datatype] / parts:.0f}",
        "type": row.datatype,
        "redop": "sum" if operation and operation.reduces else "none",
        "root": str(row.schedule.root if operation and operation.has_root else -1),
        TIME: microseconds(result.time),
        "algbw(GB/s)": rate_cell(result.algbw),
        "busbw(GB/s)": rate_cell(result.busbw) if operation else "N/A",
        "#wrong": "N/A",
        "wire(B)": f"{result.bytes_on_wire:.0f}",
        "busiest(B)": f"{load:.0f}",
        "busiest(GB/s)": f"{rate / 1e9:.3f}",
        "busiest_link": link or "-",
    }


def parts_of(
    solution: Solution,
    rows: Sequence[RunRow],
    groups: Sequence[str] = (),
    verbose: bool = False,
    title: str = "",
    brief: bool = False,
) -> list[Part]:
    """Return what people see of a solution, whose rows are known: what was derived, the table, its mean, and remarks.

    A `title` is given where several solutions have a common one. If `brief`, only ``-v`` shows the table and its mean:
    another table has all of them.
    """
    results, plan, wish = solution.results, solution.plan, solution.scenario.wish
    limits = "" if groups else told_limits([row.limit for row in rows], [row.result.size for row in rows])
    if not title:
        name, network, *rest = title_of(solution, groups)
        title = f"{name} on {network}, {', '.join(rest)}"
    table = table_of(rows, title, functools.partial(least_of_run, solution))
    parts = [*remarks(solution.derived), dataclasses.replace(table, only_verbose=brief)]
    notes = list(solution.remarks)
    if not groups:
        if verbose or not brief:
            mean = f"# Avg bus bandwidth    : {mean_busbw(results) / 1e9:.4g}"
            parts.append(Lines((mean,), is_repeated=len(results) == 1))
            parts += [Lines((f"# {limits}",))] if limits else []
        for engine in dict.fromkeys(result.engine for result in results):
            if engine in house().reports:
                report: EngineReport = house().reports[engine]
                parts += report.parts(results)
                notes += report.remarks(solution)
        if verbose:
            from commsim.engine.ways.catalog import ways_of_method

            ways = [f"flow engine: {ways_of_method(m)[0].words}" for m in sorted({r.method for r in results} - {""})]
            framed = wish.framing is not None
            parts += _busiest_links(rows[-1])
            notes = [*as_remarks(ways, "way"), *notes, *plan.remarks(results, has_framing=framed, verbose=True)]
    return [*parts, *remarks(notes)]


def _busiest_links(row: RunRow) -> list[Part]:
    """Return the links that need longest for their bytes, at the last size."""
    result, network = row.result, row.network
    if not result.link_bytes.size:  # an engine without links
        return []
    order = np.argsort(-result.link_bytes / network.bandwidth, kind="stable")
    machine = network.machine
    inside = (machine[network.src[order]] >= 0) & (machine[network.src[order]] == machine[network.dst[order]])
    links = order[:MAX_LINKS]
    if inside.any() and not inside.all():  # links inside machines, of which there are more, would hide the fabric's
        half = MAX_LINKS // 2
        links = np.concatenate((order[~inside][:half], order[inside][:half]))
    cells = [
        [network.link_name(link), f"{result.link_bytes[link]:.0f}", rate_cell(network.bandwidth[link]),
         f"{result.link_bytes[link] / network.bandwidth[link] / result.time:.1%}"]
        for link in links.tolist() if result.time and result.link_bytes[link]
    ]  # fmt: skip
    between = ", between machines and then inside" if inside.any() and not inside.all() else ""
    title = (
        f"the links that need longest for their bytes{between}, {result.size:.0f} B; busy: share of the time at full "
        "rate"
    )
    up = [f"# up over {what}: {carried:.0f} B, {carried / result.bytes_on_wire:.1%} of wire(B)"
          for what, carried in bytes_up(network, result.link_bytes).items()]  # fmt: skip
    table = Table(["link", "bytes(B)", "rate(GB/s)", "busy"], cells, title)
    return [table, *([Lines(tuple(up))] if up else [])] if cells else []


def json_row(row: RunRow) -> dict[str, Any]:
    """Return the JSON row of one result: what the table shows, and how it was computed."""
    link, load, rate = row.result.busiest_link(row.network)
    busiest = None if link is None else {"name": link, "bytes": load, "Bps": rate}
    values: dict[str, Any] = {"group": row.group} if row.group else {}
    how = {"method": row.result.method or None} | ({"costs": row.costs} if row.costs else {})
    carried = bytes_up(row.network, row.result.link_bytes)
    up = {"bytes_up": [{"name": what, "bytes": n_bytes} for what, n_bytes in carried.items()]}
    return values | row.result.row(row.key) | {"busiest_link": busiest} | up | row_of_limit(row.limit) | how
