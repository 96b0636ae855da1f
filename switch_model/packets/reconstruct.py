"""What happened, read from packets: workers that took part or were late, repetitions, wrong results.

All of it is as true as the capture is complete. Each packet should be in it once, seen at the switch: contributions
after the links that may lose them. A packet that is captured on two links counts as repeated; one that the capture
missed makes a result look as if it came too early.

Facts of all rounds of a capture: whose contribution came first and last, which results came too early.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .packet_event import ATP, CONTRIBUTION, PROTOCOLS, RESULT, dotted
from .rounds import Rounds, find_rounds, runs_of

NEVER = np.iinfo(np.int64).max


class RoundFacts:
    """What is computed once, for all jobs.

    Parameters
    ----------
    rounds : Rounds
        Packets with their rounds.

    Attributes
    ----------
    e, time, job : array[m]
        Event, time in ps and job of each row of `rounds`.
    job_of_round, job_of_worker : int64
        Jobs of rounds and workers.
    contributed, received : int64
        The first row of each pair of a round and a worker, of contributions and of results.
    n_workers : int64[n_jobs]
        Workers that must contribute.
    early : int64
        Rows of results that left before all had contributed.
    n_received : int64[n_rounds]
        Workers that got a result.
    last, gap : int64
        Rows with the contribution that came last, alone, and how many ps after the one before it.
    """

    def __init__(self, rounds: Rounds) -> None:
        self.rounds, e = rounds, rounds.events[rounds.event]
        self.e, self.time = e, e["time_ps"]
        self.job = rounds.job_of_event[rounds.event]
        self.n_rounds = len(rounds.rounds)
        self.job_of_round, self.job_of_worker = self.job[rounds.rounds], self.job[rounds.workers]
        self.up, self.down = (np.flatnonzero(e["kind"] == kind) for kind in (CONTRIBUTION, RESULT))
        self.contributed = self._first(self.up)
        self.received = self._first(self.down)
        self.n_workers = self._count_workers()
        have, needed = self._per_round(self.contributed), self.n_workers[self.job_of_round]
        self.whole = have >= needed
        complete = np.full(self.n_rounds, -1, np.int64)
        np.maximum.at(complete, rounds.round[self.contributed], self.time[self.contributed])
        complete[~self.whole] = NEVER
        self.early = self.down[self.time[self.down] < complete[rounds.round[self.down]]]
        self.n_received = self._per_round(self.received)
        self._find_last()

    def _first(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the first row of each pair of a round and a worker."""
        order, opens = runs_of(self.rounds.round[rows], self.rounds.worker[rows])
        return rows[order[opens]]

    def _per_round(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.bincount(self.rounds.round[rows], minlength=self.n_rounds)

    def _count_workers(self) -> NDArray[np.int64]:
        n_jobs = len(self.rounds.jobs)
        contributing = np.unique(self.rounds.worker[self.up])
        seen = np.bincount(self.job_of_worker[contributing], minlength=n_jobs)
        declared = np.zeros(n_jobs, np.int64)
        np.maximum.at(declared, self.job, self.e["n_workers"])
        return np.maximum(np.where(declared > 0, declared, seen), 1)

    def _find_last(self) -> None:
        """In rounds that all workers took part in: which contributed last, and how long after the one before."""
        rows = self.contributed[self.whole[self.rounds.round[self.contributed]]]
        rows = rows[np.lexsort((self.time[rows], self.rounds.round[rows]))]
        number = self.rounds.round[rows]
        ends = np.append(number[1:] != number[:-1], len(rows) > 0)[: len(rows)]
        ends[1:] &= number[1:] == number[:-1]
        ends[:1] = False  # a round of one worker has no last one
        at = np.flatnonzero(ends)
        gap = self.time[rows[at]] - self.time[rows[at - 1]]
        self.last, self.gap = rows[at[gap > 0]], gap[gap > 0]


MAX_JOBS = 64
MAX_EXAMPLES = 16
PS = 10**12


@dataclass(frozen=True, slots=True)
class JobReport:
    """One job, as one switch sees it.

    Parameters
    ----------
    protocol : str
        Of its packets.
    job : int
        Its number on the wire.
    switch : str
        Address that aggregates: of a switch, for ATP of the server.
    n_workers : int
        Workers that must contribute: as many as were seen, or as ATP's packets say.
    contributions, results : int
        Packets.
    chunks, chunks_completed, chunks_delivered : int
        Begun; with a result; with a result for every worker.
    retransmissions, duplicate_results : int
        Contributions that the same worker sent before, and results that it got before.
    wrong_results : int
        Results that left before every worker had contributed.
    start_s, time_s : float, s
        First contribution, and from there to the last result.
    elements : int
        Of completed chunks.
    elements_per_s : float
        Of the result, in `time_s`; 0 when that is 0.
    workers : tuple of dict
        Per worker: its name, retransmissions, results, how often it was the last to contribute, alone, and by how much
        (seconds after the one before it; mean and most).
    slots : tuple of dict
        Retransmissions of each slot that has any, most first.
    wrong : tuple of dict
        The first wrong results.
    """

    protocol: str
    job: int
    switch: str
    n_workers: int
    contributions: int
    results: int
    chunks: int
    chunks_completed: int
    chunks_delivered: int
    retransmissions: int
    duplicate_results: int
    wrong_results: int
    start_s: float
    time_s: float
    elements: int
    elements_per_s: float
    workers: tuple[dict[str, Any], ...]
    slots: tuple[dict[str, int], ...]
    wrong: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Reconstruction:
    """The jobs with most packets, and how many others there are."""

    jobs: tuple[JobReport, ...]
    jobs_left_out: int


def reconstruct(events: NDArray[Any]) -> Reconstruction:
    """Find out what happened.

    Parameters
    ----------
    events : PACKET_EVENT[n]
        As `read_pcap` gives them.
    """
    if not len(events):
        return Reconstruction((), 0)
    rounds = find_rounds(events)
    facts = RoundFacts(rounds)
    size = np.bincount(rounds.job_of_event)
    largest = np.sort(np.argsort(-size, kind="stable")[:MAX_JOBS])
    return Reconstruction(tuple(_report(facts, int(job)) for job in largest), len(size) - len(largest))


def _report(f: RoundFacts, job: int) -> JobReport:
    r, e = f.rounds, f.e
    example = r.events[r.jobs[job]]
    events = r.events[r.job_of_event == job]
    up = events["kind"] == CONTRIBUTION
    of_job = f.job_of_round == job
    done = of_job & (f.n_received > 0)
    start = int(events["time_ps"][up].min(initial=NEVER))
    end = int(events["time_ps"][~up].max(initial=-1))
    time_s = (end - start) / PS if up.any() and end > start else 0.0
    elements = int(e["elements"][r.rounds[done]].sum(dtype=np.int64))
    early = f.early[f.job[f.early] == job]
    repeats = np.flatnonzero(r.repeat & (f.job == job))
    n_results = int((~up).sum())
    return JobReport(
        protocol=PROTOCOLS[example["protocol"]],
        job=int(example["job"]),
        switch=dotted(example["dst"] if example["kind"] == CONTRIBUTION else example["src"]),
        n_workers=int(f.n_workers[job]),
        contributions=int(up.sum()),
        results=n_results,
        chunks=int(of_job.sum()),
        chunks_completed=int(done.sum()),
        chunks_delivered=int((done & (f.n_received >= f.n_workers[job])).sum()),
        retransmissions=len(repeats),
        duplicate_results=n_results - int((f.job[f.received] == job).sum()),
        wrong_results=len(early),
        start_s=start / PS if up.any() else 0.0,
        time_s=time_s,
        elements=elements,
        elements_per_s=elements / time_s if time_s else 0.0,
        workers=_workers(f, job, repeats),
        slots=_slots(e["slot"][repeats]),
        wrong=tuple(_wrong(f, int(row)) for row in early[:MAX_EXAMPLES]),
    )


def _workers(f: RoundFacts, job: int, repeats: NDArray[np.int64]) -> tuple[dict[str, Any], ...]:
    """Table of the workers of a job; at most so many as there may be."""
    r, n = f.rounds, len(f.rounds.workers)
    number = r.worker
    workers = np.flatnonzero(f.job_of_worker == job)[:256]
    last = f.job[f.last] == job
    times = np.bincount(number[f.last[last]], minlength=n)
    total = np.bincount(number[f.last[last]], f.gap[last] / PS, minlength=n)
    most = np.zeros(n)
    np.maximum.at(most, number[f.last[last]], f.gap[last] / PS)
    repeated = np.bincount(number[repeats], minlength=n)
    received = np.bincount(number[f.received], minlength=n)
    return tuple(
        {
            "worker": _name(f, int(w)),
            "retransmissions": int(repeated[w]),
            "results": int(received[w]),
            "times_last": int(times[w]),
            "mean_late_s": float(total[w] / max(times[w], 1)),
            "max_late_s": float(most[w]),
        }
        for w in workers
    )


def _name(f: RoundFacts, worker: int) -> str:
    row = int(f.rounds.workers[worker])
    worker, event = int(f.rounds.identity[row]), f.e[row]
    if event["protocol"] == ATP and worker < 32:
        return f"worker {worker}"
    port = worker >> 32 & 0xFFFF if event["protocol"] != ATP else 0
    return dotted(worker & 0xFFFFFFFF) + (f":{port}" if port else "")


def _slots(slot: NDArray[Any]) -> tuple[dict[str, int], ...]:
    slots, times = np.unique(slot, return_counts=True)
    order = np.argsort(-times, kind="stable")
    return tuple({"slot": int(slots[i]), "retransmissions": int(times[i])} for i in order)


def _wrong(f: RoundFacts, row: int) -> dict[str, Any]:
    """One result that left too early, and how many had contributed by then."""
    r, event, time = f.rounds, f.e[row], int(f.time[row])
    had = f.contributed[(r.round[f.contributed] == r.round[row])]
    return {
        "time_s": time / PS,
        "slot": int(event["slot"]),
        "version": int(event["version"]),
        "chunk": int(event["chunk"]),
        "contributed": int((f.time[had] <= time).sum()),
    }
