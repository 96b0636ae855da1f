"""What faults of a network cost: with the schedule that runs without them, and with the one that is made for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.placement import Placement
from commsim.prediction.build import prepare
from commsim.prediction.collective_names import require_operation
from commsim.prediction.inputs import placement_of_ranks
from commsim.prediction.plans.dense import Plan
from commsim.prediction.scenario import Scenario

from .made_schedules import MAX_MESSAGES, Maker
from .synthesize import CostOfFaults, Synthesis, synthesize
from .textbook import registered


def synthesize_for(
    scenario: Scenario,
    operation: str,
    sizes: Sequence[int],
    *,
    whole: Network | None = None,
    running: str | None = None,
    root: int = 0,
    **options: Any,
) -> Synthesis:
    """Make schedules for an operation where a scenario puts its ranks, and say what faults cost.

    Parameters
    ----------
    scenario : Scenario
        Network with its faults and costs, number of ranks and placement.
    operation, sizes, root
        Same as in :func:`commsim.ranking.synthesis.synthesize.synthesize`.
    whole : Network, optional
        Network without its faults, where it has some.
    running : str, optional
        Schedule that runs without the faults, as in :func:`cost_of_faults`.
    **options
        Further parameters of :func:`commsim.ranking.synthesis.synthesize.synthesize`.

    Raises
    ------
    InputError
        If the placement does not fit, or nothing can be made or taken.
    """
    if running is not None and whole is None:
        raise InputError("running goes with fail or scale: it is compared with what is made for the faults")
    if running is not None:
        require_operation(running, operation)
    where = placement_of_ranks(scenario.network, scenario.n_ranks, scenario.placement, scenario.seed)
    p = len(where.nodes)
    if not 0 <= root < p:
        raise InputError(f"root must be a rank 0..{p - 1}, got {root}")
    synthesis = synthesize(operation, scenario.network, sizes, ranks=where.nodes, root=root, **options)
    synthesis.notes[:0] = scenario.remarks
    if whole is not None and synthesis.candidates:
        synthesis.faults = cost_of_faults(synthesis, whole, where, running=running, root=root)
    return synthesis


def cost_of_faults(
    synthesis: Synthesis, whole: Network, placement: Placement, *, running: str | None = None, root: int = 0
) -> list[CostOfFaults]:
    """Compare what was found for a network with faults with a schedule that runs on the network without them.

    Parameters
    ----------
    synthesis : Synthesis
        Schedules found for the network with faults.
    whole : Network
        The network without them.
    placement : Placement
        Placement of the ranks, the same on both.
    running : str, optional
        A registered collective or a .npz file; by default for each size the fastest registered one on `whole`.
    root : int
        Root of a rooted operation.

    Raises
    ------
    InputError
        If `running` is of another operation, or cannot run without faults; or if none can be taken.
    """
    if running is None:
        known = registered(synthesis.operation, whole, placement.nodes, root, MAX_MESSAGES)
    else:
        require_operation(running, synthesis.operation)
        known = {running: _on(running, whole, placement)}
        ranks, p = known[running].schedule.n_ranks, len(placement.nodes)
        if ranks != p:
            raise InputError(f"{running} has {ranks} ranks, and the operation {p}")
    bounds = Maker(synthesis.operation, whole, placement.nodes, root, MAX_MESSAGES, None)
    rows, faulted = list[CostOfFaults](), dict[str, Plan | None]()
    for size in synthesis.candidates:
        times = {name: time for name, one in known.items() if (time := _time(one, size)) is not None}
        if not times:
            raise InputError(f"no schedule is known to run {synthesis.operation} on {whole.name} without faults")
        name = min(times, key=times.__getitem__)
        if name not in faulted:
            faulted[name] = _where_it_can(name, synthesis.network, placement)
        now = None if (ready := faulted[name]) is None else _time(ready, size)
        repaired, bound = synthesis.best(size).time, synthesis.bounds[size]
        rows.append(CostOfFaults(size, name, times[name], now, repaired, bound, bounds.bound(size)))
    return rows


def _on(running: str, network: Network, placement: Placement) -> Plan:
    """Lay a schedule out; one of a file keeps the routes that it was written with."""
    if running.endswith(".npz"):
        return prepare(running, network)
    return prepare(running, network, n_ranks=len(placement.nodes), placement=placement)


def _where_it_can(running: str, network: Network, placement: Placement) -> Plan | None:
    """Lay a schedule out; None where its routes go over what failed, or its structure is not found any more."""
    try:
        return _on(running, network, placement)
    except InputError:
        return None


def _time(ready: Plan, size: int) -> float | None:
    try:
        return ready.predict(size).time
    except InputError:  # too large for the engine, or for this size
        return None
