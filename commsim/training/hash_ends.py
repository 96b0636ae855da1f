"""Ends of a time that is made of exchanges, over hashes of routes.

Each exchange is the median over hashes by itself; the ends of their sum or maximum are those with each exchange at its
fastest and at its slowest hash, and so at least as far apart as any one hash makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, Self, TypeAlias, runtime_checkable

import numpy as np

from commsim.core.network import Network
from commsim.core.result import OverHashes, Result
from commsim.prediction.plans.draws import DIFFERS, HASHES, alike, draws_of, hash_seeds, middle, more_seeds
from commsim.prediction.work_plan import Outcome
from commsim.routing.routing import is_hashed

from .task_graph import Task

# Times of an exchange over hashes of routes: the median, and the ends.
MEDIAN, FASTEST, SLOWEST = range(3)
# Networks whose draws are few messages, which may be alike by chance.
FEW_LINKS = 200
Times: TypeAlias = tuple[float, float, float]


@runtime_checkable
class DrawnCosts(Protocol):
    """Costs of exchanges whose routes are drawn: a callable from a task to the time of the hash that was chosen."""

    @property
    def n_drawn(self) -> int:
        """Hashes of routes that were drawn for an exchange whose times differ; 0 where none do so far."""

    def at(self, which: int) -> Self:
        """Return the same costs with the `FASTEST` or the `SLOWEST` hash of each exchange, in place of the `MEDIAN`."""

    def __call__(self, task: Task) -> float:
        """Return the time of a task, s."""


def times_over_hashes(
    network: Network, seed: int, n: int | None, play: Callable[[int], tuple[Result, ...]]
) -> tuple[list[list[float]], int]:
    """Play what shares links with several hashes of routes.

    Parameters
    ----------
    network : Network
        Network, whose routing says whether routes are hashed.
    seed, n : int, int or None
        Seed of the first hash, and number of hashes. Default: 8.
    play : callable
        Function from the seed of a hash to results.

    Returns
    -------
    list of list of float, int
        Times by `MEDIAN`, `FASTEST` and `SLOWEST`, s, and the number of hashes that were drawn; 1 where they do not
        matter.
    """
    seeds = hash_seeds(seed, (n or HASHES) if is_hashed(network.routing) else 1)
    more = more_seeds(network, seed, 1 + len(seeds), is_small=network.n_links <= FEW_LINKS)
    draws = draws_of(network, Outcome(play(seed)), seeds, lambda one: Outcome(play(one)), more)
    times = np.array([[result.time for result in draw.results] for draw in draws])
    if alike(times):
        return [times[0].tolist()] * 3, 1
    return [times[middle(times)].tolist(), times.min(axis=0).tolist(), times.max(axis=0).tolist()], len(draws)


def seed_of_hash(results: Iterable[Result], seed: int) -> int:
    """Return the seed of the draw whose results these are, of a scenario with some seed."""
    chosen = (one.hashes.seed for one in results if one.hashes is not None)
    return next((one for one in chosen if one is not None), seed)


def spread_of(
    time_of: Callable[[Task], float], total: Callable[[Callable[[Task], float]], float], median: float
) -> OverHashes | None:
    """Return the ends of a time that is a sum or a maximum of exchanges, over hashes of routes.

    Parameters
    ----------
    time_of : callable
        What exchanges cost.
    total : callable
        Function from such costs to the time.
    median : float, s
        The time with the median of each exchange, which has been found before.

    Returns
    -------
    OverHashes or None
        The time with each exchange at its fastest and at its slowest hash; None where they are within 1 %.
    """
    if not isinstance(time_of, DrawnCosts) or not time_of.n_drawn:
        return None
    return ends_of(time_of.n_drawn, median, [total(time_of.at(which)) for which in (FASTEST, SLOWEST)])


def ends_of(n: int, median: float, ends: Sequence[float]) -> OverHashes | None:
    """Return n draws with their ends, which have the median between them; None where they are within 1 %."""
    # an exchange that ends earlier may begin another beside a third, which then ends later
    low, high = min(median, *ends), max(median, *ends)
    return OverHashes(n, low, high) if high > (1 + DIFFERS) * low else None
