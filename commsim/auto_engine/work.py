"""How much an engine has to do for one prediction, before it does it: an estimate in CPU seconds."""

from __future__ import annotations

import numpy as np

from commsim.run import ENGINES, Prepared

PACKET_BYTES = 4096
START = {"closed-form": 2e-5, "alpha-beta": 2e-4, "flow": 3e-4, "packet": 2e-2}
"""Seconds that a prediction takes whatever it is of."""
PER_TRANSFER = {"closed-form": 0.0, "alpha-beta": 0.4e-6, "flow": 2e-6, "packet": 1e-6}
"""Seconds; of the flow engine between 0.3 and 5 were measured, more where flows of different sizes compete."""
PER_PACKET_AND_LINK = 1.5e-7
"""Seconds; between 1.1 and 3.4e-7 were measured, and there are as many acknowledgements."""


def estimated_seconds(prepared: Prepared, size: float) -> dict[str, float]:
    """Estimate the CPU time of each engine; right to a factor of about 3, on one core of a machine of 2024.

    Parameters
    ----------
    prepared : Prepared
        A collective on a network.
    size : float, bytes
        Of the operation.

    Returns
    -------
    dict of str to float
        By engine, the cheapest first.
    """
    n_transfers = prepared.schedule.n_transfers
    found = {engine: START[engine] + PER_TRANSFER[engine] * n_transfers for engine in ENGINES}
    found["packet"] += PER_PACKET_AND_LINK * _packets_times_links(prepared, size)
    return dict(sorted(found.items(), key=lambda item: item[1]))


def _packets_times_links(prepared: Prepared, size: float) -> float:
    schedule, plan = prepared.schedule, prepared.plan
    n_links = np.zeros(len(plan.ends))
    np.add.at(n_links, np.repeat(np.arange(len(plan.ends)), np.diff(plan.routes.first)), plan.routes.share)
    packets = np.ceil(plan.count * (size / schedule.n_chunks / PACKET_BYTES))
    return float((np.maximum(packets, 1.0) * n_links[plan.wire_of]).sum())
