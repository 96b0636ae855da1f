"""What ``commsim explain`` prints of one operation: NCCL's table, what it takes at which size, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from commsim.core.units import format_size

from .table import print_table

if TYPE_CHECKING:
    from commsim.formats.nccl_tuner import Rule
    from commsim.nccl.choice import Range
    from commsim.nccl.model import Cell
    from commsim.nccl.setting import Setting


def explain_operation(
    setting: Setting, operation: str, largest: int, sizes: Sequence[int]
) -> tuple[dict[str, Any], list[Rule]]:
    """Print the table and the choices of one operation.

    Parameters
    ----------
    setting : Setting
        Where.
    operation : str
        One that NCCL has a model of.
    largest : int, bytes
        Up to where choices are printed.
    sizes : sequence of int, bytes
        At which the times of all cells are printed too.

    Returns
    -------
    dict, list of Rule
        The JSON row, and the choices as rules for the tuner plugin.
    """
    from commsim.formats.nccl_tuner import Rule
    from commsim.nccl.choice import cell_time, ranges
    from commsim.nccl.constants import PROTOCOLS
    from commsim.nccl.model import cells

    table = cells(setting, operation)
    print()
    _print_cells(operation, table, PROTOCOLS)
    found = ranges(setting, operation, largest, table)
    rows = [[_interval(r), r.cell.name, r.why] for r in found]
    print_table(["sizes", "NCCL takes", "why"], rows, f"{operation}: choices up to {format_size(largest)}")
    at = {}
    for size in sizes:
        times = sorted((t, cell.name) for cell in table if (t := cell_time(setting, operation, cell, size)) is not None)
        at[size] = {name: time for time, name in times}
        print(f"# {operation} {size} B: " + ", ".join(f"{name} {time * 1e6:.1f} us" for time, name in times))
    rules = [
        Rule(operation, 0 if r.low == 1 else r.low, r.high, r.cell.algorithm, r.cell.protocol,
             n_nodes=setting.n_nodes, n_ranks=setting.n_ranks)
        for r in found
    ]  # fmt: skip
    row = {
        "operation": operation,
        "cells": [{"algorithm": c.algorithm, "protocol": c.protocol, "latency_s": c.latency,
                   "bandwidth_Bps": c.bandwidth, "why_not": c.why_not} for c in table],
        "choices": [{"low_B": r.low, "high_B": r.high, "algorithm": r.cell.algorithm, "protocol": r.cell.protocol,
                     "why": r.why} for r in found],
        "at_size": [{"size_B": size, "time_s": times} for size, times in at.items()],
    }  # fmt: skip
    return row, rules


def _print_cells(operation: str, table: Sequence[Cell], protocols: Sequence[str]) -> None:
    """Print latency and bandwidth of every cell, as NCCL does with NCCL_DEBUG_SUBSYS=TUNING; say why some are empty."""
    by_name = {(cell.algorithm, cell.protocol): cell for cell in table}
    algorithms = dict.fromkeys(cell.algorithm for cell in table)
    rows: list[list[str]] = []
    empty: list[tuple[str, str]] = []
    for algorithm in algorithms:
        mine = [by_name[algorithm, protocol] for protocol in protocols]
        if any(cell.bandwidth for cell in mine):
            rows.append([algorithm, *map(_latency_and_rate, mine)])
            unused = [cell for cell in mine if not cell.bandwidth and "Simple" not in cell.why_not]
            empty += [(cell.why_not, cell.name) for cell in unused]
        else:
            empty.append((mine[-1].why_not, algorithm))
    print_table(["algorithm", *protocols], rows, f"{operation}: latency (us) / bandwidth (GB/s) of the algorithm")
    for why in dict.fromkeys(why for why, _ in empty):
        print(f"# not used: {', '.join(name for reason, name in empty if reason == why)}: {why}")


def _latency_and_rate(cell: Cell) -> str:
    return f"{cell.latency * 1e6:.1f}/{cell.bandwidth / 1e9:.1f}" if cell.bandwidth else "-"


def _interval(found: Range) -> str:
    return f"{found.low}..{found.high} ({format_size(found.low)} to {format_size(found.high)})"
