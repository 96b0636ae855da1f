"""Which packets belong together: those with which all workers sum one chunk on one slot, once, are a round.

SwitchML marks no repetition. A worker's packet repeats the one before it on the same slot if it is the same chunk in
the same version; two fresh ones in a row differ, since versions alternate. ATP marks repetitions, and reuses its
numbers for every tensor: there a round begins when, after a result, a worker contributes afresh that already had.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .equal_rows import numbered, runs_of
from .packet_event import ATP, CONTRIBUTION, RESENT, RESULT

_NO_WORKER = 1 << 48  # added to addresses of ATP workers whose bit is not known


@dataclass(frozen=True, slots=True, eq=False)
class Rounds:
    """Packets with their round; a packet with the sum of several workers has a row for each of them.

    Parameters
    ----------
    events : PACKET_EVENT[n]
        Events in order of time.
    job_of_event : int64[n]
        Number of the job, as one switch sees it.
    jobs : int64[n_jobs]
        An event of each job.
    event : int64[m]
        Event of each row.
    worker : int64[m]
        Number over all jobs of the worker that contributes, or gets the result.
    workers : int64[n_workers]
        A row of each worker.
    identity : int64[m]
        What tells the workers of a job apart: ATP's bit, or the address, above which its port is put where worker and
        switch share the address.
    round : int64[m]
        Number over all jobs.
    rounds : int64[n_rounds]
        The first row of each round.
    repeat : bool[m]
        Whether the row is a worker's contribution that was sent before.
    """

    events: NDArray[Any]
    job_of_event: NDArray[np.int64]
    jobs: NDArray[np.int64]
    event: NDArray[np.int64]
    worker: NDArray[np.int64]
    workers: NDArray[np.int64]
    identity: NDArray[np.int64]
    round: NDArray[np.int64]
    rounds: NDArray[np.int64]
    repeat: NDArray[np.bool_]


def find_rounds(events: NDArray[Any]) -> Rounds:
    """Group packets.

    Parameters
    ----------
    events : PACKET_EVENT[n]
        Events read from a file.
    """
    events = events[np.argsort(events["time_ps"], kind="stable")]
    up = events["kind"] == CONTRIBUTION
    job, jobs = numbered(events["protocol"], events["job"], np.where(up, events["dst"], events["src"]))
    event, identity = _rows(events, job)
    e, j = events[event], job[event]
    worker, workers = numbered(j, identity)
    atp = e["protocol"] == ATP
    fresh = _fresh(e, worker, ~atp)
    slot, version = np.where(atp, 0, e["slot"]), np.where(atp, 0, e["version"])
    time = np.where(atp, _occurrence_atp(events, job)[event], _occurrence(worker, slot, version, e["chunk"], fresh))
    number, rounds = numbered(j, slot, version, e["chunk"], time)
    contribution = e["kind"] == CONTRIBUTION
    alone = e["workers"] & (e["workers"] - np.uint32(1)) == 0
    repeat = contribution & np.where(atp, (e["flags"] & RESENT != 0) & alone, ~fresh)
    return Rounds(events, job, jobs, event, worker, workers, identity, number, rounds, repeat)


def _rows(events: NDArray[Any], job: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Event and worker of each row."""
    up, atp = events["kind"] == CONTRIBUTION, events["protocol"] == ATP
    address = np.where(up, events["src"], events["dst"]).astype(np.int64)
    port = np.where(events["src"] == events["dst"], events["worker_port"], 0).astype(np.int64)
    identity = address | port << 32
    several = np.flatnonzero(atp & up)
    bitmap = events["workers"][several].astype(">u4").view(np.uint8).reshape(-1, 4)
    which, bit = np.nonzero(np.unpackbits(bitmap, axis=1)[:, ::-1])
    result = np.flatnonzero(atp & ~up)
    identity[result] = _bit_of(events, job, several, result)
    others = np.flatnonzero(~(atp & up))
    event = np.concatenate([others, several[which]])
    worker = np.concatenate([identity[others], bit.astype(np.int64)])
    order = np.argsort(event, kind="stable")
    return event[order], worker[order]


def _bit_of(
    events: NDArray[Any], job: NDArray[np.int64], sent: NDArray[np.int64], received: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Bit of the worker at the address to which a result goes, which its own contributions tell."""
    own = sent[events["worker"][sent] >= 0]
    key = np.concatenate([job[own] << 32 | events["src"][own], job[received] << 32 | events["dst"][received]])
    number, first = numbered(key)
    known = first < len(own)
    bits = np.full(len(first), -1, np.int64)
    bits[known] = events["worker"][own[first[known]]]
    worker_bits = bits[number[len(own) :]]
    return np.where(worker_bits >= 0, worker_bits, _NO_WORKER + events["dst"][received].astype(np.int64))


def _fresh(e: NDArray[Any], worker: NDArray[np.int64], selected: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Contributions that differ from the worker's one before on the slot."""
    rows = np.flatnonzero(selected & (e["kind"] == CONTRIBUTION))
    order, opens = runs_of(worker[rows], e["slot"][rows])
    rows = rows[order]
    opens[1:] |= (e["version"][rows][1:] != e["version"][rows][:-1]) | (e["chunk"][rows][1:] != e["chunk"][rows][:-1])
    fresh = np.zeros(len(e), np.bool_)
    fresh[rows] = opens
    return fresh


def _occurrence(
    worker: NDArray[Any], slot: NDArray[Any], version: NDArray[Any], chunk: NDArray[Any], fresh: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """How many rounds with the same key came before, as the worker saw it."""
    order, opens = runs_of(worker, slot, version, chunk)
    total = np.cumsum(fresh[order])
    starts = np.flatnonzero(opens)
    before: NDArray[np.int64] = total[starts] - fresh[order][starts]
    out = np.empty(len(order), np.int64)
    out[order] = total - np.repeat(before, np.diff(np.append(starts, len(order))))
    return np.maximum(out - 1, 0)


def _occurrence_atp(events: NDArray[Any], job: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many rounds with the same number came before in the job; one packet after the other, number by number."""
    out = np.zeros(len(events), np.int64)
    rows = np.flatnonzero(events["protocol"] == ATP)
    order, opens = runs_of(job[rows], events["chunk"][rows])
    rows = rows[order]
    e = events[rows]
    again, result = e["flags"] & RESENT != 0, e["kind"] == RESULT
    columns = (opens, e["workers"], again, result)
    n_seen, had, answered, rounds = 0, 0, False, list[int]()
    for first, bits, repeated, down in zip(*(column.tolist() for column in columns), strict=True):
        if first:
            n_seen, had, answered = 0, 0, False
        if down:
            answered = True
        elif answered and not repeated and had & bits:
            n_seen, had, answered = n_seen + 1, bits, False
        else:
            had |= bits
        rounds.append(n_seen)
    out[rows] = rounds
    return out
