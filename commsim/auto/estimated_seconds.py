"""The CPU seconds that an engine will take for a prediction, estimated before it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commsim.prediction.scenario import ENGINES

if TYPE_CHECKING:
    from commsim.prediction.plans.dense import Plan

PACKET_BYTES = 4096
# Seconds that a prediction takes whatever it is of.
START = {"closed-form": 2e-5, "alpha-beta": 2e-4, "flow": 3e-4, "packet": 2e-2}
# Seconds; of the flow engine between 0.3 and 5 were measured, more where flows of different sizes compete.
PER_TRANSFER = {"closed-form": 0.0, "alpha-beta": 0.4e-6, "flow": 2e-6, "packet": 1e-6}
# Seconds; between 1.1 and 3.4e-7 were measured, and there are as many acknowledgements.
PER_PACKET_AND_LINK = 1.5e-7


def estimated_seconds(prepared: Plan, size: float) -> dict[str, float]:
    """Estimate the CPU time of each engine; right to a factor of about 3, on one core of a machine of 2024.

    Parameters
    ----------
    prepared : Plan
        A collective on a network.
    size : float, bytes
        Size of the operation.

    Returns
    -------
    dict of str to float
        By engine, the cheapest first.
    """
    prepared = prepared.at(size)
    n_transfers = prepared.schedule.n_transfers
    seconds = {engine: START[engine] + PER_TRANSFER[engine] * n_transfers for engine in ENGINES}
    seconds["packet"] += PER_PACKET_AND_LINK * _packets_times_links(prepared, size)
    return dict(sorted(seconds.items(), key=lambda item: item[1]))


def _packets_times_links(prepared: Plan, size: float) -> float:
    schedule, plan = prepared.schedule, prepared.plan
    n_links = np.zeros(len(plan.ends))
    np.add.at(n_links, np.repeat(np.arange(len(plan.ends)), np.diff(plan.routes.first)), plan.routes.share)
    packets = np.ceil(plan.count * (size / schedule.n_chunks / PACKET_BYTES))
    return float((np.maximum(packets, 1.0) * n_links[plan.connection_of]).sum())
