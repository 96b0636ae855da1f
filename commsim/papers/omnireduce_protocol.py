"""OmniReduce's RDMA protocol, message by message: what its time on the authors' machines is made of.

A tensor is cut over the threads of a worker, and what a thread has over slots. A slot goes down its column of blocks: a
round begins with a message from each worker that has the block, and ends with the sum, which every worker receives,
also those that sent nothing. So a thread handles d + U messages per block, d its own density and U that of the union.
In a slot a round cannot begin before the one before it has ended, so that the longest column counts where messages are
few. With more workers the union is denser: columns have more rounds, and the time without bytes grows.

One thread represents all; it has its share of the links. With GPU-direct workers copy nothing, but aggregators still
add every element that they receive: where data is dense, their threads decide. Without it, see
``benchmarks.accuracy.omnireduce_published``.

Constants, and the one number that each was taken from, which counts in no statistics:

- the links' goodput, 85.6 Gb/s: NCCL's bus bandwidth on 8 of the same machines, nothing of OmniReduce;
- a message's cost and an element's, half for the sender and half for the receiver: dense, blocks of 32 and of 256, both
  through the host; with GPU-direct only the half of an aggregator that receives is left of an element's;
- the fixed part, what is there without any message (bitmaps, launches): 8 workers, density 0.1, the one row of the
  table of densities and workers that a constant was taken from.

References
----------
sands-lab/omnireduce at dafb113: worker.cpp, aggregator.cpp, params.hpp (threads, slots, copies in chunks).
"""

from __future__ import annotations

import functools
import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.jit import kernel
from commsim.sparse.generate import drawn_occupancy

THREADS, AGGREGATORS, SLOTS_EACH = 8, 8, 8  # of a worker; of the job; of a thread at each aggregator
GOODPUT = 85.6e9 / 8  # bytes/s
LATENCY = 2e-6  # of a message; our assumption; hundreds are under way
FIXED = 1.96e-3  # s
MESSAGE, ELEMENT = 0.883e-6, 1.61e-9  # s, sending and receiving together


@dataclass(frozen=True, slots=True)
class OmniReduceInput:
    """What is reduced.

    Parameters
    ----------
    n_elements : int
        Number of elements of 4 bytes.
    block : int
        Elements of a message.
    density : float
        Share of blocks that a worker has, drawn for each.
    n_workers : int
        Number of workers, beside :data:`AGGREGATORS` hosts that add.

    Raises
    ------
    InputError
        Without a block for each thread, or if a number is out of its range.
    """

    n_elements: int
    block: int
    density: float
    n_workers: int = 8

    def __post_init__(self) -> None:
        if min(self.block, self.n_workers) < 1 or self.n_elements < self.block * THREADS or not 0 < self.density <= 1:
            raise InputError(
                f"needs a block and a worker at least, a block for each of {THREADS} threads and a density in (0, 1], "
                f"got {self.n_elements} elements in blocks of {self.block}, {self.n_workers} and {self.density:g}"
            )


def direct_time(case: OmniReduceInput) -> float:
    """Seconds where the NIC reaches the GPU's memory: workers copy nothing, and aggregators add what they receive."""
    return FIXED + protocol_time(case, MESSAGE, ELEMENT / 2 * case.block)


@functools.cache
def protocol_time(case: OmniReduceInput, per_message: float, adding: float = 0.0) -> float:
    """Seconds from the first message to the last result.

    Parameters
    ----------
    per_message : float, s
        Time of a thread for sending a message and receiving one.
    adding : float, s
        Further time of an aggregator's thread for what a message holds.
    """
    data = drawn_occupancy(
        case.n_workers, case.n_elements // THREADS, density=case.density, block=case.block, pattern="random"
    )
    owned = np.array([data.bitmap_of(worker) for worker in range(case.n_workers)])
    costs = (per_message / 2, adding, 4 * case.block * THREADS / GOODPUT, LATENCY)
    return float(_simulate(owned, AGGREGATORS * SLOTS_EACH, AGGREGATORS, costs))


@kernel
def _simulate(
    owned: NDArray[np.bool_], n_slots: int, n_aggregators: int, costs: tuple[float, float, float, float]
) -> float:
    """Play one thread of every worker and of every aggregator; each does one thing at a time, in order of arrival.

    Parameters
    ----------
    owned : bool[n_workers, n_blocks]
        Blocks that each worker has; block b is in slot b % n_slots.
    n_slots, n_aggregators : int
        Slot j is served by aggregator j % n_aggregators.
    costs : (float, float, float, float), s
        Time to send or to receive a message; to add it up besides; for its bytes to pass a link; until it arrives.

    Returns
    -------
    float, s
    """
    handle, adding, transmit, latency = costs
    n_workers, n_blocks = owned.shape
    # Nodes are workers, then aggregators: when its thread, its link out, and its link in are free.
    free = np.zeros((3, n_workers + n_aggregators))
    block, awaited = np.arange(n_slots), np.zeros(n_slots, np.int64)
    # Arrival, number, receiver, slot; and in results the block that the slot goes on with.
    events = [(0.0, 0, 0, 0, 0) for _ in range(0)]
    number, end = 0, 0.0
    for slot in range(min(n_slots, n_blocks)):
        awaited[slot] = n_workers
        for worker in range(n_workers):
            free[0, worker] += handle
            free[1, worker] = max(free[0, worker], free[1, worker]) + transmit
            number += 1
            heapq.heappush(events, (free[1, worker] + latency, number, n_workers + slot % n_aggregators, slot, 0))
    while len(events):
        arrival, _, node, slot, following = heapq.heappop(events)
        free[2, node] = max(free[2, node] + transmit, arrival)
        free[0, node] = max(free[0, node], free[2, node]) + handle
        first, past = 0, 0  # nodes to which it sends then
        if node < n_workers:
            end = max(end, free[0, node])
            if following < n_blocks and owned[node, following]:
                first, past = n_workers + slot % n_aggregators, n_workers + slot % n_aggregators + 1
        else:
            free[0, node] += adding
            awaited[slot] -= 1
            if awaited[slot] == 0:
                past = n_workers
                while awaited[slot] == 0 and block[slot] < n_blocks:  # on to the next block that some worker has
                    block[slot] += n_slots
                    if block[slot] < n_blocks:
                        awaited[slot] = owned[:, block[slot]].sum()
                following = block[slot]
        for to in range(first, past):
            free[0, node] += handle
            free[1, node] = max(free[0, node], free[1, node]) + transmit
            number += 1
            heapq.heappush(events, (free[1, node] + latency, number, to, slot, following))
    return end
