"""Published MPI tables with named algorithms beside our prediction, row by row.

python -m benchmarks.accuracy.mpi_tables --data DIR [--json FILE] [--rows]

DIR has an ``index.csv`` and a CSV for each of its ids. A table is predicted by the schedule of its algorithm on a star,
one rank to a node, with costs that come from the ends of tables of *other algorithms* on the same system, never from
its own, by one rule for all:

- The reference is the first table, in the index's order, of another algorithm that does not reduce, or if there is
  none of one that does. Linear all-to-all is no reference, since its messages overlap, and Bruck's is none, since it
  copies what it sends and receives, which is not in a line.
- Its smallest row with an element for each rank and its largest one give alpha and 1/B: two equations for two unknowns,
  with the schedule's own numbers of messages and bytes. Half of alpha is overhead and half latency, which one time
  cannot tell apart.
- Where the algorithm reduces and the reference does not, the first other table that reduces gives gamma, by its
  largest row; without one gamma is 0. A reference that reduces has gamma within 1/B.

Rows with fewer elements than ranks are shown apart: there libraries may take another algorithm than the one that is
named. Contention in the network, protocols by size and caches are not in a line; the table shows what that costs.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from commsim.core.errors import CommsimError
from commsim.core.files.csv_rows import read_rows
from commsim.core.files.whole_files import write_json
from commsim.prediction.build import prepare
from commsim.prediction.inputs import load_network
from commsim.prediction.plans.dense import Plan
from commsim.prediction.read import with_costs
from commsim.report.terminal import print_table

MIB = 2.0**20
ELEMENT = 4  # bytes, of all tables
NO_REFERENCE = ("direct_all_to_all", "bruck_all_to_all")
# Schedules by operation and algorithm, as the index names them.
ALGORITHMS = {
    ("all_reduce", "MPI ring"): "ring_all_reduce",
    ("all_reduce", "MPI recursive doubling"): "recursive_doubling_all_reduce",
    ("all_reduce", "MPI Rabenseifner"): "halving_doubling_all_reduce",
    ("all_gather", "MPI ring"): "ring_all_gather",
    ("alltoall", "MPI linear"): "direct_all_to_all",
    ("alltoall", "MPI pairwise"): "pairwise_all_to_all",
    ("alltoall", "MPI modified Bruck"): "bruck_all_to_all",
}


@dataclass(frozen=True, slots=True)
class Table:
    """Times of one algorithm on one system.

    Parameters
    ----------
    id, system, operation, algorithm : str
        As in the index; the system is its machine and number of hosts.
    n_ranks : int
        One to a host.
    rows : tuple of (float, float)
        Bytes and seconds.
    """

    id: str
    system: str
    operation: str
    algorithm: str
    n_ranks: int
    rows: tuple[tuple[float, float], ...]

    @property
    def schedule(self) -> str:
        """Name of our collective; empty where none is known."""
        return ALGORITHMS.get((self.operation, self.algorithm), "")

    @property
    def reduces(self) -> bool:
        """Whether a rank adds what it receives."""
        return self.operation == "all_reduce"


@dataclass(frozen=True, slots=True)
class Costs:
    """A line, and where it is from.

    Parameters
    ----------
    alpha : float, s
        Of a message.
    beta, gamma : float, s/B
        Of its bytes, and of adding them.
    source : str
        Tables.
    """

    alpha: float
    beta: float
    gamma: float
    source: str


@dataclass(frozen=True, slots=True)
class Row:
    """One size of one table; seconds; `short` where some ranks have no element of their own."""

    id: str
    operation: str
    size: float
    measured: float
    predicted: float
    source: str
    short: bool

    @property
    def error(self) -> float:
        """Relative to what was measured."""
        return self.predicted / self.measured - 1


def read_tables(folder: Path) -> list[Table]:
    """Read the tables of MPI libraries.

    Raises
    ------
    InputError
        If a file cannot be read, or has no such columns.
    """
    found = []
    columns = ("id", "machine", "n_hosts", "nccl_version", "operation", "forced_algo")
    for row in read_rows(folder / "index.csv", columns):
        if "not NCCL" not in row.text("nccl_version"):
            continue
        name, n_ranks = row.text("id"), int(row.non_negative("n_hosts"))
        times = read_rows(folder / f"{name}.csv", ("size_bytes", "time_us"))
        rows = tuple((line.non_negative("size_bytes"), line.non_negative("time_us") * 1e-6) for line in times)
        system = f"{row.text('machine')}, {n_ranks} nodes"
        found.append(Table(name, system, row.text("operation"), row.text("forced_algo"), n_ranks, rows))
    return found


@functools.cache
def _prepared(schedule: str, n_ranks: int, cost: str) -> Plan:
    """Prepare a schedule on a star where only one thing costs: a second for a message, or for a byte, or to add one."""
    line = {"alpha": Costs(1.0, 0.0, 0.0, ""), "beta": Costs(0.0, 1.0, 0.0, ""), "gamma": Costs(0.0, 0.0, 1.0, "")}
    return _on_star(schedule, n_ranks, line[cost])


def _on_star(schedule: str, n_ranks: int, costs: Costs) -> Plan:
    bandwidth = 1 / max(costs.beta, 1e-30)
    star = load_network(f"star:n_hosts={n_ranks},bandwidth={bandwidth!r}B/s,latency={costs.alpha / 4!r}s")
    return prepare(schedule, with_costs(star, overhead=costs.alpha / 2, gamma=costs.gamma))


def time_by(schedule: str, n_ranks: int, costs: Costs, size: float) -> float:
    """Seconds of a schedule at these costs."""
    return _on_star(schedule, n_ranks, costs).predict(size).time


def costs_for(table: Table, tables: Sequence[Table]) -> Costs | None:
    """Find the costs for a table by the rule; None where no other table is there to take them from."""
    others = [
        other
        for other in tables
        if other.system == table.system and other.schedule and other.algorithm != table.algorithm
    ]
    chains = sorted((other for other in others if other.schedule not in NO_REFERENCE), key=lambda other: other.reduces)
    if not chains:
        return None
    reference = chains[0]
    ends = (min(row for row in reference.rows if row[0] >= ELEMENT * table.n_ranks), max(reference.rows))
    weights = [[_weight(reference, cost, size) for cost in ("alpha", "beta")] for size, _ in ends]
    alpha, beta = np.linalg.solve(weights, [seconds for _, seconds in ends]).tolist()
    adding = [other for other in others if other.reduces]
    if not table.reduces or reference.reduces or not adding:
        return Costs(alpha, beta, 0.0, reference.id)
    size, seconds = max(adding[0].rows)
    known = _weight(adding[0], "alpha", size) * alpha + _weight(adding[0], "beta", size) * beta
    gamma = max(0.0, (seconds - known) / _weight(adding[0], "gamma", size))
    return Costs(alpha, beta, gamma, f"{reference.id}, gamma {adding[0].id}")


@functools.cache
def _weight(table: Table, cost: str, size: float) -> float:
    """How many times a cost is paid one after the other: messages, bytes, or bytes added."""
    return _prepared(table.schedule, table.n_ranks, cost).predict(size).time


def predicted(tables: Sequence[Table]) -> tuple[list[Row], dict[str, str]]:
    """Predict every row of every table of a known algorithm; and say why others are not."""
    rows, absent = [], {}
    for table in tables:
        costs = costs_for(table, tables) if table.schedule else None
        if costs is None:
            what = "no other algorithm's table of this system" if table.schedule else "no schedule of this algorithm"
            absent[table.id] = f"{what}: {table.algorithm or 'not named'}, {table.system}"
            continue
        ready = _on_star(table.schedule, table.n_ranks, costs)
        rows += [
            Row(table.id, table.operation, size, measured, ready.predict(size).time, costs.source,
                size < ELEMENT * table.n_ranks)
            for size, measured in table.rows
        ]  # fmt: skip
    return rows, absent


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables and what they come to."""
    parser = argparse.ArgumentParser(prog="benchmarks.accuracy.mpi_tables", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", required=True, metavar="DIR", help="folder with index.csv and the tables")
    parser.add_argument("--json", metavar="FILE", help="also write all rows as JSON")
    parser.add_argument("--rows", action="store_true", help="also print every row")
    args = parser.parse_args(argv)
    try:
        rows, absent = predicted(read_tables(Path(args.data)))
    except CommsimError as error:
        print(f"benchmarks.accuracy.mpi_tables: error: {error}", file=sys.stderr)
        return 2
    ids = list(dict.fromkeys(row.id for row in rows))
    lines = [_summed(name, [row for row in rows if row.id == name]) for name in ids]
    print_table(
        ["table", "rows", "short", "below 1 MiB", "from 1 MiB", "largest", "costs from"],
        [*lines, _summed("all", rows)],
        "median |error|, and the largest, of rows with an element for each rank",
    )
    if args.rows:
        for row in rows:
            print(f"{row.id} {row.size:.0f} B: {row.measured:.4g} s, {row.predicted:.4g} s, {row.error:+.1%}")
    for name, why in absent.items():
        print(f"# not predicted: {name}: {why}")
    print(f"# {len(absent)} of {len(absent) + len(ids)} tables are not predicted")
    if args.json:
        write_json(args.json, {"schema": 1, "rows": [_json(row) for row in rows], "unknown": absent})
    return 0


def _summed(name: str, rows: Sequence[Row]) -> list[str]:
    whole = [row for row in rows if not row.short]

    def median(large: bool) -> str:
        errors = [abs(row.error) for row in whole if (row.size >= MIB) == large]
        return f"{np.median(errors):.1%}" if errors else "-"

    source = rows[0].source if rows and name != "all" else ""
    largest = max((row.error for row in whole), key=abs, default=0.0)
    return [name, str(len(whole)), str(len(rows) - len(whole)), median(False), median(True), f"{largest:+.0%}", source]


def _json(row: Row) -> dict[str, Any]:
    return {"id": row.id, "operation": row.operation, "size_B": row.size, "measured_s": row.measured,
            "predicted_s": row.predicted, "tuner_s": None, "fitted": False, "short": row.short,
            "costs_from": row.source}  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
