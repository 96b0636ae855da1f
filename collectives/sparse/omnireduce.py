"""OmniReduce: non-zero blocks are streamed to aggregators, and the sums of those that any rank has stream back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collectives import collective
from collectives.servers.parameter_server import count_partitions, served_cost
from commsim.core.cost import LogGP
from commsim.core.errors import InputError
from commsim.core.layouts import chunk_bounds
from commsim.core.limits import expect_bytes
from commsim.core.program import Program
from commsim.core.schedule import INPUT, SCRATCH, Schedule
from commsim.sparse.bitmap import WORD
from commsim.sparse.encodings import blocks
from commsim.sparse.form import SparseForm
from commsim.sparse.long_occupancy import AnyOccupancy, pieces, ranges_of
from commsim.sparse.occupancy import Occupancy, packed

# Elements of a block, and messages that each thread of a rank may have at each aggregator: the authors' choices.
BLOCK, SLOTS, THREADS = 256, 8, 8

# Default partitions of an aggregator's part: the fewest, where all aggregators would have more than so many.
PARTITIONS, FEWEST, IN_ALL = 64, 8, 512


def omnireduce_cost(
    n_ranks: int,
    size: float,
    link: LogGP,
    n_aggregators: int | None = None,
    colocated: bool = False,
    n_partitions: int | None = None,
    pool: int | None = None,
    slots: int = SLOTS,  # noqa: ARG001 - decides which zeros are sent; dense data has none
    n_threads: int = THREADS,  # noqa: ARG001
    fusion: int = 1,  # noqa: ARG001
) -> float:
    """Cost of k partitions of c = S/(ak) at each of a aggregators, streamed.

    A partition is pushed in a o + max(p, a) c/B, added in p gamma c, and pulled in p o + max(p, a) c/B, with L on both
    ways: it is home after the sum R of all. Partitions follow each other as far apart as the slowest stage t; with a
    pool of w of them, w start in each max(R, w t).

    Raises
    ------
    InputError
        If aggregators are colocated and their number is not that of the ranks, or there are several partitions.
    """
    a, k = _counts(n_ranks, n_aggregators, colocated, n_partitions)
    return served_cost("omnireduce", "aggregators", n_ranks, a, k, size, link, colocated, pool)


def streamed(schedule: Schedule, occupancy: AnyOccupancy, parameters: Mapping[str, Any]) -> AnyOccupancy:
    """Return the blocks that ranks send, in the order of the stream.

    Threads own equal runs of messages, and send them side by side, to the aggregators in turn: a partition is what all
    threads send to one aggregator in a stretch of time. Each thread starts with a message for every slot of every
    aggregator, before it is known what is not zero.
    """
    from commsim.sparse.bitmap_kernel import pack_classes

    if schedule.n_ranks == 1:
        return occupancy
    fusion, n_threads = parameters.get("fusion", 1), parameters.get("n_threads", THREADS)
    a, k = _counts(schedule.n_ranks, *(parameters.get(key) for key in ("n_aggregators", "colocated", "n_partitions")))
    n_blocks = occupancy.n_blocks
    bounds = chunk_bounds(-(-n_blocks // fusion), n_threads)

    def order(first: int, stop: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the turn of each block among those of its thread, and its stretch and aggregator as one number."""
        message = np.arange(first, stop) // fusion
        thread = np.searchsorted(bounds, message, side="right") - 1
        turn = message - bounds[thread]
        place = turn * k // np.diff(bounds)[thread] * a + turn % a
        if stop == n_blocks:
            place[-1] = k * a  # it may be short, and stays the last one
        return turn, place

    sizes = np.zeros(k * a + 1, np.int64)
    for first, stop in ranges_of(n_blocks):
        sizes += np.bincount(order(first, stop)[1], minlength=len(sizes))
    expect_bytes(occupancy.n_ranks * n_blocks / 8, f"{n_blocks:.2g} blocks of a stream at each of {occupancy.n_ranks} "
                 "ranks", "a smaller size, larger blocks or fewer ranks")  # fmt: skip
    words, following = np.zeros((occupancy.n_ranks, -(-n_blocks // WORD)), np.uint64), np.cumsum(sizes) - sizes
    for first, stop, own in pieces(occupancy):
        turn, place = order(first, stop)
        burst = packed((turn < parameters.get("slots", SLOTS) * a)[np.newaxis])
        sent = own | burst
        sent.setflags(write=False)  # as pieces of other data, for which the kernel is compiled
        pack_classes(sent, place.astype(np.int32), following, words)
    words.setflags(write=False)
    return Occupancy(occupancy.n_elements, occupancy.block, words)


@collective(
    "all_reduce", needs=("aggregators",), cost=omnireduce_cost,
    sparse=SparseForm(blocks, block=BLOCK, sends=streamed, only_data={"slots": 0}),
)  # fmt: skip
def omnireduce(
    n_ranks: int,
    n_aggregators: int | None = None,
    colocated: bool = False,
    n_partitions: int | None = None,
    pool: int | None = None,
    slots: int = SLOTS,
    n_threads: int = THREADS,
    fusion: int = 1,
) -> Schedule:
    """All-reduce by a streaming aggregators: (k+1) max(1, p/a) S/(kB) + (a+p)o + 2L + (k-1) max(a, p)o + gamma seconds.

    Parameters
    ----------
    n_ranks : int
        p, the workers.
    n_aggregators : int, optional
        a. By default as many as ranks, on hosts of their own as far as hosts are free, or one where it is not known
        how many are. Partitions go to them in turn.
    colocated : bool
        Whether aggregators share the hosts of the first a ranks; else they are helpers on hosts of their own. Chosen
        where every host has a rank and no number of aggregators is given.
    n_partitions : int, optional
        k: pieces that are streamed to each aggregator. By default 64, 8 for many aggregators, and 1 with one at
        every rank. A real stream is finer, and makes the (k+1)/k of the cost 1.
    pool : int, optional
        Partitions that a rank may have under way at each aggregator: it sends the next one when the oldest has come
        back. By default as many as there are.
    slots : int
        Messages that each thread of a rank may have under way at each aggregator. So many are sent at the start,
        before it is known which blocks will be asked for; later ones only where a block is not zero.
    n_threads : int
        Runs of the tensor that are streamed side by side.
    fusion : int
        Adjacent blocks of a message, each in a column of its own: a rank looks ahead for its next non-zero block
        inside a column, so that only the first burst has zeros for company.

    Returns
    -------
    Schedule
        Per partition one message from every rank to its aggregator and one back. Of sparse data the way up carries
        the rank's own blocks, the way down the union of all ranks': with each block its successor's offset.

    Raises
    ------
    InputError
        Without an aggregator, slot, thread or block to a message, or if the pool is empty, or there are more colocated
        aggregators than ranks.

    Notes
    -----
    Of S bytes a rank so sends d S and receives U S, with d its own density of blocks and U that of the union, beside
    the first burst and 4 bytes per block; an aggregator receives p d S/a and sends p U S/a. The term in gamma, and
    that of a pool, is in :func:`omnireduce_cost`.

    References
    ----------
    Fei et al., "Efficient sparse collective communication and its application to accelerate distributed deep learning",
    SIGCOMM 2021; slots, columns and the first burst as in its published implementation over RDMA.
    """
    a, k = _counts(n_ranks, n_aggregators, colocated, n_partitions)
    for name, value in (("pool", pool), ("slots", slots), ("n_threads", n_threads), ("fusion", fusion)):
        if value is not None and value < 1:
            raise InputError(f"omnireduce needs {name} of at least 1, got {name}={value}")
    if n_ranks == 1:
        return Program(1, 1).build()
    window = None if pool is None or pool >= k else pool
    p = Program(n_ranks, n_chunks=a * k, n_helpers=0 if colocated else a, n_scratch=a * (window or 0))
    with p.repeat(k, chunk=a):
        _stream(p, a, 0 if colocated else n_ranks, SCRATCH if window else INPUT)
    return p.build()


def _stream(p: Program, n_aggregators: int, first: int, buffer: int) -> None:
    """Write the hops of one partition for each aggregator; ranks send from, and receive into, `buffer`."""
    rank, part = (x.ravel() for x in np.meshgrid(np.arange(p.n_ranks), np.arange(n_aggregators), indexing="ij"))
    away = rank != first + part
    rank, part = rank[away], part[away]
    if buffer == SCRATCH:
        p.copy(part, src=rank, dst=rank, dst_buffer=SCRATCH)
    p.reduce(part, src=rank, dst=first + part, src_buffer=buffer)
    settle_at = np.arange(n_aggregators)
    p.copy(settle_at, src=first + settle_at, dst=first + settle_at, channel=2)
    # results have a channel of their own: where aggregators are ranks too, they do not queue behind what these send
    p.copy(part, src=first + part, dst=rank, dst_buffer=buffer, channel=1)
    if buffer == SCRATCH:
        p.copy(part, src=rank, dst=rank, src_buffer=SCRATCH, channel=1)


def _counts(
    n_ranks: int, n_aggregators: int | None, colocated: bool | None, n_partitions: int | None
) -> tuple[int, int]:
    """Return a and k."""
    if n_aggregators is not None and n_aggregators < 1:
        raise InputError(f"omnireduce needs n_aggregators of at least 1, got n_aggregators={n_aggregators}")
    a = (n_ranks if colocated else 1) if n_aggregators is None else n_aggregators
    if colocated and a > n_ranks:
        raise InputError(
            f"omnireduce: colocated aggregators live on the hosts of ranks: n_aggregators must be 1..{n_ranks}, got {a}"
        )
    usual = 1 if colocated and a == n_ranks else min(PARTITIONS, max(FEWEST, IN_ALL // a))
    k = usual if n_partitions is None else n_partitions
    return a, count_partitions("omnireduce", k, a)
