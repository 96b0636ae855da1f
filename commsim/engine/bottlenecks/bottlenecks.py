"""Events with one rate per bottleneck: what the event engine does, where many messages share few links.

All messages that a link holds down have one rate: they are the group of this link, with one clock that counts the bytes
each was served, and end in the order of where that clock will be. When a message ends, the event engine finds the rates
of thousands of others anew; here the rates of some hundred groups are, and nothing of the messages is touched but of
those that go from one group to another. A message that follows another one on its connection at once changes no rate.

References
----------
Demers, Keshav and Shenker, "Analysis and simulation of a fair queueing algorithm", SIGCOMM 1989 (the clock, there the
round number); Bertsekas and Gallager, "Data Networks", 2nd ed., 1992, section 6.5.2 (max-min fairness).
"""

from __future__ import annotations

from typing import Any

from commsim.core.result import Result
from commsim.engine.flow import simulate_flows
from commsim.engine.flow_plan import FlowPlan
from commsim.engine.flow_state import FlowState

from .group_state import GroupTables


def simulate_bottlenecks(plan: FlowPlan, groups: GroupTables, size: float, **options: Any) -> Result:
    """Simulate one job.

    Parameters
    ----------
    plan : FlowPlan
        Plan of the job.
    groups : GroupTables
        Groups of its messages.
    size : float, bytes
        Size of the collective.
    **options
        Starts, framing and trace, as of :func:`commsim.engine.flow.simulate_flows`.

    Raises
    ------
    InputError
        If the size or a start is not legal.
    PhysicsError
        If transfers never end, or the result contradicts capacity or causality. This is a bug in commsim.
    """
    from .run_kernel import simulate_groups

    def play(state: FlowState) -> None:
        simulate_groups(state, groups.allocate())

    return simulate_flows(plan, size, kernel=play, **options)[0]
