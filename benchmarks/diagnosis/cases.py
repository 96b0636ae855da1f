"""Public cases with the cause that a thread established, and which causes ``compare`` gives them."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from benchmarks.diagnosis.topologies import topology_of
from commsim.core.errors import InputError
from commsim.diagnosis.causes.labels import HEALTHY
from commsim.diagnosis.causes.of_rows import explain_rows
from commsim.diagnosis.log_evidence import Due, evidence_of
from commsim.diagnosis.log_facts import log_facts
from commsim.formats.csv_tables import as_measurements, read_csv_rows
from commsim.prediction.build import plan_collective
from commsim.prediction.read import scenario_of
from commsim.real.comparison.healthy_rows import numbers_of

ABLE = 0.02


@dataclass(frozen=True, slots=True)
class CaseAnswer:
    """One case and its answer.

    Parameters
    ----------
    id, label : str
        Case, and the established cause.
    topology : str
        Topology that was asked for.
    is_one_number : bool
        Whether it has fewer than three sizes and no healthy table.
    causes : tuple of (str, float)
        Labels and likelihoods, the most likely first.
    """

    id: str
    label: str
    topology: str
    is_one_number: bool
    causes: tuple[tuple[str, float], ...]

    @property
    def rank(self) -> int:
        """Place of the established cause, from 1; 99 where it is not listed."""
        labels = [label for label, _ in self.causes]
        return labels.index(self.label) + 1 if self.label in labels else 99

    @property
    def is_listed(self) -> bool:
        """Whether it is among those that are able to give the numbers."""
        return dict(self.causes).get(self.label, 0.0) >= ABLE


def answers(folder: Path) -> list[CaseAnswer]:
    """Answer all cases of a folder with an ``index.csv``.

    Raises
    ------
    InputError
        If there is no index.
    """
    index = folder / "index.csv"
    if not index.is_file():
        raise InputError(f"{index} is missing: --data is a folder with diagnosis/index.csv")
    with index.open(newline="", encoding="utf-8") as file:
        return [_answer(folder, line) for line in csv.DictReader(file)]


def _answer(folder: Path, line: dict[str, str]) -> CaseAnswer:
    path = folder / f"{line['id']}.csv"
    rows, topology = read_csv_rows(path), topology_of(line)
    plan = plan_collective(scenario_of(f"nccl_{line['operation']}", topology))
    sized = [[row for row in rows if row.size and row.healthy == healthy] for healthy in (False, True)]
    slow, healthy = (as_measurements(path, some, line["operation"], plan.schedule.n_ranks) for some in sized)
    numbers = numbers_of(rows)
    facts = log_facts([f"# {line['gpu']}"])  # of its words only those on the machine, not what the thread found
    causes = explain_rows(plan, slow, healthy, numbers=numbers, evidence=evidence_of(facts, Due()))
    alone = not (healthy or numbers[1]) and len({row.size for row in slow}) < 3
    return CaseAnswer(line["id"], line["label"], topology, alone, tuple((one.label, one.likelihood) for one in causes))


def summary(found: list[CaseAnswer]) -> list[str]:
    """Return the figures of the cases in words."""
    several = [one for one in found if not one.is_one_number]
    single = [one for one in found if one.is_one_number]
    healthy = [one for one in found if one.label == HEALTHY]
    top, three = (sum(one.rank <= n for one in several) for n in (1, 3))
    n = max(1, len(several))
    return [
        f"three sizes or a healthy table: top-1 {top} of {len(several)} ({top / n:.0%}; asked 65 %), "
        f"top-3 {three} of {len(several)} ({three / n:.0%}; asked 90 %)",
        f"one number: listed as able to give it: {sum(one.is_listed for one in single)} of {len(single)}",
        f"healthy, the expectation was wrong: {sum(one.rank == 1 for one in healthy)} of {len(healthy)} first",
    ]
