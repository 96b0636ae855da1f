"""KungFu's communication graphs as schedules, and its pair averaging.

A strategy is one or several pairs of a reduce graph and a broadcast graph; with several, each has an equal part of the
data. A rank sends to the next of its graph when all of its own have arrived.

References
----------
Mai et al., "KungFu: making training in distributed machine learning adaptive", OSDI 2020, and the strategies of its
code: star, ring, clique, tree, binary tree, binary tree star.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError, unknown_name
from commsim.core.placement import place
from commsim.core.program import Program
from commsim.core.schedule import Schedule
from commsim.core.units import Bandwidth, Bytes, Seconds
from commsim.prediction.read import scenario_of
from commsim.prediction.solve import solve
from topologies.star import star

from . import Answer, training_system

STRATEGIES = ("star", "ring", "clique", "tree", "binary_tree", "binary_tree_star")


@training_system("Mai et al., OSDI 2020")
def kungfu(
    *,
    strategy: str = "binary_tree_star",
    n_ranks: int = 8,
    ranks_per_host: int = 4,
    size: Bytes = 64e6,
    bandwidth: Bandwidth = 12.5e9,
    latency: Seconds = 1e-6,
    iterations: int = 10,
    seed: int = 0,
) -> Answer:
    """KungFu: all-reduce over one of its graphs on a star, and pair averaging in place of it.

    Parameters
    ----------
    strategy : str
        star, ring, clique, tree, binary_tree or binary_tree_star.
    n_ranks, ranks_per_host : int
        Ranks, and how many in a row are on one host.
    size : float, bytes
        Size of the gradients.
    bandwidth : float, bytes/s
        Bandwidth of each rank's link.
    latency : float, s
        Latency of each link.
    iterations, seed : int
        Number of rounds of pair averaging, and seed of their pairs.

    Returns
    -------
    dict
        The time of an all-reduce, and by what factor pair averaging reduces the spread of models.
    """
    if ranks_per_host < 1:
        raise InputError(f"ranks_per_host must be at least 1, got {ranks_per_host}")
    schedule = kungfu_all_reduce(strategy, n_ranks, [rank // ranks_per_host for rank in range(n_ranks)])
    network = star(max(n_ranks, 2), bandwidth, latency)
    (result,) = solve(scenario_of(schedule, network, placement=place(network, n_ranks), overhead=0.0), [size]).results
    answer: Answer = {"time_s": result.time, "messages": schedule.n_transfers}
    answer["max_link_bytes"] = float(result.link_bytes.max())
    if n_ranks > 1:
        models = np.arange(float(n_ranks))
        for peers in pair_averaging(n_ranks, iterations, seed):
            models = average_pairs(models, peers)
        answer["pair_averaging_spread"] = float(np.ptp(models)) / (n_ranks - 1)
    return answer


def kungfu_all_reduce(strategy: str, n_ranks: int, hosts: Sequence[int] | None = None) -> Schedule:
    """All-reduce over one of KungFu's graphs.

    Parameters
    ----------
    strategy : str
        One of :data:`STRATEGIES`. A star has its centre at rank 0. A ring reduces along a chain and broadcasts along
        it, once for each rank as its end; a clique is a star for each rank. A tree has all ranks of a host below the
        host's first, and these below rank 0; a binary tree has all ranks in it, or (with star) only the hosts' first.
    n_ranks : int
        p.
    hosts : sequence of int, optional
        Host of each rank; by default each has its own.

    Raises
    ------
    InputError
        If the strategy is unknown, or hosts are not one per rank.
    """
    hosts = range(n_ranks) if hosts is None else hosts
    if strategy not in STRATEGIES:
        raise unknown_name("strategy", strategy, STRATEGIES)
    if n_ranks < 1 or len(hosts) != n_ranks:
        raise InputError(f"needs at least 1 rank and a host for each, got {n_ranks} ranks and {len(hosts)} hosts")
    parents = _parents(strategy, n_ranks, hosts)
    p = Program(n_ranks, n_chunks=len(parents))
    for chunk, (up, down) in enumerate(parents):
        _along(p, chunk, up, upwards=True)
        _along(p, chunk, down, upwards=False)
    return p.build(f"kungfu_{strategy}", "all_reduce")


def pair_averaging(n_ranks: int, n_iterations: int, seed: int = 0) -> NDArray[np.int64]:
    """Draw the peer whose model each rank asks for and averages with its own, anew in each iteration, never itself.

    Returns
    -------
    int64[n_iterations, n_ranks]

    Raises
    ------
    InputError
        If there are fewer than 2 ranks, or no iteration.
    """
    if n_ranks < 2 or n_iterations < 1:
        raise InputError(f"pair averaging needs 2 ranks and 1 iteration, got {n_ranks} and {n_iterations}")
    drawn = np.random.default_rng(seed).integers(0, n_ranks - 1, (n_iterations, n_ranks))
    return np.asarray(drawn + (drawn >= np.arange(n_ranks)), np.int64)


def average_pairs(models: NDArray[np.float64], peers: NDArray[np.int64]) -> NDArray[np.float64]:
    """Average each rank's model with its peer's of the same time; `peers` is one row of :func:`pair_averaging`."""
    return np.asarray((models + models[peers]) / 2)


def _parents(strategy: str, n: int, hosts: Sequence[int]) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Reduce and broadcast tree of each chunk, as the parent of each rank; the root is its own."""
    rank = np.arange(n)
    if strategy == "ring":  # from r+1 round to r, which has the sum, and on from r to r-1
        pairs = []
        for r in range(n):
            up, down = (rank + 1) % n, (rank - 1) % n
            up[r] = down[r] = r
            pairs.append((up, down))
        return pairs
    if strategy == "clique":
        return [(np.full(n, r), np.full(n, r)) for r in range(n)]
    first = {host: r for r, host in reversed(list(enumerate(hosts)))}
    masters = sorted(first.values())
    above = np.array([first[host] for host in hosts])
    if strategy == "star":
        above = np.zeros(n, np.int64)
    elif strategy == "tree":
        above[masters] = 0
    elif strategy == "binary_tree":
        above = np.maximum(0, (rank - 1) // 2)
    else:
        above[masters] = [masters[max(0, (i - 1) // 2)] for i in range(len(masters))]
    return [(above, above)]


def _along(p: Program, chunk: int, parent: NDArray[np.int64], *, upwards: bool) -> None:
    """Write one hop per level of a tree: towards its root, adding, or away from it."""
    rank = np.arange(len(parent))
    depth, above = np.zeros(len(parent), np.int64), rank
    while (moving := above != parent[above]).any():
        depth += moving
        above = parent[above]
    levels = range(1, int(depth.max()) + 1)
    for level in reversed(levels) if upwards else levels:
        below = rank[depth == level]
        if upwards:
            p.reduce(chunk, src=below, dst=parent[below])
        else:
            p.copy(chunk, src=parent[below], dst=below)
