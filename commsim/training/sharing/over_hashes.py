"""Periodic jobs on shared links over several hashes of routes: the run in the middle, and the ends of each job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network
from commsim.core.result import OverHashes
from commsim.prediction.plans.draws import alike, middle

from .shared_run import SharedRun

__all__ = ["Laid", "RunOfHashes", "run_over_hashes"]


@dataclass(frozen=True, slots=True, eq=False)
class Laid:
    """Jobs laid over the links with one hash.

    Parameters
    ----------
    use : float64[n_jobs, n_links]
        How many times its rate each job sends over each link.
    levels : tuple of float, optional
        Priorities that go with these paths.
    seed : int
        Seed of the hash.
    """

    use: NDArray[np.float64]
    levels: tuple[float, ...] | None = None
    seed: int = 0

    def key(self, network: Network) -> tuple[Any, ...]:
        """Return what decides the times: the demands that meet on some link, whichever link it is."""
        part = self.use / network.bandwidth
        return np.unique(part[:, (part > 0).any(axis=0)], axis=1).tobytes(), self.levels


@dataclass(frozen=True, slots=True, eq=False)
class RunOfHashes:
    """A run, and what other hashes change.

    Parameters
    ----------
    run : SharedRun
        Run with the median iteration times.
    laid : Laid
        Its jobs on the links.
    hashes : OverHashes or None
        For each job the iteration times of the fastest and the slowest hash, s; None where hashes do not matter.
    """

    run: SharedRun
    laid: Laid
    hashes: tuple[OverHashes, ...] | None

    def job_rows(self) -> list[dict[str, Any]]:
        """One JSON row per job."""
        rows = self.run.job_rows()
        return rows if self.hashes is None else [r | of.row() for r, of in zip(rows, self.hashes, strict=True)]


def run_over_hashes(
    network: Network,
    seeds: Sequence[int],
    lay: Callable[[int], Laid],
    play: Callable[[Laid], SharedRun],
    chosen: int | None = None,
) -> RunOfHashes:
    """Run the jobs with each hash of routes; hashes with which the same demands meet are run once.

    Parameters
    ----------
    network : Network
        Network that the jobs share.
    seeds : sequence of int
        Seeds of the hashes, the scenario's own first.
    lay, play : callable
        Functions from a seed to jobs on links, and from these to a run.
    chosen : int, optional
        One of the seeds, whose run is wanted. Default: that with the median iteration times, the lower one of an even
        number.
    """
    runs: dict[tuple[Any, ...], SharedRun] = {}
    laid = [lay(seed) for seed in seeds]
    keys = [one.key(network) for one in laid]
    for key, one in zip(keys, laid, strict=True):
        if key not in runs:
            runs[key] = play(one)
    each = [runs[key] for key in keys]
    times = np.array([run.settled.mean(axis=1) for run in each])
    at = seeds.index(chosen) if chosen is not None else 0 if alike(times) else middle(times)
    if alike(times):
        return RunOfHashes(each[at], laid[at], None)
    ends = zip(times.min(axis=0).tolist(), times.max(axis=0).tolist(), strict=True)
    hashes = tuple(OverHashes(len(seeds), low, high, seeds[at]) for low, high in ends)
    return RunOfHashes(each[at], laid[at], hashes)
