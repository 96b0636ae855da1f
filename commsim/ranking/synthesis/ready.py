"""Synthesized schedules as one prepared collective, beside registered ones: at each size the fastest that was made."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from commsim.core.errors import InputError
from commsim.core.extras import of_extra
from commsim.core.network import Network
from commsim.core.operations import operation as known_operation
from commsim.core.placement import PACKED, Placement
from commsim.core.remark import Remark
from commsim.prediction.inputs import load_placement
from commsim.prediction.plans.dense import Plan
from commsim.prediction.scenario import Scenario

from .made_schedules import Maker

# Its name in tables.
NAME = "synthesized"
# Messages of a schedule: it is simulated within seconds, and one percent from the optimum at large sizes.
MAX_MESSAGES = 300_000
# At this size it is made first, to see that it can be.
_FIRST = 2.0**20


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesizedPlan(Plan):
    """Schedules that are made for each size.

    Parameters
    ----------
    plan_of : callable
        Function from a size in bytes to the fastest plan that was made for it.
    """

    plan_of: Callable[[float], Plan]

    def at(self, size: float) -> Plan:
        """Return the plan of one size."""
        return self.plan_of(size)


def operation_of(name: str) -> str | None:
    """Return the operation of ``synthesized_OPERATION``; None for any other name.

    Raises
    ------
    InputError
        If the operation is unknown, or nothing is synthesized for it.
    """
    prefix, _, operation = name.partition("_")
    if prefix != NAME or not operation:
        return None
    op = known_operation(operation)
    if op.signals or op.layout != "none":
        why = "carries no bytes" if op.signals else "has blocks of unequal sizes"
        raise InputError(f"{operation}: nothing is synthesized, it {why}")
    return operation


def prepare_synthesized(
    operation: str,
    network: Network,
    *,
    n_ranks: int | None = None,
    placement: str | Placement | None = None,
    seed: int = 0,
    root: int = 0,
) -> Plan:
    """Prepare what is synthesized for an operation, without registered collectives.

    The network's certificate and trees are found once; a schedule is made for each size that is asked for, and kept.

    Parameters
    ----------
    operation : str
        Name of the operation.
    network : Network
        Network that the operation runs on.
    n_ranks, placement, seed
        Same as in :func:`commsim.prediction.prepare`.
    root : int
        Root of a rooted operation.

    Raises
    ------
    InputError
        If nothing can be synthesized, or SciPy is missing.
    """
    of_extra("scipy")
    operation_of(f"{NAME}_{operation}")  # refuses what cannot be
    p = len(network.endpoints) if n_ranks is None else n_ranks
    placement = (
        load_placement(placement or PACKED, network, p, seed) if not isinstance(placement, Placement) else placement
    )
    maker = Maker(operation, network, placement.nodes, root, MAX_MESSAGES, None)
    made = functools.partial(_fastest_plan, maker, {})
    first = made(_FIRST)
    proof = maker.certificate
    remarks = []
    if proof is not None and proof.proved:
        remarks = [Remark("proof", f"synthesized: optimum {proof.fraction} s/GB times {proof.per}")]
    return first.as_kind(SynthesizedPlan, notes=(*first.notes, *remarks, *maker.notes), plan_of=made)


def _fastest_plan(maker: Maker, known: dict[float, Plan], size: float) -> Plan:
    """Return the fastest plan that is made for a size."""
    if size not in known:
        tried = list(maker.candidates(int(size), textbook=False))
        if not tried:
            raise InputError(f"{maker.network.name}: nothing is synthesized for {maker.operation} here")
        known[size] = min(tried, key=lambda one: one.rank).prepared
    return known[size]


def plan_synthesized(scenario: Scenario) -> Plan:
    """Return the plan of ``synthesized_OPERATION`` in a scenario.

    Raises
    ------
    InputError
        If nothing can be synthesized, or a routing is asked for: schedules pin their routes.
    """
    operation = operation_of(scenario.name)
    assert operation is not None
    if scenario.routing is not None:
        raise InputError(f"{scenario.name}: routes are pinned, --routing has no effect")
    return prepare_synthesized(
        operation, scenario.network, n_ranks=scenario.n_ranks, placement=scenario.placement, seed=scenario.seed
    )
