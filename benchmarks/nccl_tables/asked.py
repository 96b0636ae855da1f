"""Tables whose index says the question that a user would ask: a topology and a collective, with default settings.

The index has ``topology`` and ``collective`` (or, for MPI, the whole command), the machine and its ranks in columns,
``class`` and ``healthy``; a CSV for each id has ``bytes, time_us``. Nothing here knows more of a machine than its line
says, so that what is predicted is what the command line prints.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import commsim as cs
from commsim.core.errors import InputError
from commsim.core.operations import operation as operation_of
from commsim.prediction.read import scenario_of
from commsim.prediction.solve import plan_of, solve

SMALLEST = 1024
# Operators by the first part of a table's name (without the one that says MPI), where one operator has several.
SAME_OPERATOR = {"cscs": "alps", "l40s": "sch"}
# How the columns write a rate: three digits of Gb/s.
RATE = re.compile(r"(?<!\d)(\d{3})(?!\d)")
MPI_COMMAND = re.compile(r"commsim run --operation (\S+) --topology (\S+)")
# Fields of a row of the JSON.
FIELDS = (
    "table", "class", "operator", "operation", "machine", "healthy", "bytes", "measured", "predicted", "low", "high",
    "algorithm", "nics",
)  # fmt: skip


class LargestRate(NamedTuple):
    """How a source found a rate: the largest of bytes over time, less what the smallest calls take.

    Parameters
    ----------
    sizes : tuple of int, bytes
        Sizes among which the largest rate is.
    small : tuple of int, bytes
        Sizes the least time of which is taken off each time.
    """

    sizes: tuple[int, ...]
    small: tuple[int, ...]

    def of(self, answers: Mapping[int, Answer], size: int) -> Answer:
        """Return the time of `size` bytes at the largest rate of what is predicted."""
        latency = min(answers[one].time for one in self.small)
        best = max(self.sizes, key=lambda one: one / (answers[one].time - latency))
        time, there = size * (answers[best].time - latency) / best, answers[best]
        low, high = (None if end is None else time * end / there.time for end in (there.low, there.high))
        return Answer(time, low, high, there.algorithm)


@dataclass(frozen=True, slots=True)
class Asked:
    """One table and the question that it answers.

    Parameters
    ----------
    id, kind, operator, operation, machine : str
        Names; `kind` is the class of the index.
    healthy : str
        ``yes``, ``no`` or ``unknown``, as the source says.
    topology, collective : str
        What a user would ask; without a collective all algorithms of the operation are ranked.
    n_nodes, per_node, n_ranks : int
        Machines, GPUs of each, and ranks.
    gpu, network : str
        GPU and network, in the words of the index.
    nic_rate : float, bytes/s
        Rate of all NICs of a machine by their names; 0 where nothing leaves one.
    rows : tuple of (int, float)
        Bytes and seconds, from 1 KiB.
    largest : LargestRate, optional
        How the time of the only row was found, if no call of its size was timed.
    """

    id: str
    kind: str
    operator: str
    operation: str
    machine: str
    healthy: str
    topology: str
    collective: str
    n_nodes: int
    per_node: int
    n_ranks: int
    gpu: str
    network: str
    nic_rate: float
    rows: tuple[tuple[int, float], ...]
    largest: LargestRate | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes of the calls that are asked for, in bytes."""
        return tuple(size for size, _ in self.rows) if self.largest is None else self.largest.sizes + self.largest.small

    def by_nics(self, size: int) -> float | None:
        """Return the time of the naive rule, in s: bytes that have to cross the NICs at their rate."""
        if self.n_nodes == 1 or not self.nic_rate:
            return None
        if self.operation == "all_to_all":
            return size * (1 - 1 / self.n_nodes) * self.per_node / self.nic_rate
        return size * operation_of(self.operation).busbw_factor(self.n_ranks) / self.nic_rate


def has_questions(folder: Path) -> bool:
    """Whether a folder's index says topologies and collectives."""
    path = folder / "index.csv"
    if not path.is_file():
        return False
    with path.open(newline="", encoding="utf-8") as file:
        return {"topology", "collective"} <= set(next(csv.reader(file), ()))


def operator_of(name: str) -> str:
    """Return who ran a table, by its name."""
    first = name.removeprefix("mpi_").split("_")[0]
    return SAME_OPERATOR.get(first, first)


def read_asked(folder: Path) -> tuple[Asked, ...]:
    """Read all tables of a folder.

    Raises
    ------
    InputError
        If a table that the index lists is missing.
    """
    with (folder / "index.csv").open(newline="", encoding="utf-8") as file:
        return tuple(_table(folder, line) for line in csv.DictReader(file))


def _table(folder: Path, line: Mapping[str, str]) -> Asked:
    path = folder / f"{line['id']}.csv"
    if not path.is_file():
        raise InputError(f"{path} is missing; index.csv lists {line['id']}")
    with path.open(newline="", encoding="utf-8") as file:
        rows = [(int(float(row["bytes"])), float(row["time_us"]) * 1e-6) for row in csv.DictReader(file)]
    nodes, per_node, n_ranks = (int(line[key] or 1) for key in ("nodes", "gpus_per_node", "ranks"))
    n_nics, rate = int(line["nic_count_per_node"] or 0), RATE.search(line["nic"] or line["gpu"])
    topology, collective = line["topology"], line["collective"]
    if mpi := MPI_COMMAND.fullmatch(topology):
        collective, topology, n_nics = "", mpi[2], n_nics or per_node
    return Asked(
        line["id"], line["class"], operator_of(line["id"]), line["op"],
        f"{nodes}x{per_node} {line['gpu']}" + (f", {line['nic']}" if nodes > 1 and line["nic"] else ""),
        line["healthy"], topology, collective, nodes, per_node, n_ranks, line["gpu"], line["nic"],
        n_nics * float(rate[1]) / 8 * 1e9 if rate and nodes > 1 else 0.0,
        tuple(row for row in rows if row[0] >= SMALLEST),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Answer:
    """What is predicted at a size: seconds, the interval where there is one, and the algorithm."""

    time: float
    low: float | None
    high: float | None
    algorithm: str


class Answers:
    """Predictions of one run: a question of several tables is asked once."""

    def __init__(self) -> None:
        """Start without any."""
        self._known: dict[tuple[str, str, str, int], dict[int, Answer]] = {}

    def of(self, table: Asked) -> dict[int, Answer]:
        """Predict all sizes of a table.

        Parameters
        ----------
        table : Asked
            Table.

        Raises
        ------
        InputError
            If the question has no answer.
        """
        known = self._known.setdefault((table.topology, table.collective, table.operation, table.n_ranks), {})
        sizes = [size for size in table.sizes if size not in known]
        if sizes:
            known.update(_ranked(table, sizes) if not table.collective else _solved(table, sizes))
        return known if table.largest is None else {size: table.largest.of(known, size) for size, _ in table.rows}


def _solved(table: Asked, sizes: Sequence[int]) -> Iterator[tuple[int, Answer]]:
    scenario = scenario_of(table.collective, table.topology, n_ranks=table.n_ranks)
    plan = plan_of(scenario)
    for size, result in zip(sizes, solve(scenario, sizes, plan=plan).results, strict=True):
        low, high = result.interval or (None, None)
        yield size, Answer(result.time, low, high, _algorithm(plan, size))


def _algorithm(plan: Any, size: int) -> str:
    launched: Mapping[str, Any] = plan.at(size).parameters
    return "/".join(str(launched[key]) for key in ("algorithm", "protocol") if key in launched) or "p2p"


def _ranked(table: Asked, sizes: Sequence[int]) -> Iterator[tuple[int, Answer]]:
    ranking = cs.rank(table.operation, table.topology, sizes, n_ranks=table.n_ranks)
    for size in sizes:
        name, result = ranking.by_size[size][0]
        low, high = result.interval or (None, None)
        yield size, Answer(result.time, low, high, name)


def predicted_rows(tables: Iterable[Asked]) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Predict all rows.

    Parameters
    ----------
    tables : iterable of Asked
        Tables.

    Returns
    -------
    list of dict, and dict of str to str
        Rows with the keys of `FIELDS`, times in s (`nics`: of the naive rule), and why a table is not predicted.
    """
    answers, rows, unknown = Answers(), [], {}
    for table in tables:
        try:
            found = answers.of(table)
        except InputError as error:
            unknown[table.id] = str(error)
            continue
        for size, measured in table.rows:
            one = found[size]
            values = (
                table.id, table.kind, table.operator, table.operation, table.machine, table.healthy, size, measured,
                one.time, one.low, one.high, one.algorithm, table.by_nics(size),
            )  # fmt: skip
            rows.append(dict(zip(FIELDS, values, strict=True)))
    return rows, unknown
