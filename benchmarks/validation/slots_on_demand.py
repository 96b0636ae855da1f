"""A published worked example: three fragments of four workers, and three switches with room for one fragment each.

Workers 0 and 1 hang on switch 0, workers 2 and 3 on switch 1, and the parameter server on switch 2. Each worker sends
fragments A, B, C. What counts is how many packets the server receives and how many leave switches on the way there.

References
----------
The GOAT paper (ToN 2024), section III-B and figure 2: ATP 7 and 17, its own schedule 3 and 13; in synchronous order
ATP aggregates everything.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from switch_model.system import System
from switch_model.systems.atp import hashed_slots
from tests.oracles.slow_pool import Pool

N_WORKERS, N_FRAGMENTS, N_SWITCHES = 4, 3, 3
RACK = (0, 0, 1, 1)  # switch of each worker
SERVER_SWITCH = 2
BELOW = (0b0011, 0b1100, 0b1111)  # workers whose packets pass each switch
# Arrivals: A, B, C of the first worker of each rack, then of the second.
FIRST_WORKERS_FIRST = tuple((worker, fragment) for worker in (0, 2, 1, 3) for fragment in range(N_FRAGMENTS))


class Traffic(NamedTuple):
    """Packets that the server received, packets that left switches, and the sums that the server ended with."""

    server: int
    egress: int
    sums: tuple[int, ...]


def one_slot(switch_model: str, everyone: int) -> Pool:
    """Make a switch with memory for one fragment of one element, shared as ATP shares it."""
    system = System(
        switch_model,
        1,
        pool_size=1,
        window=1,
        versions=1,
        shared_slots=hashed_slots,
        arithmetic="saturate",
        server=True,
    )
    return Pool(system, N_WORKERS, everyone=everyone)


def value(worker: int, fragment: int) -> int:
    """Give each worker a digit of its own, so that sums show who is in them, and how often."""
    return int(10**worker) * (fragment + 1)


def on_demand(arrivals: tuple[tuple[int, int], ...], acknowledge: bool = False) -> Traffic:
    """Let fragments claim the one slot of each switch on their way as they arrive, as ATP does.

    Parameters
    ----------
    arrivals : tuple of (worker, fragment)
        Order of arrival at the workers' switches.
    acknowledge : bool
        Whether the server's result, which frees slots, is back before the next packet arrives: it is when workers are
        synchronous, and not when a worker sends all of its fragments at once.
    """
    pools = [one_slot(f"switch{i}", BELOW[i]) for i in range(N_SWITCHES)]
    sums, counted, received, egress = [0] * N_FRAGMENTS, [0] * N_FRAGMENTS, 0, 0
    for worker, fragment in arrivals:
        values = np.array([value(worker, fragment)], np.int32)
        up = pools[RACK[worker]].claim(0, fragment + 1, 1 << worker, values)
        egress += len(up)
        for packet in up:
            on = pools[SERVER_SWITCH].claim(0, fragment + 1, packet.children, packet.values)
            egress += len(on)
            for last in on:
                received += 1
                sums[fragment] += int(last.values[0])
                counted[fragment] |= last.children
        if acknowledge and counted[fragment] == BELOW[SERVER_SWITCH]:
            for pool in pools:
                pool.acknowledge(0, fragment + 1, values)
    return Traffic(received, egress, tuple(sums))


def scheduled(arrivals: tuple[tuple[int, int], ...]) -> Traffic:
    """Let each switch sum one whole fragment, to which all workers send it: A at switch 0, B at 1, C at 2.

    All switches are joined to each other; so we read the figure, since no other links give its counts.
    """
    pools = [one_slot(f"switch{i}", BELOW[SERVER_SWITCH]) for i in range(N_SWITCHES)]
    sums, received, egress = [0] * N_FRAGMENTS, 0, 0
    for worker, fragment in arrivals:
        egress += RACK[worker] != fragment  # from the rack's switch to the one that sums
        values = np.array([value(worker, fragment)], np.int32)
        for packet in pools[fragment].claim(0, fragment + 1, 1 << worker, values):
            egress += 1 if fragment == SERVER_SWITCH else 2  # to the server, or to its switch and then to it
            received += 1
            sums[fragment] += int(packet.values[0])
    return Traffic(received, egress, tuple(sums))
