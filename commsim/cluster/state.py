"""What changes while a cluster runs: jobs, and who has which GPU."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .machines import Machines
from .trace_file import TraceJob

Spread = tuple[tuple[int, int], ...]
"""Hosts of a job, in the order of its ranks, each with a number of GPUs."""


@dataclass(slots=True, eq=False)
class JobState:
    """One job that has come.

    Parameters
    ----------
    index : int
        In the trace.
    job : TraceJob
        What it asked for.
    total, done : float
        Iterations that it has to do, and has done.
    ideal : float, s
        What it would take alone.
    attained : float, GPU s
        Service received.
    run_time : float, s
        Time in which it held GPUs.
    spread, gpus : Spread, tuple of int
        Where it runs now; empty while it waits.
    beside : JobState, optional
        The job whose GPUs it shares.
    resume : float, s
        When its restart is over.
    rate, slowdown : float
        Progress per second, and how many times longer an iteration takes because of others' traffic.
    shift : float, s
        Of its iterations.
    """

    index: int
    job: TraceJob
    total: float
    ideal: float
    done: float = 0.0
    attained: float = 0.0
    run_time: float = 0.0
    first_start: float | None = None
    finish: float | None = None
    spread: Spread = ()
    gpus: tuple[int, ...] = ()
    gpu_type: str = ""
    beside: JobState | None = None
    resume: float = 0.0
    rate: float = 0.0
    slowdown: float = 1.0
    shift: float = 0.0
    starts: int = 0
    iterating: float = field(default=0.0)
    stretched: float = field(default=0.0)

    @property
    def running(self) -> bool:
        """Whether it holds GPUs."""
        return bool(self.gpus)

    @property
    def left(self) -> float:
        """Share of its work that is still to do."""
        return max(1.0 - self.done / self.total, 0.0)


class Pool:
    """Which GPU is whose. A GPU has one job, and a second one only beside the first."""

    def __init__(self, machines: Machines) -> None:
        first = np.concatenate(([0], np.cumsum(machines.gpus)))
        self._free = [list(range(first[h + 1] - 1, first[h] - 1, -1)) for h in range(len(machines.gpus))]
        self._host = np.repeat(np.arange(len(machines.gpus)), machines.gpus)
        self.users: list[list[JobState]] = [[] for _ in range(int(first[-1]))]
        self.size = machines.gpus

    @property
    def free(self) -> NDArray[np.int64]:
        """Free GPUs of each host."""
        return np.array([len(gpus) for gpus in self._free], np.int64)

    @property
    def used(self) -> int:
        """GPUs that have a job."""
        return int(self.size.sum() - self.free.sum())

    def take(self, state: JobState, spread: Spread) -> None:
        """Give free GPUs to a job."""
        gpus = [self._free[host].pop() for host, n in spread for _ in range(n)]
        self._enter(state, spread, tuple(gpus))

    def share(self, state: JobState, other: JobState) -> None:
        """Let a job run beside another one, on all of its GPUs."""
        self._enter(state, other.spread, other.gpus)
        state.beside, other.beside = other, state

    def release(self, state: JobState) -> None:
        """Take a job off its GPUs; one beside it keeps them."""
        for gpu in state.gpus:
            self.users[gpu].remove(state)
            if not self.users[gpu]:
                self._free[self._host[gpu]].append(gpu)
                self._free[self._host[gpu]].sort(reverse=True)
        if state.beside is not None:
            state.beside.beside = None
        state.gpus, state.spread, state.beside = (), (), None

    def _enter(self, state: JobState, spread: Spread, gpus: tuple[int, ...]) -> None:
        for gpu in gpus:
            self.users[gpu].append(state)
        state.gpus, state.spread = gpus, spread
