"""NCCL's measured tables beside our prediction and NCCL's own estimate, row by row.

python -m benchmarks.nccl_tables --data DIR [--json FILE] [--page FILE.md] [--rows] [--engines]

Each machine is a network (:mod:`benchmarks.nccl_tables.networks`) on which the flow engine predicts, as `commsim run`
does. DIR has an ``index.csv`` and a CSV for each of its ids. Every row from 1 KiB of every table is shown or counted:
tables that something was fitted on, tables whose version or NICs are unknown, unhealthy ones, and machines that are not
known stand apart. The bounds are those that are asked for: median error 10 % from 1 MiB, 20 % below, 90th percentile 30
%.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.nccl_tables.machines import Table, read_tables
from benchmarks.nccl_tables.networks import question_of
from benchmarks.nccl_tables.peers import astra_ring, simai
from benchmarks.nccl_tables.ways import print_compared
from commsim.core.errors import InputError
from commsim.files.whole_files import write_json
from commsim.report.terminal import print_table
from commsim.scenario.solve import solve
from commsim.software.nccl.choice import OPERATIONS, cell_time
from commsim.software.nccl.gpu_costs import LARGE, Costs, costs
from commsim.software.nccl.prediction import chosen, predict

PAGE_HEAD = """# NCCL: predictions against public tables

Written by `python -m benchmarks.nccl_tables --data DIR --page docs/nccl_accuracy.md`. Errors are sizes of relative
errors of the time: medians of rows from 1 MiB and below, 90th percentile of all rows from 1 KiB. A table is within if
they are at most 10, 20 and 30 %. NCCL's estimate is what its tuner expects, for operations that it has a model of;
SimAI and ASTRA-sim are their published formulas of a ring, for the machines whose constants they give
(`benchmarks/nccl_tables/peers.py`). All three: median of the rows that they predict, and ours on the same rows. How a
time is predicted stands in [nccl.md](nccl.md). The tables are public logs and no part of this repository.

Of `vidur_*` the index says that below 1 MB the waiting for other ranks was measured: the second line leaves these sizes
out, all others have them.

Misses with a known reason: `vidur_*_sr` are one-way sends, timed in the sender's kernel, where we predict nccl-tests'
exchange both ways; `alps_*` (Slingshot): with LL above 5,000 bytes a NIC announces one message after another, 12 us
each, which explains rows of 300 to 1,500 us, but the steps at which NCCL leaves LL on 4 and 8 machines are not NCCL's
estimate without the plugin's latency, and one row each on 4 to 32 machines (16 to 128 MiB) takes 3 to 4 times its
neighbours; exchanges on H100 have two times at small sizes, 7 and 16 us; `aws_t4_2x1_efa_ar_b` is the machine of the
fitted table 11 % faster. Misses of ours: trees with Simple between 2 and 8 MiB on `aws_p4de` and `alps_*` (as if
there were twice our channels), LL128 or Simple chosen at other sizes than our search expects (InfiniBand on 16
machines and more), NVLink SHARP with 16 and 32 heads from 32 KiB chunks on (18 %), NVLink SHARP over several racks,
CollNet (only NCCL's estimate), NCCL 2.4. RCCL has no constants: MI300X and MI250X are counted below.

Where forced rings become faster than forced trees on MareNostrum 5 (measured: straight lines between the sizes of the
tables): on 4 machines from 12.8 MiB, predicted 8.0 MiB, and then within 5 % of each other up to 64 MiB; on 16 machines
from 348 MiB, predicted 416 MiB, but from 512 MiB on trees are predicted faster again, by 6 % where 2 % slower was
measured; on 64 machines nowhere up to 512 MiB, as predicted.
"""
PEERS = ("tuner", "simai", "astra")  # columns of Row: NCCL's own estimate, and formulas of two simulators
TRUSTED = "all healthy, sizes that the index trusts"
MEDIAN_LARGE, MEDIAN_SMALL, NINETIETH = 0.10, 0.20, 0.30


@dataclass(frozen=True, slots=True)
class Row:
    """One size of one table; times in seconds, None where a model has no answer."""

    id: str
    operation: str
    size: int
    measured: float
    predicted: float
    low: float
    high: float
    how: str
    tuner: float | None
    simai: float | None
    astra: float | None
    fitted: bool

    def error(self, of: str = "predicted") -> float:
        """Relative to what was measured."""
        time = getattr(self, of)
        return float("nan") if time is None else float(time / self.measured - 1)


@dataclass(frozen=True, slots=True)
class Group:
    """Errors of some rows: medians from 1 MiB and below, and the 90th percentile of all."""

    n: int
    large: float
    small: float
    ninetieth: float

    @property
    def is_good(self) -> bool:
        """Whether all three are within what is asked for; a size class without rows is."""
        return not (self.large > MEDIAN_LARGE or self.small > MEDIAN_SMALL or self.ninetieth > NINETIETH)


def group(rows: Iterable[Row], of: str = "predicted") -> Group:
    """Sum up the sizes of errors."""
    found = [(row.size >= LARGE, abs(row.error(of))) for row in rows]
    found = [(large, error) for large, error in found if not np.isnan(error)]
    if not found:
        return Group(0, float("nan"), float("nan"), float("nan"))

    def median(want: bool) -> float:
        some = [error for large, error in found if large == want]
        return float(np.median(some)) if some else float("nan")

    return Group(len(found), median(True), median(False), float(np.percentile([error for _, error in found], 90)))


def rows_of(table: Table, known: Costs) -> list[Row]:
    """Predict every row of a table whose machine is known."""
    site = table.site
    assert site is not None
    scenario, plan = question_of(site, table.operation, table.algorithm, table.protocol)
    answers, rows = solve(scenario, [size for size, _ in table.rows], plan=plan).results, []
    for (size, measured), ours in zip(table.rows, answers, strict=True):
        low, high = ours.interval or (ours.time, ours.time)
        launched = plan.at(size).parameters
        how = f"{launched['algorithm']}/{launched['protocol']}" if "algorithm" in launched else "p2p"
        tuner = None
        if table.operation in OPERATIONS:
            cell = chosen(site, table.operation, size, table.algorithm, table.protocol, known)
            tuner = cell_time(site.setting, table.operation, cell, size)
        others = simai(site, table.operation, size), astra_ring(site, table.operation, size)
        rows.append(
            Row(
                table.id, table.operation, size, measured, ours.time, low, high, how, tuner, *others,
                table.id in known.fitted_on,
            )
        )  # fmt: skip
    return rows


def usable(table: Table, known: Costs) -> str:
    """Return why a table cannot be predicted; empty if it can."""
    if table.site is None:
        return table.why_not
    try:
        known.of_gpu(table.site.setting.gpu)
        if table.site.network:
            known.of_network(table.site.network)
        if table.rows:
            predict(table.site, table.operation, table.rows[0][0], table.algorithm, table.protocol, known)
    except InputError as error:
        return str(error)
    return ""


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables and what they come to."""
    parser = argparse.ArgumentParser(prog="benchmarks.nccl_tables", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", required=True, metavar="DIR", help="folder with index.csv and the tables")
    parser.add_argument("--json", metavar="FILE", help="also write all rows as JSON")
    parser.add_argument("--page", metavar="FILE.md", help="also write errors by table as a page of the documentation")
    parser.add_argument("--rows", action="store_true", help="also print every row")
    parser.add_argument("--engines", action="store_true", help="compare NCCL's closed form with the event engine")
    flags = parser.parse_args(argv)
    try:
        tables = read_tables(Path(flags.data))
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    known = costs()
    unknown = {table.id: why for table in tables if (why := usable(table, known))}
    if flags.engines:
        print_compared([table for table in tables if table.id not in unknown])
        return 0
    found = {table.id: rows_of(table, known) for table in tables if table.id not in unknown}
    by_id = {table.id: table for table in tables}
    _print_tables(by_id, found, flags.rows)
    sums = summary(by_id, found)
    print_table(
        ["rows of", "tables", "within", "rows", "from 1 MiB", "below", "90th", "tuner", "SimAI", "ASTRA-sim"],
        [_summed(name, value) for name, value in sums.items()],
        "median |error| from 1 MiB and below, 90th percentile of all; the others' median, and ours on the same rows",
    )
    for name, why in unknown.items():
        print(f"# not predicted: {name}: {why}")
    print(f"# {len(unknown)} of {len(tables)} tables are not predicted")
    if flags.page:
        Path(flags.page).write_text(_page(by_id, found, sums, unknown), encoding="utf-8")
    if flags.json:
        write_json(flags.json, {
            "schema": 1, "rows": [_json(row) for rows in found.values() for row in rows],
            "unknown": unknown,
            "summary": {n: {k: None if np.isnan(v) else v for k, v in some.items()} for n, some in sums.items()},
            "tables": [{"id": t.id, "healthy": t.healthy, "known": t.is_known, "fitted": t.id in known.fitted_on,
                        "assumed": list(t.assumed)} for t in tables],
        })  # fmt: skip
    return 0


def _print_tables(by_id: dict[str, Table], found: dict[str, list[Row]], with_rows: bool) -> None:
    lines = []
    for name, rows in found.items():
        ours, table = group(rows), by_id[name]
        marks = [
            "fitted" if rows and rows[0].fitted else "", "" if table.healthy else "unhealthy",
            "" if table.is_known else "version or NICs unknown", "; ".join(f"assumed {a}" for a in table.assumed),
        ]  # fmt: skip
        lines.append([name, str(ours.n), _percent(ours.large), _percent(ours.small), _percent(ours.ninetieth),
                      "yes" if ours.is_good else "NO", ", ".join(mark for mark in marks if mark)])  # fmt: skip
    print_table(["table", "rows", "from 1 MiB", "below", "90th", "within", "notes"], lines, "median |error| by table")
    if with_rows:
        for rows in found.values():
            for row in rows:
                times = f"{row.measured * 1e6:.5g} us measured, {row.predicted * 1e6:.5g} predicted"
                print(f"{row.id} {row.size} B: {times} ({row.how}, {row.error():+.1%})")


def _page(
    by_id: dict[str, Table], found: dict[str, list[Row]], sums: dict[str, dict[str, Any]], unknown: dict[str, str]
) -> str:
    """Return the page: classes of tables, then every table."""
    lines = [
        PAGE_HEAD,
        "| tables | number | within | rows | from 1 MiB | below | 90th | NCCL's estimate | SimAI | ASTRA-sim |",
    ]
    lines.append("|---|---|---|---|---|---|---|---|---|---|")
    for name, value in sums.items():
        cells = [name, value["tables"], value["within"], value["rows"]]
        cells += [_percent(value[key]) for key in ("large", "small", "p90")] + _beside(value)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    lines += ["", "## Every table", "", "| table | rows | from 1 MiB | below | 90th | NCCL's estimate | notes |"]
    lines.append("|---|---|---|---|---|---|---|")
    for name, rows in found.items():
        ours, table = group(rows), by_id[name]
        notes = ["fitted"] * rows[0].fitted + ["unhealthy"] * (not table.healthy)
        notes += ["version or NICs unknown"] * (not table.is_known) + ["misses"] * (not ours.is_good)
        cells = [f"`{name}`", ours.n, _percent(ours.large), _percent(ours.small), _percent(ours.ninetieth)]
        lines.append(f"| {' | '.join(map(str, [*cells, _percent(_median(rows, 'tuner')), ', '.join(notes)]))} |")
    lines += ["", "Not predicted:", ""] + [f"- `{name}`: {why}" for name, why in unknown.items()]
    return "\n".join(lines) + "\n"


def class_rows(by_id: dict[str, Table], found: dict[str, list[Row]]) -> dict[str, dict[str, list[Row]]]:
    """Rows of classes of tables, by table: those fitted on and those not, known and unknown ones, unhealthy ones."""

    def marks(name: str) -> tuple[bool, bool, bool]:
        table = by_id[name]
        return table.healthy, table.is_known, bool(found[name]) and found[name][0].fitted

    classes = {
        "all healthy": {(True, known, fitted) for known in (True, False) for fitted in (True, False)},
        TRUSTED: {(True, known, fitted) for known in (True, False) for fitted in (True, False)},
        "healthy, version and NICs known": {(True, True, True), (True, True, False)},
        "of these not fitted on": {(True, True, False)},
        "healthy, not fitted on": {(True, True, False), (True, False, False)},
        "healthy, version or NICs unknown": {(True, False, True), (True, False, False)},
        "fitted on": {(healthy, known, True) for healthy in (True, False) for known in (True, False)},
        "not healthy": {(False, known, fitted) for known in (True, False) for fitted in (True, False)},
    }
    parts = {}
    for name, wanted in classes.items():
        some = {i: rows for i, rows in found.items() if rows and marks(i) in wanted}
        if name == TRUSTED:
            some = {i: [row for row in rows if row.size >= by_id[i].trusted_from] for i, rows in some.items()}
        parts[name] = some
    return parts


def summary(by_id: dict[str, Table], found: dict[str, list[Row]]) -> dict[str, dict[str, Any]]:
    """Sum up the rows of each class."""
    sums = {}
    for name, some in class_rows(by_id, found).items():
        rows = [row for part in some.values() for row in part]
        ours = group(rows)
        sums[name] = {
            "tables": len(some), "within": sum(group(part).is_good for part in some.values()), "rows": ours.n,
            "large": ours.large, "small": ours.small, "p90": ours.ninetieth,
            **{peer: _median(rows, peer) for peer in PEERS},
            **{f"ours_beside_{peer}": _median(_predicted_by(rows, peer), "predicted") for peer in PEERS},
        }  # fmt: skip
    return sums


def _median(rows: Sequence[Row], of: str) -> float:
    errors = [abs(row.error(of)) for row in rows]
    return float(np.median(kept)) if (kept := [e for e in errors if not np.isnan(e)]) else float("nan")


def _summed(name: str, value: dict[str, Any]) -> list[str]:
    shares = [_percent(value[key]) for key in ("large", "small", "p90")]
    return [name, str(value["tables"]), str(value["within"]), str(value["rows"]), *shares, *_beside(value)]


def _beside(value: dict[str, Any]) -> list[str]:
    """Median error of each peer, and ours on the rows that it predicts too."""
    return [f"{_percent(value[peer])} (ours {_percent(value[f'ours_beside_{peer}'])})" for peer in PEERS]


def _predicted_by(rows: Sequence[Row], peer: str) -> list[Row]:
    """Rows that a peer predicts too."""
    return [row for row in rows if getattr(row, peer) is not None]


def _percent(share: float) -> str:
    return "-" if np.isnan(share) else f"{share:.1%}"


def _json(row: Row) -> dict[str, Any]:
    return {"id": row.id, "operation": row.operation, "size_B": row.size, "measured_s": row.measured,
            "predicted_s": row.predicted, "low_s": row.low, "high_s": row.high, "how": row.how, "tuner_s": row.tuner,
            "simai_s": row.simai, "astra_sim_s": row.astra, "fitted": row.fitted}  # fmt: skip
