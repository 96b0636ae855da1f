"""The point-to-point runs that a calibration rests on, as schedules, so that the executor's own cost is in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.program import Program
from commsim.core.schedule import Schedule

from .execute import Execution
from .measure import timed
from .transport import Transport

SIZES = tuple(4096 << k for k in range(13))  # 4 KiB to 16 MiB
TRAIN_SIZES = tuple(1024 << k for k in range(9))  # 1 KiB to 256 KiB
TRAIN_LENGTHS = 8, 40
ITEM, WARMUP = 4, 2
PASSES, REPEATS = 3, 7


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Medians of point-to-point runs.

    Where a message lands matters as much as whether others are under way: memory that the peer has just read is written
    up to three times slower than memory that only its owner has touched, because the caches of two cores must agree
    first. Collectives do both, so both are measured.

    Parameters
    ----------
    size : float64[n_sizes], bytes
        Of one message.
    alone, together : float64[2, n_sizes], s
        One message when one pair plays ping-pong alone, and when every rank sends to a partner and receives from it;
        landing in memory of its own, and over what has been sent.
    train_size : float64[n_train_sizes], bytes
        Of one message of a train: many messages that do not wait for each other.
    gap_alone, gap_together : float64[n_train_sizes], s
        What each further message of a train adds, from rank 0 to rank 1 alone, and when every rank sends a train to its
        partner and receives one.
    add_alone, add_together : float64[n_sizes], s
        Time to add two arrays of `size`, by one rank alone and by all at once.
    n_messages : int
        Messages that are under way at once in `together`.
    """

    size: NDArray[np.float64]
    alone: NDArray[np.float64]
    together: NDArray[np.float64]
    train_size: NDArray[np.float64]
    gap_alone: NDArray[np.float64]
    gap_together: NDArray[np.float64]
    add_alone: NDArray[np.float64]
    add_together: NDArray[np.float64]
    n_messages: int


def ping_pong(n_ranks: int, *, over_sent: bool) -> Schedule:
    """Rank 0 sends rank 1 a message, which sends back what it has received.

    Parameters
    ----------
    n_ranks : int
        Ranks, of which two have something to do.
    over_sent : bool
        Whether the answer lands where the first message was sent from, or in memory of its own.
    """
    p = Program(n_ranks, n_chunks=2)
    p.copy(0, src=0, dst=1)
    p.copy(src=1, dst=0, src_chunk=0, dst_chunk=0 if over_sent else 1)
    return p.build()


def exchange(n_ranks: int, *, over_sent: bool) -> Schedule:
    """Every rank sends to a partner and receives from it at once; then the same with what it has received.

    With an odd number of ranks the last three send in a circle, so that none is left out. Parameters as in
    :func:`ping_pong`.
    """
    rank, partner = np.arange(n_ranks), _partner(n_ranks)
    p = Program(n_ranks, n_chunks=3)
    p.copy(src=rank, dst=partner, src_chunk=0, dst_chunk=1)
    p.copy(src=rank, dst=partner, src_chunk=1, dst_chunk=0 if over_sent else 2)
    return p.build()


def train(n_ranks: int, length: int, *, all_pairs: bool) -> Schedule:
    """Rank 0 sends `length` messages to rank 1, none of which waits for another; or every rank to its partner.

    Parameters
    ----------
    n_ranks : int
        Ranks.
    length : int
        Messages of the train.
    all_pairs : bool
        Whether every rank sends one to its partner.
    """
    src = np.arange(n_ranks) if all_pairs else np.array([0])
    p = Program(n_ranks, n_chunks=2 * length)
    for chunk in range(length):
        p.copy(src=src, dst=_partner(n_ranks)[src], src_chunk=chunk, dst_chunk=length + chunk)
    return p.build()


def _partner(n_ranks: int) -> NDArray[np.intp]:
    """Whom each rank sends to: its neighbour, and the last three of an odd number in a circle."""
    rank = np.arange(n_ranks)
    partner = rank ^ 1
    if n_ranks % 2:
        partner[-3:] = np.roll(rank[-3:], -1)
    return partner


def run_point_to_point(
    transport: Transport, sizes: tuple[int, ...] = SIZES, passes: int = PASSES, repeats: int = REPEATS
) -> Samples:
    """Make all the runs; every rank of the transport calls this, and gets the same numbers.

    Parameters
    ----------
    transport : Transport
        At least 2 ranks.
    sizes : tuple of int, bytes
        Message sizes.
    passes, repeats : int
        All sizes are run `repeats` times in each pass, so that what disturbs the machine for a moment does not spoil
        all the runs of one size.
    """
    n = transport.size
    runs = [
        *(ping_pong(n, over_sent=over) for over in (False, True)),
        *(exchange(n, over_sent=over) for over in (False, True)),
    ]
    trains = [train(n, length, all_pairs=all_pairs) for all_pairs in (False, True) for length in TRAIN_LENGTHS]
    times = np.empty((len(sizes), 6, passes * repeats))
    train_times = np.empty((len(TRAIN_SIZES), 4, passes * repeats))
    for i in range(passes):
        now = slice(i * repeats, (i + 1) * repeats)
        for k, size in enumerate(sizes):
            for m, schedule in enumerate(runs):
                times[k, m, now] = _times(transport, schedule, size, repeats) / 2
            for m, all_pairs in ((4, False), (5, True)):
                times[k, m, now] = _add_times(transport, size, repeats, all_pairs)
        for k, size in enumerate(TRAIN_SIZES):
            for m, schedule in enumerate(trains):
                train_times[k, m, now] = _times(transport, schedule, size, repeats)
    one, trained = np.median(times, axis=2).T, np.median(train_times, axis=2).T
    gaps = np.maximum(1e-9, trained[1::2] - trained[::2]) / (TRAIN_LENGTHS[1] - TRAIN_LENGTHS[0])
    return Samples(
        np.array(sizes, np.float64),
        one[:2],
        one[2:4],
        np.array(TRAIN_SIZES, np.float64),
        gaps[0],
        gaps[1],
        one[4],
        one[5],
        n,
    )


def _times(transport: Transport, schedule: Schedule, size: int, repeats: int) -> NDArray[np.float64]:
    """Time a schedule with chunks of `size`; before each run ranks write their memory anew, as they do gradients."""
    n_elements = schedule.n_chunks * size // ITEM
    execution = Execution(transport, schedule, n_elements)
    values = np.ones(n_elements, np.float32)
    return timed(transport, execution.run, lambda: execution.load(values), WARMUP, repeats)


def _add_times(transport: Transport, size: int, repeats: int, all_pairs: bool) -> NDArray[np.float64]:
    """Time one addition in place of float32, by rank 0 alone or by all ranks at once."""
    total, part = (transport.empty(size // ITEM, "float32") for _ in range(2))
    times = max(1, 65536 // size)

    def add() -> None:
        nonlocal total
        if all_pairs or transport.rank == 0:
            for _ in range(times):
                total += part

    return timed(transport, add, lambda: None, WARMUP, repeats) / times
