"""What happened, read from packets: workers that took part or were late, repetitions, wrong results.

All of it is as true as the capture is complete. Each packet should be in it once, seen at the switch: contributions
after the links that may lose them. A packet that is captured on two links counts as repeated; one that the capture
missed makes a result look as if it came too early.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .packet_event import ATP, CONTRIBUTION, PROTOCOLS, dotted
from .round_facts import NEVER, RoundFacts
from .rounds import find_rounds

MAX_JOBS = 64
MAX_EXAMPLES = 16
PS = 10**12


@dataclass(frozen=True, slots=True)
class JobReport:
    """One job, as one switch sees it.

    Parameters
    ----------
    protocol : str
        Protocol of its packets.
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
    chunks_repeated : int
        Chunks with such a contribution: a loss leaves no packet, but each message of these (of RDMA with several
        chunks) lost one at least, unless a timeout was too short.
    start_s, time_s : float, s
        First contribution, and from there to the last result.
    elements : int
        Number of elements of completed chunks.
    elements_per_s : float
        Elements of the result per second of `time_s`; 0 when that is 0.
    workers : tuple of dict
        One entry per worker: its name, retransmissions, results, how often it was the only last one to contribute,
        and by how much (seconds after the one before it; mean and most).
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
    chunks_repeated: int
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
        Events from `read_pcap`.
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
        chunks_repeated=len(np.unique(r.round[repeats])),
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
