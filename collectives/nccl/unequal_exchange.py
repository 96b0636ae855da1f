"""NCCL's all-to-all of unequal blocks: what a framework makes of it, a group of sends and receives."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from collectives import collective
from collectives.dense.unequal_blocks import Counts
from commsim.core.cost import LogGP
from commsim.core.operations import operation
from commsim.core.program import Program
from commsim.core.schedule import OUTPUT, Schedule

from .call import release_of
from .exchanges import cut_message
from .launch import SIZE, VERSION, Machines

Numbers = NDArray[np.int64]


def _cut_messages(
    n_ranks: int, counts: Counts, channels: int | None, n_bytes: int, machines: Machines | None, version: str
) -> tuple[Numbers, Numbers, int]:
    """Return counts, parts of each message, int64[n_ranks, n_ranks], and how many peers are served at once."""
    chunks = np.reshape(np.array(counts, np.int64), (n_ranks, n_ranks))
    unit = n_bytes / operation("all_to_all_v").least_chunks(n_ranks, counts)
    sizes, where = np.unique(chunks, return_inverse=True)
    release = release_of(version)
    sent = [cut_message(n_ranks, channels, int(size * unit), machines, version=release) for size in sizes.tolist()]
    parts = np.array([found.n_channels for found, _ in sent])[where].reshape(chunks.shape)
    return chunks, np.where(chunks > 0, parts, 0), min(at_once for _, at_once in sent)


def all_to_all_v_bounds(
    n_ranks: int, size: float, link: LogGP, counts: Counts | None = None, channels: int | None = None,
    version: str = VERSION, n_bytes: int = SIZE, machines: Machines | None = None,
) -> tuple[float, float]:  # fmt: skip
    """Bounds on the time on an idle star: the busiest port; and batch by batch, two ports one after the other.

    Returns
    -------
    lower, upper : float, s
    """
    counts = counts or (1,) * n_ranks**2
    chunks, parts, at_once = _cut_messages(n_ranks, counts, channels, n_bytes, machines, version)
    chunk = size / operation("all_to_all_v").least_chunks(n_ranks, counts)
    rank = np.arange(n_ranks)
    shift = (rank - rank[:, np.newaxis]) % n_ranks
    lower = upper = 0.0
    all_out, all_in = np.zeros(n_ranks), np.zeros(n_ranks)
    for first in range(0, n_ranks, at_once):
        here = (shift >= max(first, 1)) & (shift < first + at_once) & (chunks > 0)
        if here.any():
            sent = np.where(here, chunks, 0) * chunk / link.B
            out, into = (np.where(here, parts, 0) * link.o + sent).sum(axis=1), sent.sum(axis=0)
            upper += float(np.where(here, out[:, np.newaxis] + into, 0.0).max()) + link.L
            all_out, all_in = all_out + out, all_in + into
    if all_in.any():
        lower = max(float(all_out.max()), link.o + float(all_in.max())) + link.L
    return lower, upper


@collective("all_to_all_v", bounds=all_to_all_v_bounds, needs=("nccl",))
def nccl_all_to_all_v(
    n_ranks: int, counts: Counts | None = None, channels: int | None = None, version: str = VERSION,
    n_bytes: int = SIZE, machines: Machines | None = None,
) -> Schedule:  # fmt: skip
    """All-to-all of unequal blocks by NCCL, in parts on channels: the busiest port's sum of C o + S/(kB), + L seconds.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.
    counts : tuple of int, optional
        Chunks from rank i to rank j, row by row of i, p times p of them, 0 or more; by default one each. k is the
        most that any rank sends or receives, and S the bytes of these.
    channels : int, optional
        Channels of a rank. Default: what NCCL's search finds on the network, else 16.
    version : str
        Version of NCCL, which decides channels of a peer and how long LL is taken.
    n_bytes : int
        S; ``commsim run`` takes each size that it runs.
    machines : tuple of tuple of int, optional
        Ranks of each machine; ``commsim run`` takes them from the network. Default: all in one.

    Returns
    -------
    Schedule
        In round d rank r sends to r + d, each message in as many parts as its own size asks for. As many peers as
        all channels can serve are served at once, then the next ones.

    Raises
    ------
    InputError
        If there is not one count per pair, or one is negative, or all are 0.

    Notes
    -----
    Parts are whole chunks of the schedule, so that those of one message may differ by a chunk.

    References
    ----------
    NCCL 2.30.7, ``src/enqueue.cc``; the rules are in :mod:`collectives.nccl.point_to_point`.
    """
    if counts is None:
        Program(n_ranks, n_chunks=1).room_for(n_ranks**2)  # before the counts are listed
    counts = (1,) * n_ranks**2 if counts is None else tuple(counts)
    least = operation("all_to_all_v").least_chunks(n_ranks, counts)
    chunks, parts, at_once = _cut_messages(n_ranks, counts, channels, n_bytes, machines, version)
    fine = max(
        1, int(parts.max())
    )  # chunks of the schedule in one that is counted: a message has at least as many as parts
    p = Program(n_ranks, n_chunks=least * fine)
    read, write = ((np.cumsum(chunks, axis=axis) - chunks) * fine for axis in (1, 0))
    rank = np.arange(n_ranks)
    for first in range(0, n_ranks, at_once):
        peer = (rank[:, np.newaxis] + np.arange(first, min(first + at_once, n_ranks))) % n_ranks
        src, dst = np.repeat(rank, peer.shape[1]), peer.ravel()
        for part in range(fine):
            sent = parts[src, dst] > part
            a, b = src[sent], dst[sent]
            length, n = chunks[a, b] * fine, parts[a, b]
            begin, end = length * part // n, length * (part + 1) // n
            p.copy(
                src=a, dst=b, src_chunk=read[a, b] + begin, dst_chunk=write[a, b] + begin, count=end - begin,
                channel=part, dst_buffer=OUTPUT,
            )  # fmt: skip
        if first + at_once < n_ranks:
            p.fence()
    return p.build(layout=tuple(count * fine for count in counts))
