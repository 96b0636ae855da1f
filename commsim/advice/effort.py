"""How much work it is to simulate a schedule, before it is done: advice has to come in seconds."""

from __future__ import annotations

from dataclasses import dataclass

from commsim.core.dependencies import wires
from commsim.core.schedule import Schedule

MOST_TRANSFERS, MOST_WIRES, MOST_ADDRESSES = 2**19, 2**18, 2**19
"""Of a schedule: so many are planned and played in a few seconds, of transfers and wires half as many if of both."""
MOST_MEETINGS = 2**29
"""Transfers times wires, where messages are uneven: each ends alone, and what shares its links goes on otherwise."""


@dataclass(frozen=True, slots=True)
class Effort:
    """What there is to do for a schedule, per partition where it has several.

    Parameters
    ----------
    transfers, wires, addresses : int
        Of the schedule. Wires do not grow with the partitions.
    uneven : bool
        Whether its messages differ in size, as those of sparse data do. Equal ones end together, as one event.
    """

    transfers: int
    wires: int
    addresses: int
    uneven: bool

    def fits(self, n_partitions: int = 1) -> bool:
        """Whether the schedule of so many partitions can be simulated in seconds."""
        transfers = n_partitions * self.transfers
        return (
            transfers / MOST_TRANSFERS + self.wires / MOST_WIRES <= 1
            and n_partitions * self.addresses <= MOST_ADDRESSES
            and (not self.uneven or transfers * self.wires <= MOST_MEETINGS)
        )


def effort_of(schedule: Schedule, uneven: bool) -> Effort:
    """Count what there is to do; wires only where there are not too many transfers anyway."""
    transfers = schedule.n_transfers
    n_wires = len(wires(schedule, schedule.expand())[1]) if transfers <= MOST_TRANSFERS else transfers
    return Effort(transfers, n_wires, schedule.n_chunks * schedule.n_participants, uneven)
