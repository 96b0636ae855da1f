"""NCCL's all-to-all and send-receive: messages between pairs, in parts on channels, some peers at once."""

from __future__ import annotations

import numpy as np

from collectives import collective
from commsim.core.cost import LogGP
from commsim.core.program import Program
from commsim.core.schedule import OUTPUT, Schedule

from .call import NEWEST, release_of
from .launch import SIZE, VERSION, Machines
from .point_to_point import BATCH, PeerMessage, message, peer_channels

# Channels of a rank for messages, unless the network says how many.
CHANNELS = 16
# Rate of a NIC, bytes/s, by which channels for a peer on another machine are counted: 400 Gb/s.
NIC = 50e9


def cut_message(
    n_ranks: int, channels: int | None, n_bytes: int, machines: Machines | None, buffer: int = 0,
    version: tuple[int, int] = NEWEST, net_chunk: int = 0,
) -> tuple[PeerMessage, int]:  # fmt: skip
    """Return how a message of so many bytes is sent, and how many peers are served at once."""
    many, n = machines is not None and len(machines) > 1, CHANNELS if channels is None else channels
    least, most = peer_channels(n, n_ranks, NIC if many else None, version)
    sent = message(
        n_bytes, least, most, network=many, many_nodes=many, buffer=buffer, version=version, net_chunk=net_chunk
    )  # fmt: skip
    return sent, max(1, BATCH * n // sent.n_channels)


def all_to_all_cost(
    n_ranks: int, size: float, link: LogGP, channels: int | None = None, version: str = VERSION,
    n_bytes: int = SIZE, machines: Machines | None = None, buffer: int = 0, net_chunk: int = 0,
) -> float:  # fmt: skip
    """Cost of batches one after the other, each of some peers that are served together."""
    sent, at_once = cut_message(n_ranks, channels, n_bytes // n_ranks, machines, buffer, release_of(version), net_chunk)
    batches = [min(at_once, n_ranks - first) for first in range(0, n_ranks, at_once)]
    part = link.o + size / (n_ranks * sent.n_channels * link.B)
    peers = [n - (i == 0) for i, n in enumerate(batches)]  # the first one has the rank itself
    return sum(n * sent.n_channels * part + link.L for n in peers if n)


@collective("all_to_all", cost=all_to_all_cost, needs=("nccl",))
def nccl_all_to_all(
    n_ranks: int, channels: int | None = None, version: str = VERSION, n_bytes: int = SIZE,
    machines: Machines | None = None, buffer: int = 0, net_chunk: int = 0,
) -> Schedule:  # fmt: skip
    """All-to-all of NCCL, C parts of each message, all peers at once: (p-1)(C o + S/(pB)) + L seconds.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.
    channels : int, optional
        Channels of a rank. Default: what NCCL's search finds on the network, else 16.
    version : str
        Version of NCCL, which decides channels of a peer and how long LL is taken.
    n_bytes : int
        Size of the array; ``commsim run`` takes each size that it runs.
    machines : tuple of tuple of int, optional
        Ranks of each machine; ``commsim run`` takes them from the network. Default: all in one.
    buffer : int, bytes
        Buffer of a connection with Simple (``NCCL_BUFFSIZE``), which holds eight chunks; 0 for NCCL's own.
    net_chunk : int, bytes
        Chunk over several machines (``NCCL_P2P_NET_CHUNKSIZE``); 0 for NCCL's own, 128 KiB.

    Returns
    -------
    Schedule
        In round d rank r sends to r + d. Eight peers are served on a channel at once; then the next ones. Nothing
        waits for a chunk of a part, so a part is one message.

    References
    ----------
    NCCL 2.30.7, ``src/enqueue.cc``; the rules are in :mod:`collectives.nccl.point_to_point`.
    """
    return exchange_all(n_ranks, channels, n_bytes, machines, buffer, version, net_chunk)


def exchange_all(
    n_ranks: int, channels: int | None, n_bytes: int, machines: Machines | None, buffer: int = 0,
    version: str = VERSION, net_chunk: int = 0,
) -> Schedule:  # fmt: skip
    """Build an all-to-all; parameters are those of :func:`nccl_all_to_all`."""
    sent, at_once = cut_message(n_ranks, channels, n_bytes // n_ranks, machines, buffer, release_of(version), net_chunk)
    parts = sent.n_channels
    p = Program(n_ranks, n_chunks=n_ranks * parts)
    rank, part = (axis.ravel() for axis in np.meshgrid(np.arange(n_ranks), np.arange(parts), indexing="ij"))
    for first in range(0, n_ranks, at_once):
        with p.repeat(min(at_once, n_ranks - first), dst=1, src_chunk=parts, first=first):
            chunk = rank * parts + part
            p.copy(src=rank, dst=rank, src_chunk=chunk, dst_chunk=chunk, channel=part, dst_buffer=OUTPUT)
        if first + at_once < n_ranks:
            p.fence()
    return p.build()


def send_recv_cost(
    n_ranks: int, size: float, link: LogGP, channels: int | None = None, version: str = VERSION,
    n_bytes: int = SIZE, machines: Machines | None = None, buffer: int = 0, net_chunk: int = 0,
) -> float:  # fmt: skip
    """Cost of the parts of one message, side by side."""
    parts = cut_message(n_ranks, channels, n_bytes, machines, buffer, release_of(version), net_chunk)[0].n_channels
    return parts * link.o + size / link.B + link.L if n_ranks > 1 else 0.0


@collective("send_recv", cost=send_recv_cost, needs=("nccl",))
def nccl_send_recv(
    n_ranks: int, channels: int | None = None, version: str = VERSION, n_bytes: int = SIZE,
    machines: Machines | None = None, buffer: int = 0, net_chunk: int = 0,
) -> Schedule:  # fmt: skip
    """Send to the next rank and receive from the previous one by NCCL, in C parts: C o + L + S/B seconds.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.
    channels : int, optional
        Channels of a rank. Default: what NCCL's search finds on the network, else 16.
    version : str
        Version of NCCL, which decides channels of a peer and how long LL is taken.
    n_bytes : int
        Size of the message; ``commsim run`` takes each size that it runs.
    machines : tuple of tuple of int, optional
        Ranks of each machine; ``commsim run`` takes them from the network. Default: all in one.
    buffer : int, bytes
        Buffer of a connection with Simple (``NCCL_BUFFSIZE``), which holds eight chunks; 0 for NCCL's own.
    net_chunk : int, bytes
        Chunk over several machines (``NCCL_P2P_NET_CHUNKSIZE``); 0 for NCCL's own, 128 KiB.

    Returns
    -------
    Schedule
        One message from every rank, in parts on channels of their own.

    References
    ----------
    NCCL 2.30.7, ``src/enqueue.cc``; the rules are in :mod:`collectives.nccl.point_to_point`.
    """
    return send_next(n_ranks, channels, n_bytes, machines, buffer, version, net_chunk)


def send_next(
    n_ranks: int, channels: int | None, n_bytes: int, machines: Machines | None, buffer: int = 0,
    version: str = VERSION, net_chunk: int = 0,
) -> Schedule:  # fmt: skip
    """Build a send-receive; parameters are those of :func:`nccl_send_recv`."""
    parts = cut_message(n_ranks, channels, n_bytes, machines, buffer, release_of(version), net_chunk)[0].n_channels
    p = Program(n_ranks, n_chunks=parts)
    rank, part = (axis.ravel() for axis in np.meshgrid(np.arange(n_ranks), np.arange(parts), indexing="ij"))
    p.copy(part, src=rank, dst=(rank + 1) % n_ranks, channel=part, dst_buffer=OUTPUT)
    return p.build()
