"""The single steps that a calibration rests on, as schedules of one or two hops: the executor's own cost is in them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.program import Program
from commsim.core.schedule import Schedule

from .execute import Execution
from .measure import timed
from .transport import RankTransport

SIZES = tuple(1024 << k for k in range(15))  # 1 KiB to 16 MiB
# Sizes for working sets that are larger than the messages, and for trains: what they add changes slowly with the size.
COARSE = tuple(16384 << 2 * k for k in range(6))  # 16 KiB to 16 MiB
LARGEST_IN_TRAIN = 1 << 20
WALKED = 64 << 10, 1 << 20
# Where the memory of a rank lies: in the last-level cache, which cores share, or beyond it. That of only the messages
# is in the cache of one core as long as it fits.
WORKING_SETS = (8 << 20, 32 << 20)
TRAIN_LENGTHS = 2, 10
ITEM = 4
# Of one run: what is not timed, and what is. Runs are many and short, because their memory lies elsewhere each time.
WARMUP, REPEATS = 2, 3
# Bytes up to which a run is so short that it is made several times where longer ones are made once.
SHORT, SHORT_TIMES = 2 << 20, 3


@dataclass(frozen=True, slots=True)
class TimedStep:
    """One schedule that is timed at one size.

    Parameters
    ----------
    ops : tuple of str
        ``copy`` or ``reduce``, by hop; the second hop sends on what the first has brought. ``local`` copies inside
        every rank. Nothing: an empty run.
    two_way : bool
        Whether all ranks send, or every second one.
    size : int, bytes
        Size of one message.
    working_set : int, bytes
        Memory of each rank; 0 for that of the messages.
    length : int
        Messages that each sender sends in each hop that do not wait for each other.
    """

    ops: tuple[str, ...]
    two_way: bool
    size: int
    working_set: int = 0
    length: int = 1

    @property
    def is_short(self) -> bool:
        """Whether it takes little time, with what is written before it."""
        return max(self.working_set, self.size * self.length * (1 + self.two_way)) <= SHORT


def usual_steps(memory: float = math.inf) -> list[TimedStep]:
    """List the steps of a calibration.

    Parameters
    ----------
    memory : float, bytes
        Largest memory of a rank in what will be predicted: larger messages, and working sets beyond the next larger
        one, are left out. They take most of the time of a calibration.
    """
    sets = [this for this, smaller in zip(WORKING_SETS, (0, *WORKING_SETS), strict=False) if smaller < memory]
    sizes = [size for size in SIZES if size <= max(memory, LARGEST_IN_TRAIN)]
    steps = [TimedStep((), False, SIZES[0])]
    steps += [TimedStep(("copy",), True, SIZES[0], working_set) for working_set in start_sets()]
    for size in sizes:
        steps.append(TimedStep(("local",), False, size))
        steps += _hops(size, 0)
    for size in COARSE:
        for working_set in sets:
            if 4 * size <= working_set and working_set <= 512 * size:
                steps += [TimedStep(("local",), False, size, working_set), *_hops(size, working_set)]
    for size in train_sizes():
        for two_way in (False, True):
            for op in ("copy", "reduce"):
                steps += [TimedStep((op,), two_way, size, 0, length) for length in TRAIN_LENGTHS]
    return steps + [walk for working_set in sets for size in WALKED for walk in walks(size, working_set)]


def walks(size: int, working_set: int) -> list[TimedStep]:
    """Trains whose messages are all of the memory, as the pieces of a pipeline are: one way and two ways, both ops."""
    return [
        TimedStep((op,), two_way, size, working_set, working_set // (size * (1 + two_way)))
        for two_way in (False, True)
        for op in ("copy", "reduce")
    ]


def train_sizes() -> list[int]:
    """Sizes of the messages of trains."""
    return [size for size in SIZES if size <= LARGEST_IN_TRAIN]


def start_sets() -> list[int]:
    """Working sets with which the first message of a run is timed; the first is as good as none."""
    return [SIZES[0] << k for k in (1, 6, 9, 11, 13, 15, 16)]


def _hops(size: int, working_set: int) -> list[TimedStep]:
    """One hop, and two where the second relays; in every way."""
    chains = [("copy",), ("reduce",), ("reduce", "copy"), ("reduce", "reduce")]
    return [TimedStep(ops, two_way, size, working_set) for ops in chains for two_way in (False, True)]


@functools.cache
def schedule_of(step: TimedStep, n_ranks: int) -> Schedule:
    """Build the schedule of a step.

    Every rank has a partner; the last three of an odd number send in a circle when all send. A message lands where its
    receiver has the same chunks, which in its turn it sends on.

    Parameters
    ----------
    step : TimedStep
        What is timed.
    n_ranks : int
        Number of ranks, at least 2.
    """
    rank, partner = np.arange(n_ranks), _partner(n_ranks)
    n_parts = (3 if n_ranks % 2 else 2) if step.two_way else 1
    n_chunks = max(n_parts * step.length, step.working_set // step.size, 2 if step.ops == ("local",) else 1)
    p = Program(n_ranks, n_chunks=n_chunks)
    if step.ops == ("local",):
        p.copy(src=rank, dst=rank, src_chunk=0, dst_chunk=1)
        return p.build()
    src, part = rank, rank % 2
    if n_ranks % 2:
        part[-3:] = (0, 1, 2)
    if not step.two_way:
        src = rank[: n_ranks // 2 * 2 : 2]
        partner = np.where(rank < n_ranks // 2 * 2, rank ^ 1, rank)
        part = np.zeros(n_ranks, np.intp)
    for op in step.ops:
        for k in range(step.length):
            chunk = part[rank[: len(src)]] * step.length + k if step.two_way else k
            send: Callable[..., None] = p.reduce if op == "reduce" else p.copy
            send(src=src, dst=partner[src], src_chunk=chunk, dst_chunk=chunk)
        src = partner[src]
    return p.build()


def exchange(n_ranks: int, *, over_sent: bool) -> Schedule:
    """Every rank sends to a partner and receives from it at once; then the same with what it has received.

    With an odd number of ranks the last three send in a circle, so that none is left out.

    Parameters
    ----------
    n_ranks : int
        Ranks.
    over_sent : bool
        Whether the answer lands where the first message was sent from, or in memory of its own.
    """
    rank, partner = np.arange(n_ranks), _partner(n_ranks)
    p = Program(n_ranks, n_chunks=3)
    p.copy(src=rank, dst=partner, src_chunk=0, dst_chunk=1)
    p.copy(src=rank, dst=partner, src_chunk=1, dst_chunk=0 if over_sent else 2)
    return p.build()


def train(n_ranks: int, length: int, *, all_pairs: bool) -> Schedule:
    """Rank 0 sends `length` messages to rank 1 that do not wait for each other; or every rank to its partner.

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


def time_step(transport: RankTransport, step: TimedStep, warmup: int = WARMUP, repeats: int = REPEATS) -> float:
    """Median time of one run of a step, in memory of its own; the same on every rank.

    Parameters
    ----------
    transport : RankTransport
        All of its ranks call this.
    step : TimedStep
        What is timed.
    warmup, repeats : int
        Number of repetitions; before each, ranks write their memory anew, as they do gradients.

    Returns
    -------
    float, s
    """
    schedule = schedule_of(step, transport.size)
    n_elements = schedule.n_chunks * step.size // ITEM
    execution = Execution(transport, schedule, n_elements)
    values = np.ones(n_elements, np.float32)
    times = timed(transport, execution.run, lambda: execution.load(values), warmup, repeats)
    execution.release()
    return float(np.median(times))
