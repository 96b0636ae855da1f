"""Remarks on ranks that the default placement packs where the fabric is oversubscribed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from commsim.core.network import SWITCH
from commsim.core.network_queries import locality_levels
from commsim.core.remark import Remark
from commsim.core.result import Result
from commsim.prediction.plans.dense import Plan
from commsim.prediction.scenario import Scenario
from commsim.prediction.work_plan import WorkPlan
from commsim.routing.network_metrics import fabric_oversubscription

__all__ = ["of_packed_ranks"]


def of_packed_ranks(
    scenario: Scenario, plans: Mapping[str, WorkPlan], results: Mapping[str, Sequence[Result]]
) -> list[Remark]:
    """Say that the default placement keeps most messages inside racks where the fabric between these is oversubscribed.

    Nothing is said where the order of ranks changes little: of an all-to-all and of sums in switches.

    Parameters
    ----------
    scenario : Scenario
        Network, and placement.
    plans, results : mapping of str to WorkPlan, and to sequence of Result
        Plans and predictions, by name of the collective.
    """
    network = scenario.network
    is_outside = (network.kind == SWITCH) & (network.machine < 0)
    if scenario.placement is not None or not (is_outside[network.src] & is_outside[network.dst]).any():
        return []
    if not any(_keeps_to_racks(plans[name], some) for name, some in results.items()):
        return []
    if fabric_oversubscription(network) <= 1 + 1e-9:
        return []
    racks = next((level.group for level in locality_levels(network) if level.name == "rack"), np.zeros(1, np.int64))
    if not racks.max() or (np.diff(racks) < 0).any():
        return []
    text = "ranks are packed rack by rack; --placement spread is the time of a fragmented job"
    return [Remark("ranks-packed", text)]


def _keeps_to_racks(plan: WorkPlan, results: Sequence[Result]) -> bool:
    """Whether ranks on the first endpoints exchange messages over links, not all with all and not by switches."""
    if not isinstance(plan, Plan) or plan.in_slots:
        return False
    n = plan.schedule.n_ranks
    is_packed = np.array_equal(plan.placement.nodes[:n], plan.network.endpoints[:n])
    seen = [result for result in results if result.engine != "closed-form" and result.link_bytes.any()]
    return n > 1 and is_packed and any(not result.operation.startswith("all_to_all") for result in seen)
