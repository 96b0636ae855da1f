"""Patterns of traffic between hosts: who sends to whom, and when; by name, or read from a file."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError, unknown_name
from commsim.core.files.csv_rows import read_rows
from commsim.core.spec import read_arguments, split_spec
from commsim.core.units import Seconds

Numbers = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class HostMessages:
    """What hosts send to each other.

    Parameters
    ----------
    src, dst : int32[n]
        Numbers of hosts, from 0.
    nbytes : int64[n], bytes
        Size of each message, at least 1.
    start : float64[n], s
        Time at which each sender begins.
    after : int64[n], optional
        Message that must be complete before each begins, -1 for none.

    Raises
    ------
    InputError
        If one sends to itself, has no bytes, or begins before 0.
    """

    src: Numbers
    dst: Numbers
    nbytes: NDArray[np.int64]
    start: NDArray[np.float64]
    after: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        if (self.src == self.dst).any():
            raise InputError(f"host {self.src[np.argmax(self.src == self.dst)]} sends a message to itself")
        if len(self.nbytes) and self.nbytes.min() < 1:
            raise InputError(f"messages have at least 1 byte, got {self.nbytes.min()}")
        if len(self.start) and not (self.start.min() >= 0 and self.start.max() < 1e6):
            raise InputError("messages start at 0 s or later, and before 1e6 s")


def permutation(n_hosts: int, nbytes: int, *, seed: int = 1) -> HostMessages:
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
    _require_two(n_hosts)
    order = np.random.default_rng(seed).permutation(n_hosts).astype(np.int32)
    # along one random circle, so nobody sends to itself
    return _messages(order, np.roll(order, 1), nbytes)


def incast(n_hosts: int, nbytes: int, *, senders: int = 8, spread: Seconds = 0.0, seed: int = 1) -> HostMessages:
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


def outcast(n_hosts: int, nbytes: int, *, receivers: int = 8, seed: int = 1) -> HostMessages:
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


def all_to_all(n_hosts: int, nbytes: int, *, window: int | None = None) -> HostMessages:
    """Let every host send to every other, `nbytes` to each.

    Parameters
    ----------
    n_hosts : int
        Number of hosts.
    nbytes : int, bytes
        Size of each message.
    window : int, optional
        Messages of a host under way at a time; by default all.

    Raises
    ------
    InputError
        If there are fewer than 2 hosts, or a window is less than 1.
    """
    _require_two(n_hosts)
    if window is not None and window < 1:
        raise InputError(f"all_to_all: window must be 1 or more, got {window}")
    src, dst = np.divmod(np.arange(n_hosts * n_hosts, dtype=np.int32), np.int32(n_hosts))
    # nobody begins with the same receiver as another
    dst = (src + dst) % n_hosts
    sent = _messages(src[src != dst], dst[src != dst], nbytes)
    if window is None:
        return sent
    number = np.arange(n_hosts * (n_hosts - 1))
    return dataclasses.replace(sent, after=np.where(number % (n_hosts - 1) < window, -1, number - window))


def random(n_hosts: int, nbytes: int, *, seed: int = 1) -> HostMessages:
    """Let every host send to another one that is drawn at random, so that some get from several.

    Parameters
    ----------
    n_hosts, nbytes, seed
        Same as in :func:`permutation`.

    Raises
    ------
    InputError
        If there are fewer than 2 hosts.
    """
    _require_two(n_hosts)
    src = np.arange(n_hosts, dtype=np.int32)
    return _messages(src, (src + np.random.default_rng(seed).integers(1, n_hosts, n_hosts)) % n_hosts, nbytes)


def read_messages(path: str | Path, n_hosts: int) -> HostMessages:
    """Read messages from a CSV file, such as ``commsim traffic --csv`` writes.

    Parameters
    ----------
    path : path
        Columns ``src`` and ``dst``, numbers of hosts from 0; ``size_B``; and, if there is one, ``start_s``.
    n_hosts : int
        Number of hosts of the network.

    Raises
    ------
    InputError
        If the file cannot be read, or a message is impossible.
    """
    rows = []
    for row in read_rows(path, ("src", "dst", "size_B")):
        ends = row.whole("src"), row.whole("dst")
        for column, end in zip(("src", "dst"), ends, strict=True):
            if not 0 <= end < n_hosts:
                row.refuse(column, f"one of the hosts 0..{n_hosts - 1}", end)
        if ends[0] == ends[1]:
            row.refuse("dst", "another host than src", ends[1])
        if not 1 <= (size := row.whole("size_B")) < 2**53:
            row.refuse("size_B", "at least 1 byte", size)
        rows.append((*ends, size, row.number("start_s", 0.0)))
    if not rows:
        raise InputError(f"{path}: has no messages")
    src, dst, nbytes, start = (np.array(column) for column in zip(*rows, strict=True))
    return HostMessages(src.astype(np.int32), dst.astype(np.int32), nbytes.astype(np.int64), start.astype(float))


def is_file(text: str) -> bool:
    """Whether a pattern is a file, whose messages have sizes of their own."""
    return text.endswith(".csv")


def messages_of(text: str, n_hosts: int, nbytes: int, seed: int) -> HostMessages:
    """Return the messages of a pattern.

    Parameters
    ----------
    text : str
        ``name:key=value,...`` of one of ``PATTERNS``, or a file as :func:`read_messages` takes it.
    n_hosts : int
        Number of hosts of the network.
    nbytes : int, bytes
        Size of each message; without effect for a file.
    seed : int
        Seed of the draw.

    Raises
    ------
    InputError
        If the pattern is unknown, or has no such parameter.
    """
    if is_file(text):
        return read_messages(text, n_hosts)
    name, raw = split_spec(text)
    if name not in PATTERNS:
        raise unknown_name("pattern", name, PATTERNS, more="FILE.csv")
    build = PATTERNS[name]
    seeds = {} if build is all_to_all else {"seed": seed}
    return build(n_hosts, nbytes, **seeds, **read_arguments(build, raw, ("n_hosts", "nbytes", "seed")))


def _require_two(n_hosts: int) -> None:
    if n_hosts < 2:
        raise InputError(f"a pattern needs at least 2 hosts, got {n_hosts}")


def _messages(src: Numbers, dst: Numbers, nbytes: int, start: NDArray[np.float64] | float = 0.0) -> HostMessages:
    size = np.full(len(src), nbytes, np.int64)
    return HostMessages(
        src.astype(np.int32), dst.astype(np.int32), size, np.broadcast_to(start, len(src)).astype(float)
    )


PATTERNS: dict[str, Callable[..., HostMessages]] = {
    "permutation": permutation, "incast": incast, "outcast": outcast, "all_to_all": all_to_all,
    "random": random,
}  # fmt: skip
