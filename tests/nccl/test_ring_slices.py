"""Closed forms of slices and chunks: rings over machines beside the same rings played slice by slice, and PAT."""

import heapq
import itertools

import numpy as np
import pytest

from collectives.nccl.call import NcclCall
from collectives.nccl.rules import cut_call
from commsim.nccl.call_times import ADDS, ADDS_AND_COPIES, COPIES, RECEIVES, SENDS, CallLinks, ring_time
from commsim.nccl.gpu_costs import Plugin, Primitives
from commsim.nccl.in_switch import pat_time

US, GB, MIB = 1e-6, 1e9, 2**20
SLICE, RATE, INSIDE, OUTSIDE = 3 * US, 38 * GB, 3 * US, 14 * US
# Slices of 2 steps that a connection's buffer of 8 steps holds, and slices of a chunk.
CREDITS, SLICES = 4, 2
OPERATIONS = ("all_gather", "reduce_scatter", "all_reduce")


def works_of(operation, n):
    """Work of a rank's primitives in a loop."""
    copies, adds = [COPIES] * (n - 2), [ADDS] * (n - 2)
    return {
        "all_gather": [COPIES, *copies, RECEIVES],
        "reduce_scatter": [SENDS, *adds, ADDS],
        "all_reduce": [SENDS, *adds, ADDS_AND_COPIES, *copies, RECEIVES],
    }[operation]


class Nic:
    """Sends one slice of each of its channels at once, a packet of each in turn; a channel's slices in order."""

    def __init__(self, rate):
        self.rate, self.queues, self.left, self.at = rate, {}, {}, 0.0

    def until(self, now):
        """Send until a time; return which channels have finished a slice."""
        sent = (now - self.at) * self.rate / max(1, len(self.left))
        self.left, self.at = {channel: size - sent for channel, size in self.left.items()}, now
        return [channel for channel, size in self.left.items() if size < 1]

    def next(self, channel, size):
        """Begin with a channel's next slice, if it has one."""
        self.left.pop(channel, None)
        if self.queues.get(channel):
            self.queues[channel] -= 1
            self.left[channel] = size

    def done(self):
        """Return when the first slice will be sent."""
        return self.at + min(self.left.values()) * len(self.left) / self.rate if self.left else float("inf")


def played(n_nodes, per_node, n_channels, chunk, nic, *, operation, loops):
    """Seconds of a ring: of each channel a rank does one slice after another, and a NIC serves its channels in turn.

    A slice starts when the one before it is done, when what it passes on has come, and when the next rank has taken the
    slice four before it. The last rank of a machine gives it to the channel's NIC.
    """
    n, size = n_nodes * per_node, chunk / SLICES
    works = works_of(operation, n)
    primitives, sends = len(works), len(works) - 1
    nics = [[Nic(nic) for _ in range(per_node)] for _ in range(n_nodes)]
    position, came, taken = (np.zeros((n, n_channels), np.int64) for _ in range(3))
    working = np.zeros((n, n_channels), np.bool_)
    events, order, now = [], itertools.count(), 0.0

    def at(time, what, *where):
        heapq.heappush(events, (time, next(order), what, *where))

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
        at(now + SLICE + works[within // SLICES] * size / RATE, "done", rank, channel)

    for rank, channel in np.ndindex(n, n_channels):
        start(rank, channel)
    while events:
        now, _, what, rank, channel = heapq.heappop(events)
        if what == "came":
            came[rank, channel] += 1
            start(rank, channel)
            continue
        machine = rank // per_node
        if what == "sent":
            card = nics[machine][channel]
            if abs(card.done() - now) < 1e-12:
                for one in card.until(now):
                    at(now + OUTSIDE, "came", (rank + 1) % n, one)
                    card.next(one, size)
                at(card.done(), "sent", rank, channel) if card.left else None
            continue
        within = position[rank, channel] % (primitives * SLICES)
        position[rank, channel] += 1
        working[rank, channel] = False
        if within >= SLICES:
            taken[rank, channel] += 1
            start((rank - 1) % n, channel)
        if within < sends * SLICES and rank % per_node == per_node - 1:
            card = nics[machine][channel % per_node]
            card.until(now)
            card.queues[channel] = card.queues.get(channel, 0) + 1
            if channel not in card.left:
                card.next(channel, size)
            at(card.done(), "sent", rank, channel % per_node)
        elif within < sends * SLICES:
            at(now + INSIDE, "came", (rank + 1) % n, channel)
        start(rank, channel)
    return now


def predicted(n_nodes, per_node, n_channels, chunk, nic, *, operation, loops):
    primitives = Primitives(0, 0, 0, INSIDE, SLICE, 1e15, 1e15, RATE, 0, 0, 1e15, 0, 0, 0, 1.0)
    plugin = Plugin(0, 0, OUTSIDE, 1.0, post=0.0)
    ways = CallLinks(1e15, primitives, plugin, nic * per_node, n_nics=per_node, per_node=per_node)
    n = n_nodes * per_node
    return ring_time(
        ways, NcclCall(operation, n * n_channels * chunk * loops, n, n_nodes, "ring", "simple", n_channels)
    )


def errors_of(shapes, n_channels, loops):
    grid = itertools.product(shapes, [MIB // 2, 2 * MIB], [12 * GB, 24 * GB, 48 * GB], OPERATIONS)
    return np.array([
        predicted(*shape, n_channels(shape), chunk, nic, operation=operation, loops=loops)
        / played(*shape, n_channels(shape), chunk, nic, operation=operation, loops=loops) - 1
        for shape, chunk, nic, operation in grid
    ])  # fmt: skip


def test_rings_over_machines_take_what_their_slices_take():
    """Worst where the way round and the slowest link take equally long; the median is the closed form's error."""
    errors = np.abs(errors_of([(2, 4), (2, 8)], lambda shape: 2 * shape[1], 1))
    assert np.median(errors) < 0.03
    assert errors.max() < 0.27


def test_rings_of_one_gpu_a_machine_begin_each_loop_together():
    """A NIC gives its channels equal shares, so that they end a loop together, and nothing is sent until the next."""
    errors = np.abs(errors_of([(2, 1), (4, 1)], lambda _: 4, 3))
    assert np.median(errors) < 0.03
    assert errors.max() < 0.17


def test_an_all_gather_takes_longer_than_a_reduce_scatter_where_its_copies_are_the_limit():
    """To pass a copy on and keep it writes twice, which channels of 12 GB/s do not notice."""
    for nic, at_least, at_most in ((24 * GB, 0.99, 1.03), (96 * GB, 1.2, 1.4)):
        for how in (played, predicted):
            gather, scatter = (
                how(2, 8, 16, 2 * MIB, nic, operation=operation, loops=1)
                for operation in ("all_gather", "reduce_scatter")
            )
            assert at_least < gather / scatter < at_most


def test_the_first_loop_of_a_ring_over_machines_takes_no_longer_than_later_ones():
    """All its slices are under way from the start, so that the slowest link is never without one."""
    shape = (2, 8, 16, 2 * MIB, 48 * GB)
    for how in (played, predicted):
        one, four = (how(*shape, operation="all_reduce", loops=loops) for loops in (1, 4))
        assert four == pytest.approx(4 * one, rel=0.03)


def test_a_hop_of_pat_copies_a_chunk_in_and_the_last_one_out():
    primitives = Primitives(0, 0, 0, INSIDE, SLICE, 1e15, 1e15, RATE, 0, 0, 1e15, 0, 0, 0, 1.0)
    ways = CallLinks(1e15, primitives, Plugin(0, 0, OUTSIDE, 1.0, post=0.0), 48 * GB)
    for n, hops in ((2, 1), (8, 3)):
        call = NcclCall("all_gather", 16 * MIB, n, n, "pat", "simple", 4)
        part = cut_call(call)[0]
        assert part.n_loops > 1
        copy, last = (SLICE + work * part.chunk / RATE for work in (COPIES, RECEIVES))
        on_wire = call.size * (n - 1) / n / (48 * GB)
        assert pat_time(ways, call) == pytest.approx(hops * (OUTSIDE + copy) + last + on_wire)
