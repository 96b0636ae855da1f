"""What NCCL chooses and why, of each operation: rows of the tables of ``commsim nccl``, and its JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from commsim.core.errors import InputError
from commsim.core.remark import Remark, as_remarks
from commsim.core.units import format_size, microseconds
from commsim.report.answer import Lines, Part, Table
from commsim.report.hash_columns import TIME, with_spread

if TYPE_CHECKING:
    from commsim.core.network import Network
    from commsim.core.result import Result
    from commsim.nccl.nccl_setting import NcclSetting
    from commsim.nccl.tuner_rules import Rule
    from commsim.nccl.tuning_table import Cell

    from .nccl_flags import NcclConfig

# Share of an uncontended time from which it is printed beside a longer one.
SLOWED = 0.005
# Columns of the tables, and those that a narrow terminal leaves out: of times, of NCCL's estimates of latency and
# bandwidth, and of its choices, with the second at the middle of the sizes and how many times as long that takes.
TIMES = ("operation", "size(B)", TIME, "low(us)", "high(us)", "NCCL_takes", "uncontended(us)", "limited_by")
LEAST_OF_TIMES = ("low(us)", "high(us)", "fastest(us)", "slowest(us)", "uncontended(us)")
ESTIMATES = ("operation", "algorithm", *(f"{protocol}(us/GBps)" for protocol in ("ll", "ll128", "simple")))
CHOICES = ("operation", "from", "to", "from(B)", "to(B)", "NCCL_takes", "latency", "next_best")
LEAST_OF_CHOICES = ("from(B)", "to(B)", "latency")


class NcclQuestion(NamedTuple):
    """Where NCCL runs, and what it takes that for.

    Parameters
    ----------
    config : NcclConfig
        Flags.
    network : Network
        Network, with its faults.
    setting : NcclSetting
        What NCCL takes it and its ranks for.
    """

    config: NcclConfig
    network: Network
    setting: NcclSetting


class Explained(NamedTuple):
    """What is shown of one operation.

    Parameters
    ----------
    cells, choices : list of list of str
        Rows of the tables of NCCL's estimates and of its choices.
    predicted : list of list of str
        Rows of the table of times at the sizes that are asked for.
    results : list of Result
        Result of each of these times.
    notes : list of Remark
        Remarks on it.
    row : dict
        JSON row.
    rules : list of Rule
        Choices as rules for the tuner plugin.
    """

    cells: list[list[str]]
    choices: list[list[str]]
    predicted: list[list[str]]
    results: list[Result]
    notes: list[Remark]
    row: dict[str, Any]
    rules: list[Rule]


def explain_operation(question: NcclQuestion, operation: str, span: tuple[int, int], sizes: Sequence[int]) -> Explained:
    """Return the rows and the choices of one operation.

    Parameters
    ----------
    question : NcclQuestion
        The network and its ranks, as NCCL sees them.
    operation : str
        One that NCCL has a model of.
    span : (int, int), bytes
        Smallest and largest size of which choices are given.
    sizes : sequence of int, bytes
        Sizes at which the times of all cells are given too.
    """
    from commsim.nccl.choice import ranges
    from commsim.nccl.nccl_setting import PROTOCOLS
    from commsim.nccl.symmetric_kernels import kernels
    from commsim.nccl.tuner_rules import Rule
    from commsim.nccl.tuning_table import cell_time, cells

    setting = question.setting
    table = cells(setting, operation)
    smallest, largest = span
    chosen = [
        dataclasses.replace(r, low=max(r.low, smallest))
        for r in ranges(setting, operation, largest, table)
        if r.high >= smallest
    ]
    estimates, notes = _estimates(operation, table, PROTOCOLS)
    at = {}
    for size in sizes:
        times = sorted((t, cell.name) for cell in table if (t := cell_time(setting, operation, cell, size)) is not None)
        at[size] = {name: time for time, name in times}
        listed = ", ".join(f"{name} {microseconds(time, 1)} us" for time, name in times)
        notes.append(Remark("estimates", f"{operation} {size} B, NCCL's estimates: {listed}"))
    predicted, shown, results, told = _rows_of(question, operation, sizes)
    notes += told
    notes += as_remarks(_symmetric(setting, operation, sizes), "symmetric")
    rules = [
        Rule(operation, 0 if r.low == 1 else r.low, r.high, r.cell.algorithm, r.cell.protocol,
             n_nodes=setting.n_nodes, n_ranks=setting.n_ranks)
        for r in chosen
    ]  # fmt: skip
    row = {
        "operation": operation,
        "cells": [{"algorithm": c.algorithm, "protocol": c.protocol, "latency_s": c.latency,
                   "bandwidth_Bps": c.bandwidth, "why_not": c.why_not} for c in table],
        "choices": [{"low_B": r.low, "high_B": r.high, "algorithm": r.cell.algorithm, "protocol": r.cell.protocol,
                     "why": r.why} for r in chosen],
        "at_size": [{"size_B": size, "time_s": times} for size, times in at.items()],
        "symmetric": [{"size_B": size, "kernels": [{"kernel": k.name, "time_s": k.time, "blocks": k.blocks}
                                                   for k in kernels(setting, operation, size)]} for size in sizes],
        "predicted": predicted,
    }  # fmt: skip
    choices = [
        [operation, format_size(r.low), format_size(r.high), str(r.low), str(r.high), r.cell.name,
         f"{r.latency_share:.0%}", f"{r.next_best.name} {r.slower:.2f}x" if r.next_best else "-"]
        for r in chosen
    ]  # fmt: skip
    return Explained(estimates, choices, shown, results, notes, row, rules)


def _estimates(operation: str, table: Sequence[Cell], protocols: Sequence[str]) -> tuple[list[list[str]], list[Remark]]:
    """Give latency and bandwidth of every cell, as NCCL does with NCCL_DEBUG_SUBSYS=TUNING; say why some are empty."""
    by_name = {(cell.algorithm, cell.protocol): cell for cell in table}
    algorithms = dict.fromkeys(cell.algorithm for cell in table)
    rows: list[list[str]] = []
    empty: list[tuple[str, str]] = []
    for algorithm in algorithms:
        of_algorithm = [by_name[algorithm, protocol] for protocol in protocols]
        if any(cell.bandwidth for cell in of_algorithm):
            rows.append([operation, algorithm, *map(_latency_and_rate, of_algorithm)])
            unused = [cell for cell in of_algorithm if not cell.bandwidth and "Simple" not in cell.why_not]
            empty += [(cell.why_not, cell.name) for cell in unused]
        else:
            empty.append((of_algorithm[-1].why_not, algorithm))
    return rows, [
        Remark("not-used", f"not used: {', '.join(name for reason, name in empty if reason == why)}: {why}")
        for why in dict.fromkeys(why for why, _ in empty)
    ]


def tables_of(explained: Sequence[Explained]) -> Iterator[Part]:
    """Give one table of times, one of NCCL's estimates and one of its choices, of all operations."""
    if times := [row for one in explained for row in one.predicted]:
        names, rows = with_spread(TIMES, times, [result for one in explained for result in one.results])
        yield Table(names, rows, least=LEAST_OF_TIMES)
        yield Lines([""])
    yield Table(ESTIMATES, [row for one in explained for row in one.cells])
    yield Lines([""])
    yield Table(CHOICES, [row for one in explained for row in one.choices], least=LEAST_OF_CHOICES)


def _rows_of(
    question: NcclQuestion, operation: str, sizes: Sequence[int]
) -> tuple[list[dict[str, Any]], list[list[str]], list[Result], list[Remark]]:
    """Predict what NCCL chooses, as ``commsim run`` does, as JSON and as cells; nothing where costs are not known."""
    from commsim.nccl.plans.plan_nccl import NcclPlan
    from commsim.nccl.tuning_table import Cell
    from commsim.prediction.bounds.limited_by import limit_of, row_of_limit, short_limit
    from commsim.prediction.read import scenario_of
    from commsim.prediction.solve import plan_of, solve

    if not sizes:
        return [], [], [], []
    config = question.config
    version = f":version={config.nccl_version}" if config.nccl_version else ""
    scenario = scenario_of(
        f"nccl_{operation}{version}", question.network, n_ranks=config.ranks, placement=config.placement,
        seed=config.seed, hashes=config.hashes,
    )  # fmt: skip
    plan = plan_of(scenario)
    assert isinstance(plan, NcclPlan)
    plan = plan.taken_for(question.setting)
    launch = plan.launch
    if why := launch.why_links_only(sizes[0], launch.parameters(sizes[0])):
        return [], [], [], [Remark("no-prediction", f"no prediction: {why}", needed=True)]
    rows, shown, notes = list[dict[str, Any]](), list[list[str]](), list[Remark]()
    results: list[Result] = []
    for size in sizes:
        try:
            result = solve(scenario, [size], plan=plan).results[0]
        except InputError as error:  # no such switch in the network, where --collnet or --nvls assume one
            notes.append(Remark("no-prediction", f"{operation} {size} B: no prediction: {error}", needed=True))
            continue
        parameters = launch.parameters(size)
        cell = Cell(parameters["algorithm"], parameters["protocol"], 0.0, 0.0)
        costs = launch.costs(size, parameters)
        low, high = result.interval or (result.time, result.time)
        alone = result.time if costs is None else costs.seconds
        limit = limit_of(plan, result)
        rows.append({"size_B": size, "time_s": result.time, "low_s": low, "high_s": high, "how": cell.name,
                     "uncontended_s": alone, **result.spread_row(), **row_of_limit(limit)})  # fmt: skip
        ends = [microseconds(low, 1), microseconds(high, 1)] if low < high else ["-", "-"]
        beside = microseconds(alone, 1) if result.time > alone * (1 + SLOWED) else "-"
        shown.append([operation, str(size), microseconds(result.time, 1), *ends, cell.name, beside, short_limit(limit)])
        results.append(result)
    return rows, shown, results, notes + plan.remarks_of_sizes(sizes)


def _symmetric(setting: NcclSetting, operation: str, sizes: Sequence[int]) -> Iterator[str]:
    """Describe what NCCL would take, and when, if both buffers were registered as symmetric windows."""
    from commsim.nccl.symmetric_kernels import kernels, why_none

    if why_none(setting):
        return
    for size in sizes:
        symmetric = kernels(setting, operation, size)
        if symmetric:
            listed = ", ".join(f"{k.name} {microseconds(k.time, 1)} us ({k.blocks})" for k in symmetric)
            yield f"{operation} {size} B, registered as symmetric windows (blocks): {listed}"


def _latency_and_rate(cell: Cell) -> str:
    return f"{microseconds(cell.latency, 1)}/{cell.bandwidth / 1e9:.1f}" if cell.bandwidth else "-"
