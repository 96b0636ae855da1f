"""GPUs of a simulated cluster, and the jobs that have them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .machines import Machines
from .state import JobState, Spread


class GpuPool:
    """Jobs of each GPU. A GPU has one job, and a second one only beside the first."""

    def __init__(self, machines: Machines) -> None:
        first = np.concatenate(([0], np.cumsum(machines.gpus)))
        self._free = [list(range(first[h + 1] - 1, first[h] - 1, -1)) for h in range(len(machines.gpus))]
        self._host = np.repeat(np.arange(len(machines.gpus)), machines.gpus)
        self.users: list[list[JobState]] = [[] for _ in range(int(first[-1]))]
        self.size, self._n_free = machines.gpus, machines.gpus.copy()
        self.used = 0  #: GPUs that have a job

    @property
    def free(self) -> NDArray[np.int64]:
        """Free GPUs of each host."""
        return self._n_free.copy()

    def take(self, state: JobState, spread: Spread) -> None:
        """Give free GPUs to a job."""
        gpus = [self._free[host].pop() for host, n in spread for _ in range(n)]
        for host, n in spread:
            self._n_free[host] -= n
        self.used += len(gpus)
        self._enter(state, spread, tuple(gpus))

    def share(self, state: JobState, other: JobState) -> None:
        """Let a job run beside another one, on all of its GPUs."""
        self._enter(state, other.spread, other.gpus)
        state.beside, other.beside, other.kept = other, state, None

    def release(self, state: JobState) -> None:
        """Take a job off its GPUs; one beside it keeps them."""
        state.count()
        hosts = set()
        for gpu in state.gpus:
            self.users[gpu].remove(state)
            if not self.users[gpu]:
                host = int(self._host[gpu])
                self._free[host].append(gpu)
                self._n_free[host] += 1
                self.used -= 1
                hosts.add(host)
        for host in hosts:
            self._free[host].sort(reverse=True)
        if state.beside is not None:
            state.beside.beside = state.beside.kept = None
        state.gpus, state.spread, state.beside, state.kept = (), (), None, None

    def _enter(self, state: JobState, spread: Spread, gpus: tuple[int, ...]) -> None:
        state.count()
        for gpu in gpus:
            self.users[gpu].append(state)
        state.gpus, state.spread = gpus, spread
