"""The order checker: dependencies and wire order leave no freedom that could change what a schedule computes."""

import heapq
import itertools
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from commsim.core.checking.check import chunks_of, hops
from commsim.core.data_order.dependencies import Dependencies, connections, dependencies
from commsim.core.errors import ScheduleError
from commsim.core.schedule import REDUCE, Schedule, Transfers

PRIME = 2**61 - 1
START, SENT, COMPLETE = range(3)
Rows = list[list[int]]


def check_order(schedule: Schedule, seeds: Iterable[int] = range(5)) -> None:
    """Play a schedule in random orders that its dependencies allow, and compare with program order.

    Every address starts with a random number of its own. A transfer begins to read when it starts and may go on until
    it is sent, so what it reads must be the same at both times; what it writes lands when it is complete. It starts
    when its predecessors are complete (those that it only overwrites under: sent) and the one before it on its wire is
    sent. Inside a hop writes land only after the reads of that hop, as whoever executes it must see to.
    The schedule is small, and need not promise anything.
    """
    transfers = schedule.expand()
    order = dependencies(schedule, transfers)
    chunks = _chunks(schedule, transfers)
    waits = _waits(schedule, transfers, order, chunks)
    n_addresses = schedule.n_participants * schedule.n_addresses
    for seed in seeds:
        rng = np.random.default_rng(seed)
        content = rng.integers(1, PRIME, n_addresses).tolist()
        wanted = _in_program_order(schedule, content)
        got = _in_random_order(schedule, transfers, chunks, waits, content, rng.random(3 * len(transfers)))
        for address in np.flatnonzero(np.array(wanted) != np.array(got)):
            who, chunk = divmod(int(address), schedule.n_addresses)
            raise ScheduleError(
                f"{schedule.name}: address {chunk} of participant {who} depends on the order of transfers (seed {seed})"
            )


def _chunks(schedule: Schedule, transfers: Transfers) -> list[tuple[list[int], list[int]]]:
    """Addresses that each transfer reads and writes."""
    read, write, transfer = chunks_of(schedule, transfers)
    bounds = np.searchsorted(transfer, np.arange(len(transfers) + 1)).tolist()
    return [(read[a:b].tolist(), write[a:b].tolist()) for a, b in itertools.pairwise(bounds)]


def _waits(
    schedule: Schedule, transfers: Transfers, order: Dependencies, chunks: list[tuple[list[int], list[int]]]
) -> Rows:
    """For each event ``3 * transfer + START, SENT or COMPLETE`` the events that come before it."""
    from commsim.core.data_order.dependencies_kernel import WRITE_AFTER_READ

    before: Rows = [[] for _ in range(3 * len(transfers))]
    last_on_wire: dict[int, int] = {}
    wire = connections(schedule, transfers)[0].tolist()
    readers: dict[tuple[int, int], list[int]] = {}
    for i, t in enumerate(transfers):
        for k in range(order.first[i], order.first[i + 1]):
            until = SENT if order.kind[k] == WRITE_AFTER_READ else COMPLETE
            before[3 * i + START].append(3 * int(order.pred[k]) + until)
        if wire[i] in last_on_wire:
            before[3 * i + START].append(3 * last_on_wire[wire[i]] + SENT)
        last_on_wire[wire[i]] = i
        before[3 * i + SENT].append(3 * i + START)
        before[3 * i + COMPLETE].append(3 * i + SENT)
        for address in chunks[i][0]:
            readers.setdefault((int(t["hop"]), address), []).append(i)
    for i, t in enumerate(transfers):
        for address in chunks[i][1]:
            before[3 * i + COMPLETE] += [3 * r + SENT for r in readers.get((int(t["hop"]), address), ())]
    return before


def _in_program_order(schedule: Schedule, content: list[int]) -> list[int]:
    content = list(content)
    for hop in hops(schedule):
        read, write, transfer = chunks_of(schedule, hop)
        values = [content[a] for a in read]
        reduces = hop["op"][transfer] == REDUCE
        for address, value, adds in zip(write.tolist(), values, reduces, strict=True):
            content[address] = (content[address] + value) % PRIME if adds else value
    return content


def _in_random_order(
    schedule: Schedule,
    transfers: Transfers,
    chunks: list[tuple[list[int], list[int]]],
    before: Rows,
    content: list[int],
    priority: NDArray[np.float64],
) -> list[int]:
    """Play events one at a time, of those that may come next the one of least priority number."""
    content = list(content)
    carried: dict[int, list[int]] = {}
    for event in _topological(before, priority):
        i, what = divmod(event, 3)
        read, write = chunks[i]
        values = [content[a] for a in read]
        if what == START:
            carried[i] = values
        elif what == SENT and values != carried[i]:
            t = transfers[i]
            raise ScheduleError(
                f"{schedule.name}: chunk {t['src_chunk']} of participant {t['src']} is overwritten while it is being "
                f"sent in hop {t['hop']}"
            )
        elif what == COMPLETE:
            for address, value in zip(write, carried.pop(i), strict=True):
                content[address] = (content[address] + value) % PRIME if transfers[i]["op"] == REDUCE else value
    return content


def _topological(before: Rows, priority: NDArray[np.float64]) -> list[int]:
    after: Rows = [[] for _ in before]
    waiting = [len(events) for events in before]
    for event, events in enumerate(before):
        for e in events:
            after[e].append(event)
    ready = [(float(priority[e]), e) for e, n in enumerate(waiting) if n == 0]
    heapq.heapify(ready)
    out = []
    while ready:
        out.append(heapq.heappop(ready)[1])
        for e in after[out[-1]]:
            waiting[e] -= 1
            if waiting[e] == 0:
                heapq.heappush(ready, (float(priority[e]), e))
    return out
