"""Patterns of traffic between hosts: who sends to whom, and when."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.engine.packet.transports.spraying import Messages

Numbers = NDArray[np.int32]


def permutation(n_hosts: int, nbytes: int, *, seed: int = 1) -> Messages:
    """Let every host send to one other and get from one other, at random.

    Parameters
    ----------
    n_hosts : int
        Number of hosts, at least 2.
    nbytes : int, bytes
        Size of each message.
    seed : int
        Seed of the draw.

    Raises
    ------
    InputError
        If there are fewer than 2 hosts.
    """
    if n_hosts < 2:
        raise InputError(f"a permutation needs at least 2 hosts, got {n_hosts}")
    order = np.random.default_rng(seed).permutation(n_hosts).astype(np.int32)
    # along one random circle, so nobody sends to itself
    return _messages(order, np.roll(order, 1), nbytes)


def incast(n_hosts: int, nbytes: int, *, senders: int, spread: float = 0.0, seed: int = 1) -> Messages:
    """Let some hosts send to one, all drawn at random, beginning within a time.

    Parameters
    ----------
    n_hosts : int
        Number of hosts of the network.
    nbytes : int, bytes
        Size of each message.
    senders : int
        How many send.
    spread : float, s
        They begin at random within this time.
    seed : int
        Seed of the draw.

    Raises
    ------
    InputError
        If there are not as many senders beside the receiver.
    """
    if not 1 <= senders < n_hosts:
        raise InputError(f"an incast needs 1 to {n_hosts - 1} senders among {n_hosts} hosts, got {senders}")
    generator = np.random.default_rng(seed)
    hosts = generator.permutation(n_hosts)[: senders + 1].astype(np.int32)
    start = generator.random(senders) * spread
    return _messages(hosts[1:], np.repeat(hosts[:1], senders), nbytes, start)


def outcast(n_hosts: int, nbytes: int, *, receivers: int, seed: int = 1) -> Messages:
    """Let one host send to some, all drawn at random.

    Parameters
    ----------
    n_hosts : int
        Number of hosts of the network.
    nbytes : int, bytes
        Size of each message.
    receivers : int
        How many receive.
    seed : int
        Seed of the draw.
    """
    there = incast(n_hosts, nbytes, senders=receivers, seed=seed)
    return _messages(there.dst, there.src, nbytes)


def all_to_all(n_hosts: int, nbytes: int) -> Messages:
    """Let every host send to every other at once; `nbytes` to each."""
    src, dst = np.divmod(np.arange(n_hosts * n_hosts, dtype=np.int32), np.int32(n_hosts))
    # nobody begins with the same receiver as another
    dst = (src + dst) % n_hosts
    return _messages(src[src != dst], dst[src != dst], nbytes)


def _messages(src: Numbers, dst: Numbers, nbytes: int, start: NDArray[np.float64] | float = 0.0) -> Messages:
    size = np.full(len(src), nbytes, np.int64)
    return Messages(src.astype(np.int32), dst.astype(np.int32), size, np.broadcast_to(start, len(src)).astype(float))


PATTERNS: dict[str, Callable[..., Messages]] = {
    "permutation": permutation, "incast": incast, "outcast": outcast, "all_to_all": all_to_all,
}  # fmt: skip
