"""NCCL's measured tables beside our prediction and NCCL's own estimate, row by row.

python -m benchmarks.nccl_tables --data DIR [--only PATTERN] [--json FILE] [--page FILE.md] [--rows] [--engines]

Each machine is a network (:mod:`benchmarks.nccl_tables.networks`) on which the flow engine predicts, as `commsim run`
does. DIR has an ``index.csv`` and a CSV for each of its ids. Every row from 1 KiB of every table is shown or counted:
tables that something was fitted on, tables whose version or NICs are unknown, unhealthy ones, and machines that are not
known stand apart. An index with the columns ``topology`` and ``collective`` says the questions itself
(:mod:`benchmarks.nccl_tables.asked`). The bounds are those that are asked for: median error 10 % from 1 MiB, 20 %
below, 90th percentile 30 %.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.nccl_tables import amd
from benchmarks.nccl_tables.asked import has_questions
from benchmarks.nccl_tables.asked_summary import matches, print_asked
from benchmarks.nccl_tables.machines import Table, read_tables
from benchmarks.nccl_tables.rows import PEERS, Row, by_kind, group, median_of, ratios, rows_of, summary, usable
from benchmarks.nccl_tables.ways import print_compared
from commsim.core.errors import InputError
from commsim.core.files.whole_files import write_json
from commsim.nccl.gpu_costs import costs
from commsim.report.terminal import print_table

PAGE_HEAD = """# NCCL: predictions against public tables

Written by `python -m benchmarks.nccl_tables --data DIR --page docs/data/nccl_accuracy.md`.
Errors are absolute values of
the relative error of the time: the median of the rows from 1 MiB up, the median of the rows below, and the 90th
percentile of all rows from 1 KiB up. *Signed* is the median of all rows with its sign: below 0 where predictions are
too short (too fast). A table counts as *within* if these three are at most 10, 20 and 30 %. NCCL's
estimate is what its tuner expects, for operations that it has a model of;
the columns SimAI and ASTRA-sim use the published ring formulas of these tools, for the machines whose constants they
give
(`benchmarks/nccl_tables/peers.py`). Each of the three columns gives the median over the rows that it predicts, and
ours on the same rows. [nccl.md](../nccl.md)
describes how a time is predicted. The tables are public logs, and are not part of this repository.

All-reduces of `vidur_*` are kernel times of rank 0 in calls that Python launches one by one: a different kind of
measurement from nccl-tests. Below about 4 MiB they show the pace of the slowest host: one constant for each GPU
generation, fitted to two of the seven tables (`benchmarks/nccl_tables/host_pace.py`). The accuracy index uses them
only from 1 MB up: the second line of the table below leaves smaller sizes out, all other lines include them.

Misses with a known reason: `vidur_*` below 1 MB where rank 0's own host was the slowest, so that its kernels did not
wait; `alps_*` (Slingshot): the steps at which NCCL leaves LL are not those of NCCL's estimate, and one or two rows each
on 4 to 32 machines (16 to 128 MiB) take 2 to 4 times their neighbours; exchanges on H100 take either 7 or 16 us at
small sizes; `cw_a100_16x8_ar` has the rate of four NICs of 100 Gbit/s, but its operator's NICs have 200;
`h100_2x8_ar_k8s` has the times of a ring, but its source does not state that a ring was forced; `oci_a100_2x8_ar_jp`
is the untuned twin
of `oci_a100_2x8_ar_oke`: its command has all 16 ports, and one queue pair a connection, so that one is one flow;
`cw_a100_4x8_ar` reaches 59 GB/s with CollNet, and `cw_x_4x8_ar` on the same kind of hosts 82, as predicted.
Misses of our model: CollNet from 32 KiB to 8 MiB, 512 MiB on 20 racks (`cw_gb200_360x4_ar`: NCCL's estimate takes
NVLink SHARP, and a tree was measured), NVLink SHARP over two racks below 4 GiB (20 to 27 %), rings of 1,024 ranks
(`h100_128x8_ar_ring_ll128`), LL128 in trees of A100 from 128 to 512 KiB, NCCL 2.4, LL of 1 to 4 MiB on EFA (`aws_g7e`:
four channels would give it, two are expected), the size at which PCIe machines leave LL (1 MiB on RTX PRO 6000).

If a table names no NCCL release, the newest release on its date is assumed (`benchmarks/nccl_tables/releases.py`).

[nccl.md](../nccl.md) gives the effect of each mechanism.
"""
ABOUT_RATIOS = """The ratio of the times of two healthy tables at one size from 1 MiB, of one operator, operation and
GPU generation: its error, and that of the two times themselves."""
SUMMED = "| tables | number | within | rows | from 1 MiB | below | 90th | signed |"


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables and what they come to."""
    parser = argparse.ArgumentParser(prog="benchmarks.nccl_tables", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", required=True, metavar="DIR", help="folder with index.csv and the tables")
    parser.add_argument("--only", default="", metavar="PATTERN", help="only tables with this in their name, or like it")
    parser.add_argument("--json", metavar="FILE", help="also write all rows as JSON")
    parser.add_argument("--page", metavar="FILE.md", help="also write errors by table as a page of the documentation")
    parser.add_argument("--rows", action="store_true", help="also print every row")
    parser.add_argument("--engines", action="store_true", help="compare NCCL's closed form with the event engine")
    flags = parser.parse_args(argv)
    try:
        if has_questions(Path(flags.data)):
            return print_asked(Path(flags.data), flags.only, flags.json, with_rows=flags.rows)
        tables = [table for table in read_tables(Path(flags.data)) if matches(table.id, flags.only)]
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
        from benchmarks.nccl_tables.left_out import left_out, page

        left = page(left_out(tables, known)) + amd.page(Path(flags.data))
        Path(flags.page).write_text(_page(by_id, found, sums, unknown, left), encoding="utf-8")
    if flags.json:
        write_json(flags.json, {
            "schema": 1, "rows": [_json(row) for rows in found.values() for row in rows],
            "unknown": unknown,
            "summary": {n: {k: None if np.isnan(v) else v for k, v in some.items()} for n, some in sums.items()},
            "tables": [{"id": t.id, "healthy": t.healthy, "known": t.is_known, "fitted": t.is_fitted(known),
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
    by_id: dict[str, Table], found: dict[str, list[Row]], sums: dict[str, dict[str, Any]], unknown: dict[str, str],
    left: list[str],
) -> str:  # fmt: skip
    """Return the page: classes of tables, then every table."""
    lines = [
        PAGE_HEAD,
        f"{SUMMED} NCCL's estimate | SimAI | ASTRA-sim |",
        f"|{'---|' * 11}",
    ]
    for name, value in sums.items():
        cells = [name, value["tables"], value["within"], value["rows"]]
        cells += (
            [_percent(value[key]) for key in ("large", "small", "p90")] + [_signed(value["signed"])] + _beside(value)
        )
        lines.append(f"| {' | '.join(map(str, cells))} |")
    lines += ["", "## By kind of machine", "", "All tables, fitted on or not.", ""]
    lines += [SUMMED, f"|{'---|' * 8}"]
    for name, some in by_kind(by_id, found).items():
        ours = group(row for rows in some.values() for row in rows)
        cells = [name, len(some), sum(group(rows).is_good for rows in some.values()), ours.n]
        cells += [_percent(ours.large), _percent(ours.small), _percent(ours.ninetieth), _signed(ours.signed)]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    lines += _ratios(by_id, found)
    lines += left
    lines += [
        "",
        "## Every table",
        "",
        "| table | rows | from 1 MiB | below | 90th | signed | NCCL's estimate | notes |",
    ]
    lines.append("|---|---|---|---|---|---|---|---|")
    for name, rows in found.items():
        ours, table = group(rows), by_id[name]
        notes = ["fitted"] * rows[0].fitted + ["unhealthy"] * (not table.healthy)
        notes += ["version or NICs unknown"] * (not table.is_known) + ["misses"] * (not ours.is_good)
        cells = [f"`{name}`", ours.n, _percent(ours.large), _percent(ours.small), _percent(ours.ninetieth)]
        cells.append(_signed(ours.signed))
        lines.append(f"| {' | '.join(map(str, [*cells, _percent(median_of(rows, 'tuner')), ', '.join(notes)]))} |")
    lines += ["", "Not predicted:", ""] + [f"- `{name}`: {why}" for name, why in unknown.items()]
    return "\n".join(lines) + "\n"


def _ratios(by_id: dict[str, Table], found: dict[str, list[Row]]) -> list[str]:
    """Return the section on ratios of two tables."""
    lines = ["", "## Ratios", "", ABOUT_RATIOS, ""]
    lines += [
        "| tables | algorithm and protocol | pairs | ratio: median | 90th | times: median | 90th |",
        f"|{'---|' * 7}",
    ]
    for (several, alike), both in sorted(ratios(by_id, found).items()):
        cells = ["several machines" if several else "one machine", "the same" if alike else "others", len(both[0])]
        cells += [_percent(float(np.percentile(errors, q))) for errors in both for q in (50, 90)]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines


def _summed(name: str, value: dict[str, Any]) -> list[str]:
    shares = [_percent(value[key]) for key in ("large", "small", "p90")]
    return [name, str(value["tables"]), str(value["within"]), str(value["rows"]), *shares, *_beside(value)]


def _beside(value: dict[str, Any]) -> list[str]:
    """Median error of each peer, and ours on the rows that it predicts too."""
    return [f"{_percent(value[peer])} (ours {_percent(value[f'ours_beside_{peer}'])})" for peer in PEERS]


def _percent(share: float) -> str:
    return "-" if np.isnan(share) else f"{share:.1%}"


def _signed(error: float) -> str:
    return "-" if np.isnan(error) else f"{error:+.1%}"


def _json(row: Row) -> dict[str, Any]:
    return {"id": row.id, "operation": row.operation, "size_B": row.size, "measured_s": row.measured,
            "predicted_s": row.predicted, "low_s": row.low, "high_s": row.high, "how": row.how, "tuner_s": row.tuner,
            "simai_s": row.simai, "astra_sim_s": row.astra, "fitted": row.fitted}  # fmt: skip
