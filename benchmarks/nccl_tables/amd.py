"""RCCL's measured calls on AMD's GPUs beside our prediction.

python -m benchmarks.nccl_tables.amd --data DIR [--rows]

DIR holds ``other_collectives.csv`` and ``points.csv`` (MI355X), ``mi300x_1x8_ar.csv`` and ``mi250x_4x8_ar.csv``. Rows
from 1 KiB are compared, as those of NCCL are. An all-gather's size in the first file is that of one rank.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from commsim.core.units import parse_size
from commsim.nccl.rccl_costs import rccl_costs
from commsim.prediction.build import prepare
from commsim.report.terminal import print_table

SMALLEST, LARGE = 1024, 2**20
# Rate of one xGMI link of MI355X as a preset has it; fewer GPUs of a machine have fewer neighbours.
LINK_GBS = {"mi355x": 76.8}
TABLES = {"mi300x_1x8_ar": "mi300x", "mi250x_4x8_ar": "mi250x"}
OPERATIONS = {"alltoall": "all_to_all"}


class Measured(NamedTuple):
    """A measured table: its name, GPUs, operation, ranks, and rows of bytes and seconds."""

    name: str
    gpu: str
    operation: str
    n_ranks: int
    rows: tuple[tuple[int, float], ...]


def read(folder: Path) -> list[Measured]:
    """Read the tables of AMD's GPUs that a folder has."""
    found: dict[tuple[str, str, str, int], list[tuple[int, float]]] = {}
    for line in _lines(folder / "other_collectives.csv"):
        if line["system"] == "MI355X" and line["setup"].startswith("RCCL") and line["unit"] == "us":
            n, operation = int(line["ranks"]), line["operation"]
            size = int(parse_size(line["size"].replace(" ", ""))) * (n if operation == "all_gather" else 1)
            found.setdefault((f"mi355x_1x{n}_{operation}", "mi355x", operation, n), []).append(
                (size, float(line["value"]) * 1e-6)
            )
    for line in _lines(folder / "points.csv"):
        if "MI355X" in line["machine"]:
            n, operation = int(line["ranks"]), OPERATIONS.get(line["operation"], line["operation"])
            found.setdefault((f"oci_mi355x_{n // 8}x8_{operation}", "mi355x", operation, n), []).append(
                (int(line["size_bytes"]), float(line["time_us"]) * 1e-6)
            )
    for name, gpu in TABLES.items():
        for line in _lines(folder / f"{name}.csv"):
            n = 8 * int(name.split("_")[1].split("x")[0])
            found.setdefault((name, gpu, "all_reduce", n), []).append(
                (int(line["size_bytes"]), float(line["time_us"]) * 1e-6)
            )
    return [
        Measured(*key, tuple((size, time) for size, time in rows if size >= SMALLEST)) for key, rows in found.items()
    ]


def _lines(path: Path) -> Iterator[dict[str, str]]:
    if path.is_file():
        with path.open(newline="", encoding="utf-8") as file:
            yield from csv.DictReader(file)


def network(gpu: str, n_ranks: int) -> str:
    """Return the topology of a table's machines."""
    if n_ranks > 8:
        year = ":net=slingshot-2025" * (gpu == "mi250x")  # its table is of January 2025
        return f"{gpu}{year}@star:machines={n_ranks // 8}"
    if n_ranks == 8:
        return gpu
    links = f"{LINK_GBS[gpu] * (n_ranks - 1):g}GB/s"
    return f"{gpu}:n_gpus={n_ranks},nvlink={links},n_nics={n_ranks},n_pcie_switches={n_ranks}"


def errors(table: Measured) -> np.ndarray:
    """Return the relative error of each row of a table, float64[n], positive where we are too slow."""
    ready = prepare(f"rccl_{table.operation}", network(table.gpu, table.n_ranks))
    return np.array([ready.predict(size).time / time - 1 for size, time in table.rows])


def page(folder: Path) -> list[str]:
    """Return the section of the page about RCCL; nothing where the folder has no such tables."""
    tables = read(folder)
    if not tables:
        return []
    head = "| table | rows | from 1 MiB | below | 90th | largest | notes |"
    rows = (f"| {' | '.join((f'`{cells[0]}`', *cells[1:]))} |" for cells in map(_cells, tables))
    return ["", "## RCCL", "", "Constants: `commsim/nccl/rccl_costs.toml`.", "", head, "|---" * 7 + "|", *rows]


def _cells(table: Measured) -> tuple[str, ...]:
    fitted = {name for costs in rccl_costs().values() for name in costs.fitted_on}
    size, of = np.abs(errors(table)), np.array([row[0] for row in table.rows])
    parts = [f"{np.median(some):.1%}" if some.size else "-" for some in (size[of >= LARGE], size[of < LARGE])]
    whole = (f"{np.percentile(size, 90):.1%}", f"{size.max():.1%}")
    return table.name, str(len(of)), *parts, *whole, "fitted" if table.name in fitted else ""


def main(argv: Sequence[str] | None = None) -> int:
    """Print errors by table."""
    parser = argparse.ArgumentParser(prog="benchmarks.nccl_tables.amd", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", required=True, metavar="DIR", help="folder with the tables")
    parser.add_argument("--rows", action="store_true", help="also print every row")
    flags = parser.parse_args(argv)
    tables = read(Path(flags.data))
    if not tables:
        print(f"error: --data {flags.data} has no table of AMD's GPUs", file=sys.stderr)
        return 2
    print_table(
        ["table", "rows", "from 1 MiB", "below", "90th", "largest", "notes"],
        [list(_cells(table)) for table in tables],
        "RCCL: median |error| from 1 MiB and below, 90th percentile and largest of all",
    )
    if flags.rows:
        for table in tables:
            for (size, time), error in zip(table.rows, errors(table), strict=True):
                print(f"{table.name} {size} B: {time * 1e6:.5g} us measured ({error:+.1%})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
