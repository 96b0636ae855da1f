"""The diagnosis of measured rows: ranked causes with what the files' lines say, and what is told of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from commsim.core.errors import InputError
from commsim.core.network_queries import units
from commsim.diagnosis.causes.explain import RankedCause
from commsim.diagnosis.causes.fault import Fault
from commsim.diagnosis.causes.ground import ground_of
from commsim.diagnosis.causes.of_rows import explain_rows, has_closed_form
from commsim.diagnosis.causes.told import json_of, told
from commsim.diagnosis.errors_of_plan import errors_of_plan
from commsim.diagnosis.gpus_of_log import require_gpus
from commsim.diagnosis.log_evidence import Due, due_of, evidence_of, numbers_of_log
from commsim.diagnosis.log_facts import LogFacts, read_log_facts
from commsim.formats.measurement import Measurement
from commsim.nccl.error_model import ErrorModel
from commsim.nccl.plans.plan_nccl import NcclPlan
from commsim.prediction.plans.dense import Plan
from commsim.prediction.scenario import Scenario
from commsim.real.comparison.pairs import Pair


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Ranked causes.

    Parameters
    ----------
    causes : tuple of RankedCause
        The most likely first.
    lines : tuple of str
        What is said of them.
    errors : ErrorModel
        Errors of predictions of such a plan.
    n_ranks : int
        Ranks of the plan.
    """

    causes: tuple[RankedCause, ...]
    lines: tuple[str, ...]
    errors: ErrorModel
    n_ranks: int

    def rows(self) -> list[dict[str, Any]]:
        """Return the causes as the JSON of ``compare`` has them."""
        return json_of(self.causes)

    def write(self, pairs: Sequence[Pair], what: str, path: str) -> None:
        """Write the page of measured against expected times, and of what each cause predicts.

        Parameters
        ----------
        pairs : sequence of Pair
            Predicted beside measured times of the operation.
        what : str
            What was measured, and the topology.
        path : str
            File that ends with .html.

        Raises
        ------
        InputError
            If it cannot be written.
        """
        from commsim.diagnosis.causes_page import write_causes

        known = [replace(pair, measured=replace(pair.measured, n_ranks=self.n_ranks)) for pair in pairs]
        write_causes(self.causes, known, self.errors, self.lines, what, path)


def diagnose(
    plan: Plan,
    slow: Sequence[Measurement],
    healthy: Sequence[Measurement] = (),
    *,
    predicted: Mapping[float, float] | None = None,
    numbers: tuple[Sequence[float], Sequence[float]] = ((), ()),
    logs: tuple[str | None, str | None] = (None, None),
    scenario: Scenario | None = None,
    over: Callable[[Sequence[Fault]], Iterable[Fault]] = iter,
    other_gpus: bool = False,
) -> Diagnosis | None:
    """Find the causes of slow rows; None where the model has no closed form of the plan, and may not simulate faults.

    Parameters
    ----------
    plan, slow, healthy, predicted, numbers, scenario, over
        Same as in :func:`commsim.diagnosis.causes.of_rows.explain_rows`.
    logs : pair of str or None
        Files of the slow and of the healthy rows, whose other lines are read.
    other_gpus : bool
        Whether GPUs that they name may be of another generation than the plan's.

    Raises
    ------
    InputError
        If a log names more hosts than the ranks are on, or other GPUs.
    """
    bad, good = (read_log_facts(path) if path else LogFacts() for path in logs)
    for path, facts in zip(logs, (bad, good), strict=True):
        _check_hosts(plan, str(path), facts)
        if path and not other_gpus:
            require_gpus(path, plan.network)
    evidence = evidence_of(bad, _due(plan, bad), good if logs[1] else None)
    causes = explain_rows(
        plan, slow, healthy, predicted=predicted, numbers=numbers, evidence=evidence, stated=numbers_of_log(bad),
        scenario=scenario, over=over,
    )  # fmt: skip
    if not causes:
        return None
    n_sizes = len({row.size for row in slow}) + len(numbers[0])
    lines = told(causes, n_sizes=n_sizes, has_reference=bool(healthy or numbers[1]))
    return Diagnosis(causes, tuple(lines), errors_of_plan(plan), plan.schedule.n_ranks)


def _due(plan: Plan, facts: LogFacts) -> Due:
    """Return what the lines of a log should say, where the model knows the machines."""
    if not (isinstance(plan, NcclPlan) and has_closed_form(plan)):
        return Due()
    try:
        return due_of(ground_of(plan.launch, plan.schedule.n_ranks), facts)
    except InputError:  # NCCL finds no channel there
        return Due()


def _check_hosts(plan: Plan, path: str, facts: LogFacts) -> None:
    """Refuse a log of more hosts than the topology puts its ranks on."""
    network, n_ranks = plan.network, plan.schedule.n_ranks
    used = len(set(units(network)[plan.placement.nodes[:n_ranks]].tolist()))
    if len(facts.hosts) > used:
        named = f"{', '.join(facts.hosts[:3])}{', ...' * (len(facts.hosts) > 3)}"
        raise InputError(
            f"{path}: {len(facts.hosts)} hosts ({named}), and the topology has its {n_ranks} ranks on {used}"
        )
