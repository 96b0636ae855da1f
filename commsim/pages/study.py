"""The content of a report: rows of results, measurements, runs in detail, and their provenance."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from commsim.core.errors import InputError, printable
from commsim.core.remark import Remark, as_remarks
from commsim.core.units import parse_bandwidth
from commsim.report.titles import remark_on_costs

from .derive import with_derived
from .figure_tables import Column, FigureTable, distinct, number_column, table_of_rows
from .rows.algorithms import CURVE, curve_names, with_algorithms, with_curves, with_specs
from .rows.row_selection import matching_rows, renamed, short_names

if TYPE_CHECKING:
    from .figure import Figure
    from .simulated_run import SimulatedRun

# Columns that say what came out; the others say what was asked.
PREDICTED = (
    "time_s", "time_from_last_start_s", "algbw_Bps", "busbw_Bps", "bytes_on_wire", "max_link_bytes",
    "p5_s", "p95_s", "n_samples", "low_s", "high_s", "fastest_s", "slowest_s", "n_hashes", "whole_s", "faults_cost",
    "alone_s", "slowdown", "limit_busy", "limited_by", "method",
)  # fmt: skip
# Those of them that are names.
NAMES_PREDICTED = ("limited_by", "method")
# Columns of results that repeat what was asked, under the names that figures use.
ASKED = ("collective", "operation", "engine", "n_ranks", "size_B", "policy", "workers")
ASIDE = ("point", "order", "seed", "repeat", "error", "line_rate_Bps", "costs", "remarks", "asked", CURVE)
DERIVED = ("speedup", "size_per_rank_B", "strong_efficiency", "weak_efficiency")
MAX_ROWS = 1_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """Everything that figures are made of.

    Parameters
    ----------
    title : str
        What was studied.
    rows : FigureTable
        A row per result; failed points of a sweep are not among them.
    parameters : tuple of str
        Columns of the rows that say what was asked, and vary.
    measured : FigureTable, optional
        Real measurements: operation, size_B, time_s, busbw_Bps, and what else they have.
    runs : tuple of SimulatedRun
        Runs with their networks and the times of every transfer.
    left_out : mapping of str to str
        Runs, and why they are not there in detail.
    provenance : mapping of str to str
        Version, file, hash of the configuration.
    by : str
        Column whose values get a colour each.
    baseline : str
        The algorithm to which others are compared; by default those whose name begins with ``ring``.
    failed : mapping of str to int
        Different errors of points that failed, and how many points each stopped.
    remarks : tuple of Remark
        What the commands said of their results: what was assumed, what is not counted.
    said : tuple of Remark
        Those of `remarks` that the command of the results printed itself.
    names : mapping of str to mapping
        Word that figures show, by column and value.
    figures : tuple of Figure
        What is shown in place of figures of rows, where rows are not of collectives.
    watched : tuple of Figure
        Figures of links that several jobs share, shown beside those of rows.
    listed : tuple of str
        Columns of the table of all rows, where they are not those of collectives.
    """

    title: str
    rows: FigureTable
    parameters: tuple[str, ...] = ()
    measured: FigureTable | None = None
    runs: tuple[SimulatedRun, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    provenance: Mapping[str, str] = field(default_factory=dict)
    by: str = ""
    baseline: str = ""
    failed: Mapping[str, int] = field(default_factory=dict)
    remarks: tuple[Remark, ...] = ()
    said: tuple[Remark, ...] = ()
    names: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    figures: tuple[Figure, ...] = ()
    watched: tuple[Figure, ...] = ()
    listed: tuple[str, ...] = ()

    @property
    def n_failed(self) -> int:
        """How many points failed."""
        return sum(self.failed.values())

    def series(self, *but: str) -> dict[str, str]:
        """Return the role `by`: the column asked for, else the algorithm, else the first parameter but those named.

        Where a value of the column asked for has several algorithms, each has a curve.
        """
        if self.by:
            return {"by": CURVE if CURVE in self.rows else self.by}
        for name in ("collective", *self.parameters):
            if name in self.parameters and name not in but:
                return {"by": name}
        return {}


def parameters_of(table: FigureTable) -> list[str]:
    """Names of columns with at least two values that say what was asked, not what came out.

    In the table of a sweep these stand before the column ``error``; those that another one repeats are left out, also
    with parameters that are always the same: ``tree:n_chunks=8`` where another column says ``tree``.
    """
    names = _question_columns(table)
    varying = [name for name in (*ASKED, *names) if name in names and len(distinct(table[name])) > 1]
    parameters: list[str] = []
    for name in dict.fromkeys(varying):
        if not any(_same(table[name], table[other]) for other in parameters):
            parameters.append(name)
    return parameters


def constants_of(table: FigureTable) -> list[str]:
    """Names of columns that say what was asked and have the same value in every row."""
    names = _question_columns(table)
    return [name for name in dict.fromkeys((*ASKED, *names)) if name in names and _is_constant(table[name])]


def _is_constant(column: Column) -> bool:
    missing = np.isnan(column.values) if column.labels is None else column.values < 0
    return not missing.any() and len(distinct(column)) == 1


def _question_columns(table: FigureTable) -> list[str]:
    names = [name for name in table if name not in (*PREDICTED, *ASIDE, *DERIVED) and not name.startswith("counters")]
    if "error" in table:
        columns = set(list(table)[: list(table).index("error")]) | set(ASKED)
        names = [name for name in names if name in columns]
    return names


def _same(a: Column, b: Column) -> bool:
    if a.labels is None or b.labels is None:
        return a.labels is b.labels and np.array_equal(a.values, b.values, equal_nan=True)
    pairs = set(zip(a.text(), b.text(), strict=True))
    if any(short not in (long, long.partition(":")[0]) for long, short in pairs):
        return False
    return len({long for long, _ in pairs}) == len({short for _, short in pairs}) == len(pairs)


@dataclass(frozen=True, slots=True)
class RowSelection:
    """What of the rows is shown, and how.

    Parameters
    ----------
    baseline, by : str
        Same as in :class:`Study`.
    where : tuple of str
        Conditions, as :func:`commsim.pages.rows.row_selection.matching_rows` has them.
    rename : tuple of str
        ``OLD=NEW``.
    """

    baseline: str = ""
    by: str = ""
    where: tuple[str, ...] = ()
    rename: tuple[str, ...] = ()


EVERYTHING = RowSelection()


def study_of_rows(
    title: str,
    rows: Sequence[Mapping[str, Any]],
    config: Mapping[str, Any],
    choice: RowSelection = EVERYTHING,
    remarks: Sequence[Remark] = (),
) -> Study:
    """Make a study of the rows of one command.

    Parameters
    ----------
    title : str
        Title, if the configuration has none.
    rows : sequence of mapping
        Rows as ``--json`` writes them.
    config : mapping
        The flags of the command.
    choice : RowSelection
        What is shown.
    remarks : sequence of Remark
        What the command said.
    """
    named = with_specs(rows, config)
    provenance = {"input": title, **made_by("run", config)}
    what = config.get("operation") or ", ".join(dict.fromkeys(str(row.get("collective", "")) for row in named))
    where = config.get("topology")
    title = " ".join((f"{what} on {where}", *_words(config, ("fail", "scale")))) if what and where else title
    rows_with_specs = make_study(title, table_of_rows(named), provenance, choice, remarks)
    return dataclasses.replace(rows_with_specs, said=tuple(remarks))


def make_study(
    title: str,
    rows: FigureTable,
    provenance: Mapping[str, str],
    choice: RowSelection = EVERYTHING,
    remarks: Sequence[Remark] = (),
) -> Study:
    """Make a study of a table: its parameters, without failed points, with columns that compare rows.

    Parameters
    ----------
    title : str
        Title of the page.
    rows : FigureTable
        Results; failed points may be among them.
    provenance : mapping of str to str
        Version, file, hash of the configuration.
    choice : RowSelection
        What is shown.
    remarks : sequence of Remark
        What the commands said of the results.

    Raises
    ------
    InputError
        If there are too many rows, or the choice does not fit them.
    """
    from commsim.version import __version__

    baseline, by = choice.baseline, choice.by
    rows, failed = _without_failed(rows)
    rows = with_algorithms(matching_rows(rows, choice.where))
    if rows.n_rows > MAX_ROWS:
        raise InputError(f"{title}: has {rows.n_rows} rows; a report is made of at most {MAX_ROWS}")
    parameters = parameters_of(rows)
    if by and by not in parameters:
        raise InputError(f"--by must be a column that varies ({', '.join(parameters) or 'none does'}), got {by!r}")
    if baseline and baseline not in {name.partition(":")[0] for name in _labels(rows)} | set(_labels(rows)):
        raise InputError(f"--baseline must be one of {', '.join(_labels(rows))}, got {baseline!r}")
    rows = with_curves(with_derived(_with_line_rate(_with_quantiles(rows)), parameters, baseline), by)
    stamped = {"commsim": __version__, **provenance}
    if choice.where:
        stamped["rows"] = f"those with {' and '.join(choice.where)}"
    short, common = short_names(rows, parameters)
    costs = remark_on_costs(rows["costs"].labels or ()) if "costs" in rows else ()
    names = renamed(rows, (*ASKED, *parameters), short, choice.rename)
    if CURVE in rows:
        names[CURVE] = curve_names(rows, by, names)
    return Study(
        printable(title), rows, tuple(parameters), provenance=stamped, by=by, baseline=baseline, failed=failed,
        remarks=(*dict.fromkeys(remarks), *as_remarks(common, "of-all-rows"), *costs), names=names,
    )  # fmt: skip


def with_line_rate(study: Study, rate: float) -> Study:
    """Return the rate of a rank's links, bytes/s."""
    column = number_column("line_rate_Bps", np.full(study.rows.n_rows, rate))
    return dataclasses.replace(study, rows=study.rows.beside(column))


def made_by(verb: str, config: Mapping[str, Any]) -> dict[str, str]:
    """Name the version and the command that made something.

    Parameters
    ----------
    verb : str
        Verb of the command.
    config : mapping
        Its flags, with the version.
    """
    text = json.dumps(config, sort_keys=True, default=str)
    names = [name for name in config if name not in ("version", "json", "csv", "report", "draw")]
    return {
        "made by": f"commsim {config.get('version', '?')}",
        "command": " ".join((f"commsim {verb}", *_words(config, names))),
        "configuration": f"sha256 {hashlib.sha256(text.encode()).hexdigest()[:16]}",
    }


def _words(config: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    """Return flags as they are typed; those that were not given are left out."""
    flags = []
    for name in names:
        value, flag = config.get(name), f"--{name.replace('_', '-')}"
        if value is True:
            flags.append(flag)
        elif value is not None and value is not False:
            several = value if isinstance(value, list | tuple) else [value]
            flags += [f"{flag} {shlex.quote(str(one))}" for one in several]
    return flags


def _without_failed(rows: FigureTable) -> tuple[FigureTable, dict[str, int]]:
    if "error" not in rows:
        return rows, {}
    words = rows["error"].text()
    failed = np.array([bool(word) for word in words])
    return rows.take(np.flatnonzero(~failed)), dict(Counter(word for word in words if word))


def _with_quantiles(rows: FigureTable) -> FigureTable:
    """Rates at the 95th and 5th percentile of the time, where a run was repeated."""
    if not {"busbw_Bps", "time_s", "p5_s", "p95_s"} <= set(rows):
        return rows
    work = rows["busbw_Bps"].values * rows["time_s"].values
    low, high = work / rows["p95_s"].values, work / rows["p5_s"].values
    return rows.beside(number_column("busbw_low_Bps", low), number_column("busbw_high_Bps", high))


def _with_line_rate(rows: FigureTable) -> FigureTable:
    """Read the rate of links out of a sweep's parameter for it."""
    names = [n for n in ("topology.bandwidth", "bandwidth") if n in rows]
    if not names or "line_rate_Bps" in rows:
        return rows
    column = rows[names[0]]
    if column.labels is None:
        return rows.beside(number_column("line_rate_Bps", column.values))
    try:
        rates = np.array([*(parse_bandwidth(label) for label in column.labels), np.nan])
    except InputError:
        return rows
    return rows.beside(number_column("line_rate_Bps", rates[column.values]))


def _labels(rows: FigureTable) -> list[str]:
    if "collective" not in rows:
        return []
    column = rows["collective"]
    return [(column.labels or ())[int(i)] for i in distinct(column)] if column.labels else []
