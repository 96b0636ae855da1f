"""The checker: every schedule is proved to meet its postcondition, by running it on symbols.

An address holds the name of the origin chunk that it holds, and which ranks' contributions are in it, each
counted. So a contribution that is lost, or counted twice, or ends in the wrong place, is found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import ScheduleError, wrong_kind
from commsim.core.layouts import home_of_chunks
from commsim.core.operations import OPERATIONS, Operation
from commsim.core.schedule import REDUCE, Schedule, Transfers

EXACT_RANKS = 64
EMPTY, FOREIGN = -1, -2  # nothing yet, and what a rank's buffer happens to hold where it contributes nothing
Labels = NDArray[np.int64]
PRIME = np.uint64(2**61 - 1)
MAX_COUNTED = 2**20


@dataclass(frozen=True, slots=True)
class CheckReport:
    """How a schedule was proved.

    Parameters
    ----------
    method : {"exact", "fingerprint"}
        Contributions counted one by one, or added up as random numbers modulo 2**61 - 1.
    n_transfers : int
        Transfers that were run.
    failure_probability : float
        Bound on the probability that a wrong schedule passes: 0, or one in 2**61 - 2 for every address that is
        compared.
    """

    method: str
    n_transfers: int
    failure_probability: float

    def __str__(self) -> str:
        chance = f", wrong with probability below {self.failure_probability:.1e}" if self.failure_probability else ""
        return f"correct, by {self.method} check of {self.n_transfers} transfers{chance}"


def check(schedule: Schedule, seed: int = 0) -> CheckReport:
    """Prove that a schedule meets the postcondition of its operation.

    Up to 64 ranks contributions are counted exactly; beyond, by random fingerprints.

    Parameters
    ----------
    schedule : Schedule
        Schedule of a named operation.
    seed : int
        Seed of the fingerprints.

    Raises
    ------
    ScheduleError
        Naming the first rank and chunk that is wrong; or because the operation has no postcondition.
    """
    if not isinstance(schedule, Schedule):
        raise wrong_kind("schedule", "a Schedule, as cs.read_schedule and build() of a cs.Program return it", schedule)
    if schedule.operation not in OPERATIONS:
        raise ScheduleError(
            f"{schedule.name}: the operation {schedule.operation!r} has no postcondition to check; name the operation "
            "with build(operation='all_reduce')"
        )
    signals = OPERATIONS[schedule.operation].signals
    exact = signals or schedule.n_ranks <= EXACT_RANKS
    content: Content = Fingerprints(schedule.n_ranks, seed)
    if exact:
        content = Heard(schedule.n_ranks) if signals else ContributionCounts(schedule.n_ranks)
    label, held = initial_state(schedule, content)
    for hop in hops(schedule):
        _execute_hop(schedule, hop, label, held, content)
    compared = _compare(schedule, label, held, content)
    return CheckReport(
        "exact" if exact else "fingerprint", schedule.n_transfers, 0.0 if exact else compared / (int(PRIME) - 1)
    )


def hops(schedule: Schedule) -> Iterator[Transfers]:
    """Yield the transfers of one hop after the other, expanded lazily."""
    for transfers in schedule.rounds():
        starts = np.flatnonzero(np.diff(transfers["hop"])) + 1
        yield from (part for part in np.split(transfers, starts) if part.size)


def chunks_of(
    schedule: Schedule, transfers: Transfers
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.intp]]:
    """Addresses, numbered through all participants, that each chunk of each transfer reads and writes.

    Returns
    -------
    read, write : int64[n], transfer : intp[n]
        One row per chunk, and which transfer it belongs to.
    """
    count = transfers["count"].astype(np.int64)
    transfer = np.repeat(np.arange(len(transfers)), count)
    within = np.arange(len(transfer)) - np.repeat(np.cumsum(count) - count, count)
    read = transfers["src"].astype(np.int64) * schedule.n_addresses + schedule.src_address(transfers)
    write = transfers["dst"].astype(np.int64) * schedule.n_addresses + schedule.dst_address(transfers)
    return read[transfer] + within, write[transfer] + within, transfer


def initial_state(schedule: Schedule, content: Content) -> tuple[Labels, NDArray[Any]]:
    """Return what every address of every participant holds before the first hop: (label, content)."""
    label = np.full(schedule.n_participants * schedule.n_addresses, EMPTY, np.int64)
    label.reshape(schedule.n_participants, -1)[: schedule.n_ranks, : schedule.n_chunks] = FOREIGN
    held = content.zeros(len(label))
    rank, chunk = _holders(schedule, OPERATIONS[schedule.operation].starts)
    where = rank * schedule.n_addresses + chunk
    label[where] = chunk if schedule.in_place else rank * schedule.n_chunks + chunk
    operation = OPERATIONS[schedule.operation]
    if operation.moves is not None and operation.reduces:  # what is added to one chunk has its label
        n, k = schedule.n_ranks, schedule.n_chunks
        end, end_chunk, begin, begin_chunk = operation.moves(np.arange(n), n, k, schedule.layout)
        label[begin * schedule.n_addresses + begin_chunk] = end * k + end_chunk
    held[where] = content.of(rank)
    return label, held


def _holders(schedule: Schedule, holder: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(rank, chunk) pairs of one clause of the operation, in that order."""
    n, k = schedule.n_ranks, schedule.n_chunks
    if holder == "home":
        return home_of_chunks(n, k, schedule.layout), np.arange(k)
    ranks = np.array([schedule.root]) if holder == "root" else np.arange(n)
    return np.repeat(ranks, k), np.tile(np.arange(k), len(ranks))


def _execute_hop(schedule: Schedule, hop: Transfers, label: Labels, held: NDArray[Any], content: Content) -> None:
    """Run one hop: all reads, then all writes."""
    read, write, transfer = chunks_of(schedule, hop)
    reduces = (hop["op"] == REDUCE)[transfer]
    new_label, new_held = label[read], held[read]
    if (new_label < 0).any():
        t = hop[transfer[int((new_label < 0).argmax())]]
        raise ScheduleError(
            f"{schedule.name}: in hop {t['hop']} participant {t['src']} sends chunk {t['src_chunk']}, "
            "which no transfer has written"
        )
    copied = write[~reduces]
    if len(np.unique(copied)) != len(copied) or np.isin(copied, write[reduces]).any():
        raise ScheduleError(f"{schedule.name}: hop {hop['hop'][0]} writes a chunk twice, and not only by reducing")
    label[copied], held[copied] = new_label[~reduces], new_held[~reduces]
    into, what = write[reduces], new_label[reduces]
    empty = label[into] == EMPTY
    label[into[empty]] = what[empty]
    if (label[into] != what).any():
        i = int((label[into] != what).argmax())
        t = hop[transfer[np.flatnonzero(reduces)[i]]]
        foreign = label[into[i]] == FOREIGN
        fault = "to memory that holds no contribution" if foreign else "different chunks to each other"
        raise ScheduleError(
            f"{schedule.name}: in hop {t['hop']} participant {t['dst']} adds {fault}, into chunk {t['dst_chunk']}"
        )
    content.add(held, into, new_held[reduces])


def _compare(schedule: Schedule, label: Labels, held: NDArray[Any], content: Content) -> int:
    """Raise unless every address of the postcondition holds what it says; count these addresses."""
    operation = OPERATIONS[schedule.operation]
    rank, chunk, wanted_label, wanted = _postcondition(schedule, operation, content)
    where = rank * schedule.n_addresses + schedule.buffer_offsets[1] + chunk
    wrong = (label[where] != wanted_label) | (held[where] != wanted).reshape(len(where), -1).any(axis=1)
    if wrong.any():
        i = int(wrong.argmax())
        raise ScheduleError(
            f"{schedule.name}: rank {rank[i]} ends with chunk {chunk[i]} wrong: "
            + _difference(
                int(label[where[i]]), int(wanted_label[i]), held[where[i]], wanted[i] if wanted.ndim else wanted
            )
        )
    return len(where)


def _postcondition(
    schedule: Schedule, operation: Operation, content: Content
) -> tuple[NDArray[np.int64], NDArray[np.int64], Labels, NDArray[Any]]:
    """Rank, chunk of its output, label and content of the postcondition."""
    n, k = schedule.n_ranks, schedule.n_chunks
    if operation.moves is not None:
        rank, chunk, origin, origin_chunk = operation.moves(np.arange(n), n, k, schedule.layout)
        if operation.reduces:
            ends, of_end = np.unique(rank * k + chunk, return_inverse=True)
            total = content.zeros(len(ends))
            content.add(total, of_end, content.of(origin))
            return ends // k, ends % k, ends, total
        return rank, chunk, origin * k + origin_chunk, content.of(origin)
    rank, chunk = _holders(schedule, operation.ends)
    if operation.reduces:
        total = content.total(np.arange(n))
        return rank, chunk, chunk, np.broadcast_to(total, (len(chunk), *total.shape))
    home = home_of_chunks(n, k, schedule.layout)
    return rank, chunk, chunk, content.of(home[chunk] if operation.starts == "home" else 0 * chunk + schedule.root)


def _difference(label: int, wanted_label: int, held: NDArray[Any], wanted: NDArray[Any]) -> str:
    if label < 0:
        return "nothing was ever written there"
    if label != wanted_label:
        return f"it holds chunk {label} where {wanted_label} belongs"
    if held.ndim == 0:
        return "its fingerprint is not that of the right contributions"
    if held.dtype == np.uint8:
        held, wanted = np.unpackbits(held), np.unpackbits(wanted)
    origin = int((held != wanted).argmax())
    return f"the contribution of rank {origin} is in it {held[origin]} times, not {wanted[origin]}"


class Content(Protocol):
    """Contributions at addresses."""

    def of(self, ranks: NDArray[np.int64]) -> NDArray[Any]:
        """Return the content that holds one contribution of each of `ranks`."""

    def total(self, ranks: NDArray[np.int64]) -> NDArray[Any]:
        """Return the content that holds one contribution of all `ranks`."""

    def zeros(self, n: int) -> NDArray[Any]:
        """Return the content of `n` empty addresses."""

    def add(self, into: NDArray[Any], where: NDArray[np.int64], what: NDArray[Any]) -> None:
        """Add `what` at `where`, which may name an address several times."""


class ContributionCounts:
    """Exact: one counter per rank."""

    def __init__(self, n_ranks: int) -> None:
        self._n = n_ranks

    def of(self, ranks: NDArray[np.int64]) -> NDArray[Any]:
        """See Content."""
        return np.eye(self._n, dtype=np.int64)[ranks]

    def total(self, ranks: NDArray[np.int64]) -> NDArray[Any]:
        """See Content."""
        return np.isin(np.arange(self._n), ranks).astype(np.int64)

    def zeros(self, n: int) -> NDArray[Any]:
        """See Content."""
        return np.zeros((n, self._n), np.int64)

    def add(self, into: NDArray[Any], where: NDArray[np.int64], what: NDArray[Any]) -> None:
        """See Content."""
        np.add.at(into, where, what)
        into[where] = np.minimum(into[where], MAX_COUNTED)  # so that no number of doublings can wrap around to 1


class Fingerprints:
    """One random number per rank, added modulo a prime: O(addresses) memory.

    A wrong multiset of contributions differs from the right one by a non-zero integer combination of independent
    uniform numbers, which vanishes modulo the prime with probability 1/(2**61 - 2) at most (multiplicities below it).
    """

    def __init__(self, n_ranks: int, seed: int) -> None:
        self._number = np.random.default_rng(seed).integers(1, int(PRIME), n_ranks, dtype=np.uint64)

    def of(self, ranks: NDArray[np.int64]) -> NDArray[Any]:
        """See Content."""
        return self._number[ranks]

    def total(self, ranks: NDArray[np.int64]) -> NDArray[Any]:
        """See Content."""
        return np.array(sum(self._number[ranks].tolist()) % int(PRIME), np.uint64)

    def zeros(self, n: int) -> NDArray[Any]:
        """See Content."""
        return np.zeros(n, np.uint64)

    def add(self, into: NDArray[Any], where: NDArray[np.int64], what: NDArray[Any]) -> None:
        """See Content."""
        while where.size:  # one writer of each address at a time; the sum of two residues fits 64 bits
            _, first = np.unique(where, return_index=True)
            into[where[first]] = (into[where[first]] + what[first]) % PRIME
            rest = np.ones(len(where), np.bool_)
            rest[first] = False
            where, what = where[rest], what[rest]


class Heard:
    """Exact at any size, but blind to how often: one bit per rank. For operations that only signal."""

    def __init__(self, n_ranks: int) -> None:
        self._n = n_ranks

    def of(self, ranks: NDArray[np.int64]) -> NDArray[Any]:
        """See Content."""
        bits = self.zeros(len(ranks))
        bits[np.arange(len(ranks)), ranks // 8] = 128 >> (ranks % 8)
        return bits

    def total(self, ranks: NDArray[np.int64]) -> NDArray[Any]:
        """See Content."""
        heard = self.zeros(1)
        self.add(heard, np.zeros(len(ranks), np.int64), self.of(ranks))
        return heard.reshape(-1)

    def zeros(self, n: int) -> NDArray[Any]:
        """See Content."""
        return np.zeros((n, -(-self._n // 8)), np.uint8)

    def add(self, into: NDArray[Any], where: NDArray[np.int64], what: NDArray[Any]) -> None:
        """See Content."""
        np.bitwise_or.at(into, where, what)
