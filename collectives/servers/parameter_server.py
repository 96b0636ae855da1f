"""Parameter servers: every worker pushes its gradients to them, they add, and every worker pulls the sums."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collectives import MAX_CHUNKS, collective
from commsim.core.cost import LogGP
from commsim.core.errors import InputError
from commsim.core.program import Program
from commsim.core.schedule import Schedule

# Default partitions of each server's part: then pushing and pulling overlap but for one part in 65.
PARTITIONS = 64


def parameter_server_cost(
    n_ranks: int,
    size: float,
    link: LogGP,
    n_servers: int | None = None,
    colocated: bool = False,
    n_partitions: int | None = None,
) -> float:
    """Cost of pushing, adding and pulling k partitions, each a stage of a pipeline.

    Of a partition c = S/(sk) goes to each of s servers. Its push takes s o + max(p, s) c/B, adding at a server
    p gamma c, its pull p o + max(p, s) c/B. The three use different resources when servers have hosts of their own, so
    that partitions follow each other as far apart as the slowest stage takes.

    Colocated, pushing and pulling share the NICs: p-1 messages each way, one after the other, with one partition.

    Raises
    ------
    InputError
        If servers are colocated and their number is not that of the ranks, or there are several partitions.
    """
    s, k = _counts(n_ranks, n_servers, colocated, n_partitions)
    return served_cost("parameter_server", "servers", n_ranks, s, k, size, link, colocated)


def served_cost(
    name: str,
    helpers: str,
    n_ranks: int,
    s: int,
    k: int,
    size: float,
    link: LogGP,
    colocated: bool,
    pool: int | None = None,
) -> float:
    """Cost of k partitions through s helpers that add, at most `pool` of them under way; by default all.

    With a pool of w, w partitions start in each max(R, w t), R being a partition's way home and t the slowest stage.

    Raises
    ------
    InputError
        If helpers are colocated and their number is not that of the ranks, or there are several partitions.
    """
    if n_ranks == 1:
        return 0.0
    c = size / (s * k)
    if colocated:
        if (s, k) != (n_ranks, 1):
            raise InputError(
                f"{name} has a closed form for {helpers} on hosts of their own, or one colocated with each rank "
                "and 1 partition"
            )
        return (n_ranks - 1) * (2 * (link.o + c / link.B) + link.gamma * c) + 2 * link.L
    push, pull = (of * link.o + max(n_ranks, s) * c / link.B for of in (s, n_ranks))
    add = n_ranks * link.gamma * c
    home, apart = push + add + pull + 2 * link.L, max(push, add, pull)
    window = min(pool or k, k)
    rounds, rest = divmod(k - 1, window)
    return home + rounds * max(home, window * apart) + rest * apart


@collective("all_reduce", needs=("servers",), cost=parameter_server_cost)
def parameter_server(
    n_ranks: int, n_servers: int | None = None, colocated: bool = False, n_partitions: int | None = None
) -> Schedule:
    """All-reduce by s parameter servers: (k+1) max(1, p/s) S/(kB) + (s+p)o + 2L + (k-1) max(s, p)o + gamma seconds.

    Parameters
    ----------
    n_ranks : int
        p, the workers.
    n_servers : int, optional
        s. By default as many as ranks, on hosts of their own as far as hosts are free, or one where it is not known
        how many are. Each sums an equal part.
    colocated : bool
        Whether servers share the hosts of the first s ranks; else they are helpers on hosts of their own. Chosen
        where every host has a rank and no number of servers is given.
    n_partitions : int, optional
        k: pieces of each server's part, so that a partition is pulled while the next one is pushed. By default 64;
        with a server at every rank 1, since pushing and pulling then keep every link busy anyway.

    Returns
    -------
    Schedule
        Per partition one message from every rank to every server, and one back. What a colocated server exchanges
        with its own rank is sent nowhere. The term in gamma is in :func:`parameter_server_cost`.

    Raises
    ------
    InputError
        Without a server, or with more than hosts for them to share.

    References
    ----------
    Li et al., "Scaling distributed machine learning with the parameter server", OSDI 2014. Jiang et al. (BytePS), OSDI
    2020, section 2: with one server per rank on its host it sends what a ring sends.
    """
    s, k = _counts(n_ranks, n_servers, colocated, n_partitions)
    if n_ranks == 1:
        return Program(1, 1).build()
    part = np.arange(s)
    p = Program(n_ranks, n_chunks=s * k, n_helpers=0 if colocated else s)
    with p.repeat(k, chunk=s):
        push_and_pull(p, np.arange(n_ranks), part if colocated else n_ranks + part, part)
    return p.build()


def push_and_pull(
    p: Program, workers: NDArray[np.int64], server: NDArray[np.int64], chunk: ArrayLike, count: ArrayLike = 1,
    lane: ArrayLike = 0,
) -> None:  # fmt: skip
    """Write two hops: every worker sends every part to its server, which adds; then every server sends the sum back.

    Parameters
    ----------
    p : Program
        Program to write to.
    workers : int[n_workers]
        Participants that hold gradients.
    server, chunk, count, lane : int[n_parts]
        Server that sums each part, the part's first chunk, its chunks, and its lane between two participants. Parts in
        different lanes share links as the traffic of different servers does.
    """
    p.room_for(2 * workers.size * server.size)
    worker = workers[:, np.newaxis]
    apart = worker != server
    columns = (worker, server, chunk, count, lane)
    src, dst, first, n, channel = (np.broadcast_to(np.asarray(x), apart.shape)[apart] for x in columns)
    p.reduce(first, src=src, dst=dst, count=n, channel=2 * channel)
    p.copy(first, src=dst, dst=src, count=n, channel=2 * channel + 1)


def count_partitions(name: str, n_partitions: int, chunks_each: int) -> int:
    """Check a number of partitions.

    Parameters
    ----------
    name : str
        Name of the collective.
    n_partitions : int
        Pieces of each server's part.
    chunks_each : int
        Chunks of a schedule for each partition.

    Raises
    ------
    InputError
        If it is not positive, or makes more chunks than a schedule may have.
    """
    if n_partitions < 1:
        raise InputError(f"{name} needs n_partitions of at least 1, got n_partitions={n_partitions}")
    if n_partitions * chunks_each > MAX_CHUNKS:
        raise InputError(
            f"{name} is built for at most {MAX_CHUNKS} chunks, which is {MAX_CHUNKS // chunks_each} partitions here, "
            f"got n_partitions={n_partitions}"
        )
    return n_partitions


def _counts(n_ranks: int, n_servers: int | None, colocated: bool, n_partitions: int | None) -> tuple[int, int]:
    """Return s and k."""
    if n_servers is not None and n_servers < 1:
        raise InputError(f"parameter_server needs n_servers of at least 1, got n_servers={n_servers}")
    s = (n_ranks if colocated else 1) if n_servers is None else n_servers
    if colocated and s > n_ranks:
        raise InputError(
            f"parameter_server: colocated servers live on the hosts of ranks: n_servers must be 1..{n_ranks}, "
            f"got n_servers={s}"
        )
    k = (1 if colocated and s == n_ranks else PARTITIONS) if n_partitions is None else n_partitions
    return s, count_partitions("parameter_server", k, s)
