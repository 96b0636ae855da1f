"""What each measured table comes to, for a page of its own: machine, release, source, command, our times, their errors.

python -m benchmarks.nccl_tables.each_table --data DIR [--page FILE.md]
python -m benchmarks.nccl_tables.each_table --digest LOG

The tables stay with their sources. The page has at most six sizes of a table, with errors in whole per cent, and the
digest of all rows: whoever copies the log from its source sees with ``--digest`` whether it is the same one. The naive
rule beside ours is bytes over the rate of a machine's NICs (:meth:`benchmarks.nccl_tables.asked.Asked.by_nics`).
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.nccl_tables.asked import SMALLEST, Asked, predicted_rows, read_asked
from benchmarks.nccl_tables.machines import Table, read_tables
from benchmarks.nccl_tables.rows import LARGE, rows_of, usable
from commsim.core.errors import CommsimError
from commsim.formats.measured import read_measured
from commsim.nccl.gpu_costs import costs

PAGE = Path(__file__).parents[2] / "docs" / "data" / "tables.md"
# Of each table, in bytes: those of its sizes that are near these.
SHOWN = (1 << 10, 1 << 15, 1 << 20, 1 << 25, 1 << 30, 1 << 33)
DIGITS = 16  # of the digest
ASKED, WORDS = "measured2", "measured"  # folders
HEAD = """# Tables

Written by `python -m benchmarks.nccl_tables.each_table --data DIR`; do not edit. Each public table that predictions are
compared with: operation, ranks, machine and release, as the index of the tables says; its source; a command; the median
error; and what we predict at up to six sizes, with its error in whole per cent. The tables themselves are not part of
this repository. To check one, copy the log from its source:

    commsim compare LOG --topology hgx-h100@star:machines=2 --collective nccl_all_reduce:version=2.26
    python -m benchmarks.nccl_tables.each_table --digest LOG

The first line is the command of the table `dell_h100_2x8_ar`, whose log is in the text of the named issue. It prints
each row beside what is predicted. The second prints the digest of the log: the first 16 digits of SHA-256 of lines such
as `1048576 78.25`, bytes and microseconds with six digits, of the rows out of place from 1 KiB. A table that its source
gives in another form (a picture, or rates in place of times) has the digest of what was copied from it. Tables of
`measured` say their machines in words only, from which `benchmarks.nccl_tables` makes a network: their command needs
that folder."""
NAIVE = """The naive rule divides the bytes that cross a machine's NICs by their rate; it says nothing of one machine.
Its median error is smaller than ours on these."""


def main(argv: Sequence[str] | None = None) -> int:
    """Write the file, or print a digest."""
    parser = argparse.ArgumentParser(prog="benchmarks.nccl_tables.each_table")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--data", type=Path, metavar="DIR", help=f"folder with {ASKED} and {WORDS}")
    what.add_argument("--digest", metavar="LOG", help="a log of nccl-tests, or a table")
    parser.add_argument("--operation", default="", help="of a log that does not say it")
    parser.add_argument("--page", type=Path, default=PAGE, metavar="FILE.md")
    flags = parser.parse_args(argv)
    try:
        if flags.digest:
            print(digest_of_log(flags.digest, flags.operation))
        else:
            found = [*asked_tables(flags.data / ASKED), *word_tables(flags.data / WORDS)]
            flags.page.write_text(page(found), encoding="utf-8")
            print(f"{len(found)} tables")
    except CommsimError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def digest(rows: Iterable[tuple[float, float]]) -> str:
    """Return the digest of sizes in bytes, from 1 KiB, and times in s.

    It is of lines such as ``1048576 78.25``, bytes and microseconds with six digits, in the order of sizes.
    """
    lines = "".join(f"{int(size)} {time * 1e6:.6g}\n" for size, time in sorted(rows) if size >= SMALLEST)
    return hashlib.sha256(lines.encode()).hexdigest()[:DIGITS]


def digest_of_log(path: str, operation: str = "") -> str:
    """Return the digest of a log's rows out of place."""
    rows = [(one.size, one.time) for one in read_measured(path, operation=operation) if not one.in_place]
    return digest(rows)


def asked_tables(folder: Path) -> list[dict[str, Any]]:
    """Predict the tables of a folder whose index says the questions."""
    tables, lines = read_asked(folder), _index(folder)
    rows = _by_table(predicted_rows(tables)[0], "table")
    return [
        {**_entry(ASKED, table.id, table.operation, rows.get(table.id, [])), "machine": table.machine,
         "ranks": table.n_ranks, "release": lines[table.id]["nccl_version"], "source": lines[table.id]["source"],
         "healthy": table.healthy, "command": command_of(table),
         "digest": digest_of_log(str(folder / f"{table.id}.csv"), table.operation)}
        for table in tables
    ]  # fmt: skip


def command_of(table: Asked) -> str:
    """Return the command that compares a log of a table with what is predicted."""
    asked = f"--collective {table.collective}" if table.collective else f"--operation {table.operation}"
    return f"commsim compare LOG --topology {table.topology} {asked} --ranks {table.n_ranks}"


def word_tables(folder: Path) -> list[dict[str, Any]]:
    """Predict the tables of a folder whose index says the machines in words."""
    known, lines = costs(), _index(folder)
    tables = [table for table in read_tables(folder) if not usable(table, known)]
    return [_of_words(table, lines[table.id], known) for table in tables]


def _of_words(table: Table, line: Mapping[str, str], known: Any) -> dict[str, Any]:
    rows = [
        {"bytes": row.size, "measured": row.measured, "predicted": row.predicted, "nics": None}
        for row in rows_of(table, known)
    ]
    return {
        **_entry(WORDS, table.id, table.operation, rows), "machine": f"{line['n_hosts']} x {line['machine']}",
        "ranks": int(line["n_hosts"]) * int(line["gpus_per_host"]), "release": line["nccl_version"],
        "source": line["source"], "healthy": line["healthy"],
        "command": f"python -m benchmarks.nccl_tables --data DIR --only {table.id} --rows",
        "digest": digest(table.rows),
    }  # fmt: skip


def _entry(folder: str, name: str, operation: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what a table's rows come to."""
    large, small = [r for r in rows if r["bytes"] >= LARGE], [r for r in rows if r["bytes"] < LARGE]
    near = sorted({min(range(len(rows)), key=lambda i: abs(np.log(rows[i]["bytes"] / size))) for size in SHOWN if rows})
    return {
        "id": name, "folder": folder, "operation": operation, "rows": len(rows),
        "large": _medians(large), "small": _medians(small),
        "sizes": [[rows[i]["bytes"], float(f"{rows[i]['predicted'] * 1e6:.4g}"), round(100 * _error(rows[i]))]
                  for i in near],
    }  # fmt: skip


def _medians(rows: Sequence[Mapping[str, Any]]) -> dict[str, float | int | None]:
    """Return number, median error and that of the naive rule, where it says something of all rows."""
    if not rows:
        return {"rows": 0, "median": None, "naive": None}
    ours = float(np.median([abs(_error(row)) for row in rows]))
    naive = [abs(row["nics"] / row["measured"] - 1) for row in rows if row["nics"]]
    return {
        "rows": len(rows), "median": round(ours, 4),
        "naive": round(float(np.median(naive)), 4) if len(naive) == len(rows) else None,
    }  # fmt: skip


def _error(row: Mapping[str, Any]) -> float:
    return float(row["predicted"] / row["measured"] - 1)


def _by_table(rows: Iterable[dict[str, Any]], key: str) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row[key], []).append(row)
    return found


def _index(folder: Path) -> dict[str, dict[str, str]]:
    with (folder / "index.csv").open(newline="", encoding="utf-8") as file:
        return {line["id"]: line for line in csv.DictReader(file)}


def page(tables: Sequence[Mapping[str, Any]]) -> str:
    """Return the page: where the naive rule is nearer, then each table."""
    lines = [HEAD, "", "## Where the naive rule is nearer", "", NAIVE, ""]
    lines += ["| table | healthy | sizes | rows | ours | naive |", "|---|---|---|---|---|---|"]
    for table in tables:
        for key, sizes in (("large", "from 1 MiB"), ("small", "below")):
            one = table[key]
            if one["naive"] is not None and one["naive"] < one["median"]:
                lines.append(f"| [{table['id']}](#{table['id']}) | {table['healthy']} | {sizes} | {one['rows']} |"
                             f" {one['median']:.1%} | {one['naive']:.1%} |")  # fmt: skip
    lines += ["", f"## All {len(tables)} tables"]
    for table in tables:
        lines += ["", *_section(table)]
    return "\n".join([*lines, ""])


def _section(table: Mapping[str, Any]) -> list[str]:
    """Return what the page says of one table."""
    facts = [table["operation"], f"{table['ranks']} ranks", table["machine"], table["release"] or "release not said"]
    medians = [f"{table[key]['median']:.1%} of {table[key]['rows']} rows {sizes}"
               for key, sizes in (("large", "from 1 MiB"), ("small", "below")) if table[key]["rows"]]  # fmt: skip
    shown = [f"{size} B: {time:g} us ({error:+d} %)" for size, time, error in table["sizes"]]
    return [
        f"### {table['id']}", "", f"{'; '.join(facts)}. Healthy: {table['healthy'] or 'not said'}.", "",
        f"- Source: {table['source']}; `{table['folder']}`, digest `{table['digest']}`",
        f"- Command: `{table['command']}`",
        f"- Median error: {', '.join(medians)}" if medians else "- Not predicted",
        *([f"- Ours: {'; '.join(shown)}"] if shown else []),
    ]  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
