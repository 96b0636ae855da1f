"""The works that are put to commsim and to its peers: a network, a schedule, and the same messages as plain arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collectives import COLLECTIVES
from commsim.core.program import Program
from commsim.core.schedule import SCRATCH, Schedule

MIB = 2.0**20
# Pieces in the largest random message, and bytes of a piece.
LARGEST, PIECE = 16, 65536


@dataclass(frozen=True, slots=True)
class Messages:
    """What peers replay: a host is done with a round when all of its messages of the round have arrived whole.

    Parameters
    ----------
    round : int64[n_messages]
        In which round of its two ends a message is sent; rising.
    src, dst : int64[n_messages]
        Hosts.
    n_bytes : float64[n_messages], bytes
        Payload.
    fetched : bool
        Whether receivers fetch: then a message waits for the receiver's round only.
    """

    round: NDArray[np.int64]
    src: NDArray[np.int64]
    dst: NDArray[np.int64]
    n_bytes: NDArray[np.float64]
    fetched: bool = False


@dataclass(frozen=True, slots=True)
class Work:
    """One row of the comparison.

    Parameters
    ----------
    what : str
        In words.
    engine : {"flow", "packet"}
        Of ours, and the peers' level of detail.
    network, routing : str
        Where: a topology whose hosts come first, so that rank i is node i; peers get the routes one by one.
    size : float, bytes
        Of the collective.
    schedule : callable
        Makes what ours plays.
    messages : callable
        Makes what peers replay: the same messages.
    """

    what: str
    engine: str
    network: str
    routing: str
    size: float
    schedule: Callable[[], Schedule]
    messages: Callable[[], Messages]


def ring(n: int, size: float, engine: str = "flow") -> Work:
    """All-reduce over a ring on a star; in every round each rank sends to the next one."""

    def messages() -> Messages:
        round_, src = np.divmod(np.arange(n * 2 * (n - 1)), n)
        return Messages(round_, src, (src + 1) % n, np.full(len(src), size / n))

    return Work(
        f"ring all-reduce, {n} ranks", engine, f"star:n_hosts={n},bandwidth=100Gbps,latency=1us", "dmodk", size,
        lambda: COLLECTIVES["ring_all_reduce"].build(n), messages,
    )  # fmt: skip


def all_to_all(n: int, size: float, network: str, engine: str = "flow") -> Work:
    """Everything at once."""

    def messages() -> Messages:
        src, to = np.divmod(np.arange(n * (n - 1)), n - 1)
        return Messages(np.zeros_like(src), src, (src + 1 + to) % n, np.full(len(src), size / n))

    build = COLLECTIVES["direct_all_to_all"].build
    return Work(f"all-to-all at once, {n} ranks", engine, network, "dmodk", size, lambda: build(n), messages)


def random_fetches(k: int, each: int, seed: int = 0) -> Work:
    """Every host of a fat tree fetches `each` messages of random sizes from random others, one after the other.

    Links have no latency: where messages compete, peers differ in when propagation takes place, and in whether it
    counts as weight. Few messages a host: later on, who waits for whom depends on the last bit of a rate.
    """
    n = k**3 // 4

    def draw() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        random = np.random.default_rng(seed)
        return (np.arange(n) + random.integers(1, n, (each, n))) % n, random.integers(1, LARGEST + 1, (each, n))

    def schedule() -> Schedule:
        p = Program(n, n_chunks=LARGEST, n_scratch=LARGEST)
        for src, count in zip(*draw(), strict=True):  # a hop overwrites what the last one wrote, and so waits for it
            p.copy(src=src, dst=np.arange(n), src_chunk=0, dst_chunk=0, count=count, dst_buffer=SCRATCH)
        return p.build()

    def messages() -> Messages:
        src, count = draw()
        round_, dst = np.divmod(np.arange(n * each), n)
        return Messages(round_, src.ravel(), dst, (count.ravel() * PIECE).astype(np.float64), fetched=True)

    network = f"fat_tree:k={k},bandwidth=100Gbps,latency=0s"
    what = f"{n * each} random flows, {n} hosts"
    return Work(what, "flow", network, "dmodk", float(LARGEST * PIECE), schedule, messages)


STAR = "star:n_hosts=8,bandwidth=100Gbps,latency=1us"
WORKS = {
    "ring_256": ring(256, 1024 * MIB),
    "ring_1024": ring(1024, 1024 * MIB),
    "all_to_all_256": all_to_all(256, 256 * MIB, "fat_tree:k=16,bandwidth=100Gbps,latency=0s"),
    "random_flows_1024": random_fetches(16, 20),
    "packets_ring_8": ring(8, 8 * MIB, "packet"),
    "packets_all_to_all_8": all_to_all(8, 8 * MIB, STAR, "packet"),
}
