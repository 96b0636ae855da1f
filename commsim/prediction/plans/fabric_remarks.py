"""Remarks on an oversubscribed fabric, and on machines that published tables of NCCL do not cover well."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network
from commsim.core.network_queries import locality_levels
from commsim.core.remark import Remark
from commsim.core.result import Result
from commsim.packets.aggregated.plan_aggregated import AggregatedPlan
from commsim.prediction.kind import WorkPlan
from commsim.prediction.plans.dense import Plan
from commsim.prediction.scenario import Scenario
from commsim.routing.network_metrics import fabric_oversubscription

__all__ = ["of_packed_ranks", "of_tables"]
# Machines of 8 H100 outside clouds, by the names of their presets.
_H100 = re.compile(r"\b[dh]gx-h100\b")


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
    if scenario.placement is not None or not any(_keeps_to_racks(plans[name], some) for name, some in results.items()):
        return []
    network = scenario.network
    if fabric_oversubscription(network) <= 1 + 1e-9:
        return []
    racks = next((level.group for level in locality_levels(network) if level.name == "rack"), np.zeros(1, np.int64))
    if not racks.max() or (np.diff(racks) < 0).any():
        return []
    text = "ranks are packed rack by rack; --placement spread is the time of a fragmented job"
    return [Remark("ranks-packed", text)]


def _keeps_to_racks(plan: WorkPlan, results: Sequence[Result]) -> bool:
    """Whether ranks on the first endpoints exchange messages over links, not all with all and not by switches."""
    if not isinstance(plan, Plan) or isinstance(plan, AggregatedPlan):
        return False
    n = plan.schedule.n_ranks
    is_packed = np.array_equal(plan.placement.nodes[:n], plan.network.endpoints[:n])
    seen = [result for result in results if result.engine != "closed-form" and result.link_bytes.any()]
    return n > 1 and is_packed and any(not result.operation.startswith("all_to_all") for result in seen)


def of_tables(network: Network, ranks: NDArray[np.integer], results: Sequence[Result]) -> list[Remark]:
    """Say which clusters the interval of the public tables of NCCL is not known to hold for.

    Parameters
    ----------
    network : Network
        Network of the ranks.
    ranks : int[n_ranks]
        Nodes of the ranks.
    results : sequence of Result
        Predictions of NCCL.
    """
    machines = np.unique(network.machine[ranks])
    if not any(result.interval is not None for result in results) or len(machines) < 2 or machines[0] < 0:
        return []
    lines = []
    if _H100.search(network.name):
        missed = "low to high: two public logs of machines of 8 H100 outside clouds lie outside (docs/limits.md)"
        lines.append(Remark("interval-missed", missed))
    if fabric_oversubscription(network) > 1 + 1e-9:
        lines.append(Remark("interval-unknown", "low to high: no public table is of an oversubscribed fabric"))
    return lines
