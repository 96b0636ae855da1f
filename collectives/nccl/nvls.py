"""NVLink SHARP: the switch of a machine adds what its GPUs hold, and multicasts the sum.

A piece belongs to a head, one of the machine's GPUs. The head reads the sum of all GPUs' pieces through the switch, and
writes the result through it to all of them. With several machines the heads of one rail add up in a tree in
between, or in a network that reduces (SHARP).

References
----------
NCCL 2.30.7, ``src/transport/nvls.cc``, ``src/device/all_reduce.h`` (NVLS, and its trees) and ``src/graph/connect.cc``
(connectNvls: the two trees alternate by channel, as they do in all releases since 2.18).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from collectives.dense.double_tree import depths
from collectives.dense.multi_ring import leaving
from commsim.core.program import Program

from .pieces import Loop, Pieces
from .trees import Parents, levels, node_trees

Machines = Sequence[Sequence[int]]
Rows = tuple[NDArray[np.int64], ...]


def write_nvls(
    p: Program, machines: Machines, pieces: Pieces, n_channels: int, *, up: bool, down: bool,
    network: Sequence[Parents] = (), n_heads: int = 0,
) -> None:  # fmt: skip
    """Write all loops.

    Parameters
    ----------
    p : Program
        Program with a helper for each machine, its switch.
    machines : sequence of sequence of int
        Ranks of each, all as many.
    pieces : Pieces
        Pieces: for each head one behind the other in an all-reduce; else a place for each rank.
    n_channels : int
        Number of channels of the communicator; channels of even and of odd number take the first and the second tree.
    up, down : bool
        Whether the sum goes to the heads, and from the heads to all.
    network : sequence of int64[n_participants]
        For each head of a machine, the parents in the tree of switches of a network that add what the heads there
        have, -2 for those outside; empty: heads form a tree.
    n_heads : int
        GPUs of a machine that head a part of an all-reduce; 0 for all.
    """
    members = np.array([list(machine) for machine in machines])
    both = up and down
    owners = members[:, head_places(members.shape[1], n_heads or members.shape[1])] if both else members
    trees = node_trees(len(machines))
    for loops, times, step in pieces.runs:
        first, head, switch = _heads(owners, loops, pieces, p.n_ranks, by_rank=not both)
        channel = np.repeat([loop.channel for loop in loops], owners.size)
        count = np.repeat([loop.count for loop in loops], owners.size)
        # Every GPU of a head's machine, once for each of the head's pieces.
        machine = np.tile(np.repeat(np.arange(len(members)), owners.shape[1]), len(loops))
        everyone = members[machine].ravel()
        wide = {"count": np.repeat(count, members.shape[1]), "channel": np.repeat(channel, members.shape[1])}
        chunk, at = (np.repeat(column, members.shape[1]) for column in (first, switch))
        with p.repeat(times, chunk=step):
            if up:
                p.reduce(chunk, src=everyone, dst=at, **wide)
                p.copy(first, src=switch, dst=switch, count=count, channel=channel)  # complete, in one message
                p.copy(first, src=switch, dst=head, count=count, channel=channel)
            if network:
                _in_network(p, loops, network)
            elif both and len(machines) > 1:
                _between(p, owners, loops, trees, first, count)
            if down:
                # On connections of their own: NCCL has other warps for it, so that nothing to be added waits behind.
                p.copy(first, src=head, dst=switch, count=count, channel=channel + n_channels)
                p.copy(chunk, src=at, dst=everyone, count=wide["count"], channel=wide["channel"] + n_channels)


def head_places(n_gpus: int, n_heads: int) -> list[int]:
    """Return the places in a machine of the GPUs that head a part: the first of each NIC, as channels leave by them."""
    return [leaving(n_gpus, head, n_heads) for head in range(n_heads)]


def _heads(members: NDArray[np.int64], loops: Sequence[Loop], pieces: Pieces, n_ranks: int, *, by_rank: bool) -> Rows:
    """First chunk, head and switch of every piece of a loop: by channel, machine, and place in the machine."""
    place = np.arange(members.shape[1])
    first = [
        np.broadcast_to(loop.first + (members * pieces.width if by_rank else place * loop.count), members.shape).ravel()
        for loop in loops
    ]
    switch = n_ranks + np.repeat(np.arange(len(members)), members.shape[1])
    return np.concatenate(first), np.tile(members.ravel(), len(loops)), np.tile(switch, len(loops))


def _in_network(p: Program, loops: Sequence[Loop], network: Sequence[Parents]) -> None:
    """Write the trees of switches above the heads of each rail: up and down."""
    hops = levels([
        (parent, loop.first + place * loop.count, loop.count, loop.channel)
        for loop in loops
        for place, parent in enumerate(network)
    ])  # fmt: skip
    for child, parent, first, count, channel in reversed(hops):
        p.reduce(first, src=child, dst=parent, count=count, channel=channel)
    for child, parent, first, count, channel in hops:
        p.copy(first, src=parent, dst=child, count=count, channel=channel)


def _between(
    p: Program, members: NDArray[np.int64], loops: Sequence[Loop], trees: Rows, first: NDArray[np.int64],
    count: NDArray[np.int64],
) -> None:  # fmt: skip
    """Write the trees between the heads of each rail, which alternate by channel: up and down."""
    channel = np.array([loop.channel for loop in loops])
    parent = np.array([trees[c % 2] for c in channel])  # [loop, machine]
    depth = np.array([depths(row) for row in parent])
    shape = (len(loops), *members.shape)
    chunks, counts = first.reshape(shape), count.reshape(shape)
    hops = []
    for level in range(1, int(depth.max()) + 1):
        loop, node = np.nonzero(depth == level)
        below, above = members[node], members[parent[loop, node]]
        hops.append((chunks[loop, node], below, above, counts[loop, node], np.repeat(channel[loop], members.shape[1])))
    for chunk, below, above, n, number in reversed(hops):
        p.reduce(chunk.ravel(), src=below.ravel(), dst=above.ravel(), count=n.ravel(), channel=number)
    for chunk, below, above, n, number in hops:
        p.copy(chunk.ravel(), src=above.ravel(), dst=below.ravel(), count=n.ravel(), channel=number)
