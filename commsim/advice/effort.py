"""How much work it is to simulate a schedule, before it is done: advice has to come in seconds."""

from __future__ import annotations

from commsim.core.dependencies import wires
from commsim.core.schedule import Schedule

MOST_TRANSFERS, MOST_ADDRESSES = 2**18, 2**19
"""Of a schedule: so many are planned and played in a second or two."""
MOST_MEETINGS = 2**28
"""Transfers times wires, where messages are uneven: each ends alone, and all that share links with it go on otherwise."""


def share_of_limits(schedule: Schedule, uneven: bool) -> float:
    """Return how much of what may be simulated a schedule is: above 1 it is too much.

    Parameters
    ----------
    schedule : Schedule
        What would be sent.
    uneven : bool
        Whether its messages differ in size, as those of sparse data do. Equal ones end together, as one event.
    """
    transfers = schedule.n_transfers
    share = max(transfers / MOST_TRANSFERS, schedule.n_chunks * schedule.n_participants / MOST_ADDRESSES)
    if not uneven or share > 1:
        return share
    n_wires = len(wires(schedule, schedule.expand())[1])
    return max(share, transfers * n_wires / MOST_MEETINGS)
