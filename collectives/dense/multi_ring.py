"""Several rings at once, on channels of their own, each over an equal part of the data."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from collectives import collective
from commsim.core.cost import LogGP
from commsim.core.errors import InputError
from commsim.core.program import Program
from commsim.core.schedule import Schedule

from .hierarchical import Groups
from .ring import ring_cost

MAX_CHANNELS, USUAL = 64, 2


def multi_ring_cost(
    n_ranks: int,
    size: float,
    link: LogGP,
    n_channels: int | None = None,
    groups: Groups | None = None,  # noqa: ARG001 - on a star all orders are alike
) -> float:
    """Cost of one ring, in which a message has the overhead of one for each channel."""
    return ring_cost(n_ranks, size, LogGP(link.L, (n_channels or USUAL) * link.o, link.B, link.gamma))


@collective("all_reduce", needs=("groups", "rails"), cost=multi_ring_cost)
def multi_ring_all_reduce(n_ranks: int, n_channels: int | None = None, groups: Groups | None = None) -> Schedule:
    """All-reduce over C rings at once: 2(p-1)(C o + L + S/(pB)) + (p-1) gamma S/p seconds.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.
    n_channels : int, optional
        C, 1 to 64. By default as many as machines have rails (NICs), and 2 where ranks are not in several machines.
    groups : tuple of tuple of int, optional
        Ranks of each machine, in the order of their rails. By default all ranks are in one.

    Returns
    -------
    Schedule
        Ring c leaves every machine through one rail and enters the next one on the same rail: it runs through the
        machines with even numbers up to one member, and backwards from it through those with odd numbers. That is
        member c, or, where there are fewer rings than members, which then share NICs, member c floor(G / C) of G. So
        C rings use C rails both ways. With an odd number of machines each ring changes rails once.

    Raises
    ------
    InputError
        If `groups` is not a partition of the ranks, or there are too many channels or none.

    References
    ----------
    Jeaugey, "Massively scale your deep learning training with NCCL 2.4", 2019, and NCCL's ring search
    (src/graph/search.cc): one ring per rail, each entering and leaving a node through one network interface.
    """
    n_channels = USUAL if n_channels is None else n_channels
    if not 1 <= n_channels <= MAX_CHANNELS:
        raise InputError(f"multi_ring_all_reduce needs 1 to {MAX_CHANNELS} channels, got n_channels={n_channels}")
    groups = (tuple(range(n_ranks)),) if groups is None else tuple(tuple(group) for group in groups)
    if sorted(itertools.chain.from_iterable(groups)) != list(range(n_ranks)):
        raise InputError(f"multi_ring_all_reduce: groups must hold each rank 0..{n_ranks - 1} exactly once")
    rings = np.array([ring_order(groups, c, n_channels) for c in range(n_channels)])
    # Block b of ring c is chunk b * C + c, so that a ring's blocks wrap where the chunks do.
    block, channel = np.arange(n_ranks), np.arange(n_channels)[:, np.newaxis]
    following = np.roll(rings, -1, axis=1)
    p = Program(n_ranks, n_chunks=n_ranks * n_channels)
    with p.repeat(n_ranks - 1, chunk=-n_channels):
        p.reduce(block * n_channels + channel, src=rings, dst=following, channel=channel)
    with p.repeat(n_ranks - 1, chunk=-n_channels):
        p.copy((block + 1) % n_ranks * n_channels + channel, src=rings, dst=following, channel=channel)
    return p.build()


def ring_order(groups: Groups, channel: int, n_rails: int = 0) -> NDArray[np.int64]:
    """Ranks in the order of one ring: up to one member of even machines, down from it in odd ones; see `leaving`.

    Odd machines are left by the member behind it. Behind the last rail that is the first one again: members that no
    rail has a share of are passed, and leave nothing.
    """
    order: list[int] = []
    for machine, group in enumerate(groups):
        if not group:
            continue
        behind = leaving(len(group), channel, n_rails) + 1
        rails = min(n_rails or len(group), len(group))
        forwards = group[behind:] + group[:behind]
        if behind == len(group) // rails * rails:
            forwards = group[: behind - 1] + group[behind:] + group[behind - 1 : behind]
        order += reversed(forwards) if machine % 2 else forwards
    return np.array(order)


def leaving(n_members: int, channel: int, n_rails: int = 0) -> int:
    """Place of the member of a machine by which a channel leaves it.

    That is `channel`; with fewer rails than members, whose neighbours share one, channels take the first member of
    each rail in turn, then the second ones. With more rails than members, channels take the rails of each member one
    after the other. 0 rails are as many as members.
    """
    if n_rails > n_members:
        return channel % n_rails * n_members // n_rails
    n_rails = n_rails or n_members
    share = n_members // n_rails
    turn, rail = divmod(channel, n_rails)
    return (rail * share + turn % share) % n_members
