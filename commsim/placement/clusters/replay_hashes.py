"""Replays of a trace over several hashes of routes: the one with the median completion time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from commsim.core.result import OverHashes
from commsim.prediction.plans.draws import FEW, HASHES, alike, hash_seeds, middle
from commsim.routing.routing import is_hashed

from .machines import Machines
from .outcome import ClusterReplay
from .simulate import simulate_cluster
from .trace_job import TraceJob

# Jobs up to which the usual number of hashes is drawn, and up to which a few are: a replay of more takes long, and its
# mean is over so many placements that one hash decides little.
SHORT, LONG = 50, 2000
__all__ = ["replay_over_hashes"]


def replay_over_hashes(
    machines: Machines, jobs: Sequence[TraceJob], policy: str, *, seed: int = 0, hashes: int | None = None, **how: Any
) -> ClusterReplay:
    """Replay a trace with several hashes of routes.

    Parameters
    ----------
    machines, jobs, policy, seed, how
        Same as in :func:`.simulate.simulate_cluster`.
    hashes : int, optional
        Number of hashes. Default: 8, 3 above 50 jobs and 1 above 2,000; 1 where the network hashes nothing. Two where
        no job's completion time differs between these.

    Returns
    -------
    ClusterReplay
        That with the median of the mean completion times, the lower one of an even number.
    """
    n = hashes or (HASHES if len(jobs) <= SHORT else FEW if len(jobs) <= LONG else 1)
    seeds = [seed, *hash_seeds(seed, n if is_hashed(machines.cluster.network.routing) else 1)]
    found = list[ClusterReplay]()
    for one in seeds:
        found.append(simulate_cluster(machines, jobs, policy, seed=seed, hash_seed=one, **how))
        if len(found) == 2 and found[0].jobs == found[1].jobs:
            break
    times = np.array([[one.jct_mean] for one in found])
    if alike(times):
        return found[0]
    at = middle(times)
    return replace(found[at], hashes=OverHashes(len(found), float(times.min()), float(times.max()), seeds[at]))
