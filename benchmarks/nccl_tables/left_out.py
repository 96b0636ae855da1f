"""Predictions of systems whose tables are left out: of the fit of the costs, and of what intervals are calibrated on.

A system is all tables of one operator (the first part of their names). Its error without it: each section of constants
that one of its tables is in is fitted again on the section's other tables; where none is left, on all other healthy
tables of that generation or network whose version and NICs are known; where there are none either, a network has NCCL's
own latencies and 90 % of its NICs. The coverage of intervals: all other systems are the calibration set, and its rows
are counted that lie inside.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.nccl_tables.fit import RACKS_KEY, TABLES, fit, with_values
from benchmarks.nccl_tables.intervals import LEAST_OPERATORS, made, scores_of_tables
from benchmarks.nccl_tables.machines import Table
from benchmarks.nccl_tables.rows import LARGE, usable
from commsim.nccl.gpu_costs import GpuCosts, Plugin
from commsim.nccl.prediction import predict

# Of a network without any table: hops of tuning.cc of NCCL 2.30, and a share of the NICs' rate.
UNKNOWN = Plugin(5.0e-6, 8.5e-6, 14.0e-6, 0.9)

LEFT_OUT_HEAD = """
## Systems left out

A system consists of all tables of one operator. Errors (median from 1 MiB up, median below, and 90th percentile, of
the rows that the index uses) are given with the constants as shipped, and with constants fitted without the system.
These are fitted to the other tables of the section, or to all other tables of that generation or network whose version
and NICs are known. If no other operator has such a table, nothing is fitted (NCCL's own latencies, 90 % of the NICs'
rate). Coverage is the share of the rows in tables to which nothing was fitted that lie in the 80 % interval given by
the other systems.
"""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Errors of one system.

    Parameters
    ----------
    system : str
        First part of its tables' names.
    n_rows : int
        Rows that are trusted, of its healthy tables.
    sections : tuple of str
        Sections of constants that its tables are fitted in.
    shipped, without : (float, float, float)
        Median error from 1 MiB and below, and 90th percentile of all: with the constants of this version, and with
        those that were fitted without the system.
    inside : tuple of bool
        Whether the interval of all other systems has the row, of rows that nothing is fitted on.
    """

    system: str
    n_rows: int
    sections: tuple[str, ...]
    shipped: tuple[float, float, float]
    without: tuple[float, float, float]
    inside: tuple[bool, ...]


def left_out(tables: Sequence[Table], known: GpuCosts) -> list[LeftOut]:
    """Predict each system without it.

    Parameters
    ----------
    tables : sequence of Table
        All tables.
    known : GpuCosts
        Constants of this version.
    """
    kept = [table for table in tables if table.healthy and not usable(table, known)]
    found = []
    for name in dict.fromkeys(system_of(table) for table in kept):
        own = [table for table in kept if system_of(table) == name]
        others = [table for table in kept if system_of(table) != name]
        sections = tuple(s for s, ids in TABLES.items() if any(table.id in ids for table in own))
        there = _without(known, sections, others)
        found.append(
            LeftOut(name, sum(len(_trusted(t)) for t in own), sections, _errors(known, own), _errors(there, own),
                    covered(known, own, others))
        )  # fmt: skip
    return found


def coverage(found: Iterable[LeftOut]) -> float:
    """Return the share of rows of systems left out that lie in their interval of 80 %."""
    inside = [one for system in found for one in system.inside]
    return sum(inside) / len(inside)


def page(found: Sequence[LeftOut]) -> list[str]:
    """Return the section of the page."""
    lines = [
        LEFT_OUT_HEAD,
        "| system | rows | fitted in | as shipped | without it | coverage |",
        "|---|---|---|---|---|---|",
    ]
    for one in found:
        share = f"{sum(one.inside) / len(one.inside):.0%}" if one.inside else "-"
        cells = [one.system, str(one.n_rows), ", ".join(one.sections) or "-", _shown(one.shipped), _shown(one.without)]
        lines.append(f"| {' | '.join([*cells, share])} |")
    n = sum(len(one.inside) for one in found)
    return [*lines, "", f"Coverage of all {n} rows: {coverage(found):.0%} (80 % is stated)."]


def system_of(table: Table) -> str:
    """Return the first part of a table's name."""
    return table.id.split("_")[0]


def _trusted(table: Table) -> tuple[tuple[int, float], ...]:
    return tuple(row for row in table.rows if row[0] >= table.trusted_from)


def _without(known: GpuCosts, sections: Sequence[str], others: Sequence[Table]) -> GpuCosts:
    for section in sections:
        kind, name = section.split(".")
        rest = [table for table in others if table.id in TABLES[section]] or [
            replace(table, rows=_trusted(table)) for table in others if _is_of(table, kind, name)
        ]
        if rest:
            known = fit(known, section, rest)
        elif kind == "racks":
            known = with_values(known, section, {RACKS_KEY: 1.0})
        elif kind == "plugin":
            plain = replace(UNKNOWN, protocols=known.plugins[name].protocols)
            known = replace(known, plugins={**known.plugins, name: plain})
    return known


def _is_of(table: Table, kind: str, name: str) -> bool:
    """Whether a table tells something of a section: of a generation, tables of one machine."""
    site = table.site
    if site is None or not table.is_known:
        return False
    if kind == "plugin":
        return site.network == name
    if kind == "racks":
        return False  # a table of its own is needed
    return site.setting.gpu == name and site.setting.n_nodes == 1 and site.pcie == (kind == "pcie")


def _errors(known: GpuCosts, tables: Iterable[Table]) -> tuple[float, float, float]:
    sizes, errors = [], []
    for t in tables:
        assert t.site is not None
        for size, time in _trusted(t):
            sizes.append(size)
            ours = predict(t.site, t.operation, size, t.algorithm, t.protocol, known).seconds
            errors.append(abs(t.shown(ours) / time - 1))
    large, found = np.array(sizes) >= LARGE, np.array(errors)
    medians = (float(np.median(found[part])) if part.any() else float("nan") for part in (large, ~large))
    return *medians, float(np.percentile(found, 90))  # type: ignore[return-value]


def covered(known: GpuCosts, own: Iterable[Table], others: Sequence[Table]) -> tuple[bool, ...]:
    """Return which rows of tables that nothing was fitted on lie in the intervals that other tables give."""
    intervals, _ = made(scores_of_tables(others, known), LEAST_OPERATORS - 1)
    limits = ((score, intervals.get((score.kind, score.size))) for score in scores_of_tables(own, known))
    return tuple(pair[0] <= math.exp(score.log) <= pair[1] for score, pair in limits if pair is not None)


def _shown(errors: tuple[float, float, float]) -> str:
    return ", ".join("-" if np.isnan(error) else f"{error:.0%}" for error in errors)
