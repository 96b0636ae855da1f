"""Facts of all rounds of a capture: whose contribution came first and last, which results came too early."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .equal_rows import runs_of
from .packet_event import CONTRIBUTION, RESULT
from .rounds import Rounds

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
        Rows with the contribution that was the only last one, and how many ps after the one before it.
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
