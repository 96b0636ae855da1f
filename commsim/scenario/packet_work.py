"""How much a simulation of messages packet by packet has to do, estimated before it begins, and refused if too much."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from commsim.engine.flow import payload
from commsim.engine.flow_plan import FlowPlan
from commsim.engine.packet.transports.spraying import Spraying, over_path
from commsim.limits import expect

# Seconds per packet and link, its answer among them, on one core of a machine of 2024: 1.1 to 1.6 were measured.
PER_HOP = 1.5e-7


def expect_packets(plan: FlowPlan, sizes: ArrayLike, how: Spraying | None) -> None:
    """Declare the work of simulating messages, or refuse it.

    Parameters
    ----------
    plan : FlowPlan
        What runs where.
    sizes : float64[n_jobs] or float, bytes
        Size of each job's collective.
    how : Spraying, optional
        How packets are sent; its payload counts.

    Raises
    ------
    InputError
        If the run would take too long.
    """
    how = how or over_path()
    packets = np.ceil(payload(plan, sizes) / how.payload)
    hops = 2 * float((packets * np.diff(plan.routes.first)[plan.connection_of]).sum())  # with their answers
    expect(hops * PER_HOP, f"simulating {hops:.2g} packets, counted on each link,", "a smaller size, or engine flow")
