"""Closed forms of slices and chunks: rings over machines beside the same rings played slice by slice, and PAT."""

import heapq
import itertools

import numpy as np
import pytest

from collectives.nccl.call import NcclCall
from collectives.nccl.rules import cut_call
from commsim.nccl.call_times import CallLinks, ring_time
from commsim.nccl.gpu_costs import Plugin, Primitives
from commsim.nccl.in_switch import pat_time

US, GB, MIB = 1e-6, 1e9, 2**20
SLICE, RATE, INSIDE, OUTSIDE = 3 * US, 38 * GB, 3 * US, 14 * US
# Slices of 2 steps that a connection's buffer of 8 steps holds, and slices of a chunk.
CREDITS, SLICES = 4, 2


def played(n_nodes, per_node, n_channels, chunk, nic, *, turns, loops):
    """Seconds of a ring: of each channel a rank does one slice after another, and a NIC sends one after another.

    A slice starts when the one before it is done, when what it passes on has come, and when the next rank has taken the
    slice four before it. The last rank of a machine gives it to the channel's NIC.
    """
    n, size = n_nodes * per_node, chunk / SLICES
    primitives = turns * (n - 1) + 1
    sends = primitives - 1
    busy_until = np.zeros((n_nodes, per_node))
    position, came, taken = (np.zeros((n, n_channels), np.int64) for _ in range(3))
    working = np.zeros((n, n_channels), np.bool_)
    events, order, now = [], itertools.count(), 0.0

    def start(rank, channel):
        k = position[rank, channel]
        if working[rank, channel] or k == primitives * SLICES * loops:
            return
        loop, within = divmod(k, primitives * SLICES)
        number = loop * sends * SLICES + within
        if within >= SLICES and came[rank, channel] <= number - SLICES:
            return
        if within < sends * SLICES and number - taken[(rank + 1) % n, channel] >= CREDITS:
            return
        working[rank, channel] = True
        heapq.heappush(events, (now + SLICE + size / RATE, next(order), rank, channel, True))

    for rank, channel in np.ndindex(n, n_channels):
        start(rank, channel)
    while events:
        now, _, rank, channel, is_done = heapq.heappop(events)
        if not is_done:
            came[rank, channel] += 1
            start(rank, channel)
            continue
        within = position[rank, channel] % (primitives * SLICES)
        position[rank, channel] += 1
        working[rank, channel] = False
        if within >= SLICES:
            taken[rank, channel] += 1
            start((rank - 1) % n, channel)
        if within < sends * SLICES:
            arrival = now + INSIDE
            if rank % per_node == per_node - 1:
                at = rank // per_node, channel % per_node
                busy_until[at] = max(now, busy_until[at]) + size / nic
                arrival = busy_until[at] + OUTSIDE
            heapq.heappush(events, (arrival, next(order), (rank + 1) % n, channel, False))
        start(rank, channel)
    return now


def predicted(n_nodes, per_node, n_channels, chunk, nic, *, turns, loops):
    operation = "all_reduce" if turns == 2 else "all_gather"
    primitives = Primitives(0, 0, 0, INSIDE, SLICE, 1e15, 1e15, RATE, 0, 0, 1e15, 0, 0, 0, 1.0)
    plugin = Plugin(0, 0, OUTSIDE, 1.0, post=0.0)
    ways = CallLinks(1e15, primitives, plugin, nic * per_node, n_nics=per_node, per_node=per_node)
    n = n_nodes * per_node
    return ring_time(
        ways, NcclCall(operation, n * n_channels * chunk * loops, n, n_nodes, "ring", "simple", n_channels)
    )


def test_rings_over_machines_take_what_their_slices_take():
    """Worst where the way round and the slowest link take equally long; the median is the closed form's error."""
    grid = itertools.product([(2, 4), (3, 4), (2, 8)], [MIB // 2, MIB, 2 * MIB], [12 * GB, 24 * GB, 48 * GB], [1, 2])
    errors = [
        predicted(*shape, 2 * shape[1], chunk, nic, turns=turns, loops=1)
        / played(*shape, 2 * shape[1], chunk, nic, turns=turns, loops=1) - 1
        for shape, chunk, nic, turns in grid
    ]  # fmt: skip
    assert np.median(np.abs(errors)) < 0.05
    assert np.abs(errors).max() < 0.2


def test_the_first_loop_of_a_ring_over_machines_takes_no_longer_than_later_ones():
    """All its slices are under way from the start, so that the slowest link is never without one."""
    one, four = (played(2, 8, 16, 2 * MIB, 48 * GB, turns=2, loops=loops) for loops in (1, 4))
    assert four == pytest.approx(4 * one, rel=0.03)
    one, four = (predicted(2, 8, 16, 2 * MIB, 48 * GB, turns=2, loops=loops) for loops in (1, 4))
    assert four == pytest.approx(4 * one, rel=1e-9)


def test_a_hop_of_pat_copies_a_chunk_in_and_the_last_one_out():
    primitives = Primitives(0, 0, 0, INSIDE, SLICE, 1e15, 1e15, RATE, 0, 0, 1e15, 0, 0, 0, 1.0)
    ways = CallLinks(1e15, primitives, Plugin(0, 0, OUTSIDE, 1.0, post=0.0), 48 * GB)
    for n, hops in ((2, 1), (8, 3)):
        call = NcclCall("all_gather", 16 * MIB, n, n, "pat", "simple", 4)
        part = cut_call(call)[0]
        assert part.n_loops > 1
        copy, on_wire = SLICE + part.chunk / RATE, call.size * (n - 1) / n / (48 * GB)
        assert pat_time(ways, call) == pytest.approx(hops * (OUTSIDE + copy) + copy + on_wire)
