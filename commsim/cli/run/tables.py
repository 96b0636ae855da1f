"""The table of ``commsim run``: the columns of nccl-tests, and what only a simulation knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from commsim.core.operations import OPERATIONS
from commsim.core.units import counted
from commsim.report.answer import Lines, Part, Table, remarks

from .config import DATATYPES, Config

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from commsim.core.network import Network
    from commsim.core.result import Result
    from commsim.core.schedule import Schedule
    from commsim.scenario.solve import Solution

# What ``-v`` says of the flow engine's ways to compute.
METHODS = {
    "recurrence": "a recurrence, since messages have their links to themselves or share them in step",
    "simultaneous": "one allocation of rates, since all messages start together",
    "symmetric": "one transfer of each class of equal transfers",
    "streamed": "event by event, with one state per connection instead of per message",
    "bottlenecks": "event by event, with one rate for all messages that one link holds down",
    "closed-form": "NCCL's closed form, since no link can be in the way of its messages",
    "loops": "some of NCCL's loops, which repeat: within some 1 % of all",
    "events": "event by event",
}


@dataclass(frozen=True, slots=True)
class Row:
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
    """

    result: Result
    network: Network
    schedule: Schedule
    datatype: str = "float"
    group: str = ""

    @property
    def operation(self) -> Any:
        """Operation, None of a custom one."""
        return OPERATIONS.get(self.result.operation)

    @property
    def busiest(self) -> tuple[str | None, float, float]:
        """Link that needs the longest for its bytes: its name, its bytes, and its mean rate in bytes/s."""
        r = self.result
        if not r.link_bytes.any():
            return None, 0.0, 0.0
        link = int((r.link_bytes / self.network.bandwidth).argmax())
        load = float(r.link_bytes[link])
        return self.network.link_name(link), load, load / r.time if r.time else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Answered:
    """What was asked for, predicted.

    Parameters
    ----------
    parts : sequence of Part
        Tables and remarks.
    rows : sequence of mapping
        Rows of the JSON.
    results : sequence of Result
        All results.
    network : Network
        Network with its faults and costs.
    more : mapping
        Further keys of the JSON.
    solutions : sequence of Solution
        Solutions of single collectives.
    chosen : dict
        Flags with the values that were chosen where they were not given.
    """

    parts: Sequence[Part]
    rows: Sequence[Mapping[str, Any]]
    results: Sequence[Result]
    network: Network
    more: dict[str, Any] = field(default_factory=dict)
    solutions: Sequence[Solution] = ()
    chosen: dict[str, Any] = field(default_factory=dict)


class Column(NamedTuple):
    """A column: its name with a unit, its cell, and the place in which a narrow terminal leaves it out (0: never)."""

    name: str
    cell: Callable[[Row], str]
    hidden: int = 0


def _root(row: Row) -> str:
    return str(row.schedule.root if row.operation and row.operation.has_root else -1)


def _interval(row: Row, end: int) -> str:
    return "-" if row.result.interval is None else f"{row.result.interval[end] * 1e6:.2f}"


COLUMNS = (
    Column("size(B)", lambda row: f"{row.result.size:.0f}"),
    Column("count", lambda row: f"{row.result.size / DATATYPES[row.datatype]:.0f}", 5),
    Column("type", lambda row: row.datatype, 1),
    Column("redop", lambda row: "sum" if row.operation and row.operation.reduces else "none", 2),
    Column("root", _root, 3),
    Column("time(us)", lambda row: f"{row.result.time * 1e6:.2f}"),
    Column("algbw(GB/s)", lambda row: f"{row.result.algbw / 1e9:.3f}", 10),
    Column("busbw(GB/s)", lambda row: f"{row.result.busbw / 1e9:.3f}" if row.operation else "N/A"),
    Column("#wrong", lambda row: "N/A", 4),  # noqa: ARG005
    Column("wire(B)", lambda row: f"{row.result.bytes_on_wire:.0f}", 6),
    Column("max_link(B)", lambda row: f"{row.busiest[1]:.0f}", 7),
    Column("max_link(GB/s)", lambda row: f"{row.busiest[2] / 1e9:.3f}", 8),
    Column("busiest_link", lambda row: row.busiest[0] or "-", 9),
)
INTERVAL = (Column("low(us)", lambda row: _interval(row, 0)), Column("high(us)", lambda row: _interval(row, 1)))
GROUP = (Column("group", lambda row: row.group),)


def rows_of(solution: Solution, datatype: str = "float", groups: Sequence[str] = ()) -> list[Row]:
    """Return the rows of a solution: one for each result."""
    network, schedules = solution.plan.network, solution.plan.schedules
    names = groups or ("",) * len(schedules)
    return [
        Row(result, network, schedules[i % len(schedules)], datatype, names[i % len(schedules)])
        for i, result in enumerate(solution.results)
    ]


def answered_by(config: Config, solutions: Sequence[Solution], said: Sequence[Part] = ()) -> Answered:
    """Return the table of each solution, below what is said of all.

    Parameters
    ----------
    config : Config
        Flags.
    solutions : sequence of Solution
        Solutions of single collectives, or of one that groups run.
    said : sequence of Part
        Remarks on all of them.
    """
    parts, rows = [*said], list[Row]()
    for solution in solutions:
        parts += parts_of(solution, config.datatype, config.group, config.verbose)
        rows += rows_of(solution, config.datatype, config.group)
    return answered_of(config, parts, rows, solutions[0].scenario.network, solutions=solutions)


def answered_of(config: Config, parts: Sequence[Part], rows: Sequence[Row], network: Network, **more: Any) -> Answered:
    """Return what was predicted, of rows."""
    results, chosen = [row.result for row in rows], {"engine": config.engine or "flow"}
    return Answered(parts, [json_row(row) for row in rows], results, network, chosen=chosen, **more)


def table_of(rows: Sequence[Row], title: str) -> Table:
    """Return rows as a table; intervals and groups have columns where there are some."""
    columns = [*(GROUP if any(row.group for row in rows) else ()), *COLUMNS]
    columns += INTERVAL if any(row.result.interval is not None for row in rows) else ()
    least = sorted((column for column in columns if column.hidden), key=lambda column: column.hidden)
    cells = [[column.cell(row) for column in columns] for row in rows]
    return Table([column.name for column in columns], cells, title, [column.name for column in least])


def parts_of(
    solution: Solution, datatype: str = "float", groups: Sequence[str] = (), verbose: bool = False
) -> list[Part]:
    """Return what people see of a solution: what was derived, the table, its mean, and remarks."""
    results, plan = solution.results, solution.plan
    rows = rows_of(solution, datatype, groups)
    engines = "/".join(dict.fromkeys(r.engine for r in results))
    what = f"{counted(len(groups), 'group')} at once" if groups else counted(plan.schedules[0].n_ranks, "rank")
    parts = [
        *remarks(solution.derived),
        table_of(rows, f"{solution.scenario.name} on {plan.network.name}, {what}, engine {engines}"),
    ]
    said: Iterable[str] = solution.remarks
    if not groups:
        rates = [r.busbw for r in results if r.time > 0 and r.operation in OPERATIONS]  # 'custom' has no factor
        parts.append(Lines((f"# Avg bus bandwidth    : {sum(rates) / max(1, len(rates)) / 1e9:.4g}",)))
        if verbose:
            ways = [f"flow engine: {METHODS[m]}" for m in sorted({r.method for r in results} & METHODS.keys())]
            framed = solution.scenario.wish.framing is not None
            said = (*ways, *plan.remarks(results, has_framing=framed, verbose=True))
    return [*parts, *remarks(said)]


def json_row(row: Row) -> dict[str, Any]:
    """Return the JSON row of one result: what the table shows, and how it was computed."""
    link, load, rate = row.busiest
    busiest = None if link is None else {"name": link, "bytes": load, "Bps": rate}
    values: dict[str, Any] = row.result.row()
    return values | {"busiest_link": busiest, "method": row.result.method or None}


def resolved_network(network: Network) -> dict[str, Any]:
    """Return what a specification has become, with defaults, faults and costs: for the JSON of a prediction."""
    return {
        "name": network.name,
        "n_nodes": network.n_nodes,
        "n_links": network.n_links,
        "routing": network.routing,
        "bandwidth_Bps": _extremes(network.bandwidth),
        "latency_s": _extremes(network.latency),
        "overhead_s": float(network.overhead.max(initial=0.0)),
        "gamma_s_per_B": float(network.gamma.max(initial=0.0)),
        "hardware": network.hardware,
    }


def _extremes(values: NDArray[np.float64]) -> list[float]:
    """Return the smallest and the largest, or nothing of nothing."""
    return [float(values.min()), float(values.max())] if values.size else []
