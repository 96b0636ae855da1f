"""The rate at which workers can send when links and switches that aggregate are limited: a linear program.

Fragments that a switch aggregates arrive from each worker and leave as one stream, no slower than the fastest of them;
adding takes switch capacity in proportion to what arrives. What a worker sends may be divided among its ways. All
workers need the same rate in the end, so the least of them counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from commsim.core.errors import InputError


@dataclass(frozen=True, slots=True)
class Way:
    """One way of a worker's fragments.

    Parameters
    ----------
    links : tuple of str
        From the worker to the switch that aggregates, or to the server.
    aggregator : str, optional
        That switch.
    """

    links: tuple[str, ...]
    aggregator: str | None = None


@dataclass(frozen=True, slots=True)
class Aggregator:
    """A switch that aggregates.

    Parameters
    ----------
    capacity : float
        Of what arrives to be added.
    links : tuple of str
        From it to the server.
    """

    capacity: float
    links: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Allocation:
    """Rates, in the unit of the capacities.

    Parameters
    ----------
    rate : float
        Of the slowest worker, which is as high as it can be.
    sent : tuple of tuple of float
        Of each worker, on each of its ways.
    """

    rate: float
    sent: tuple[tuple[float, ...], ...]


def allocate(
    links: Mapping[str, float], aggregators: Mapping[str, Aggregator], workers: Sequence[Sequence[Way]]
) -> Allocation:
    """Find rates on the given ways for which the slowest worker is as fast as possible.

    Parameters
    ----------
    links : mapping of str to float
        Capacity of each link; the server's own intake is one of them.
    aggregators : mapping of str to Aggregator
        By the names that ways use.
    workers : sequence of sequence of Way
        The ways of each worker, at least one.

    Raises
    ------
    InputError
        If a name is unknown, or SciPy (the extra ``opt``) is missing.
    """
    try:
        import numpy as np
        from scipy.optimize import linprog
    except ImportError:
        raise InputError("allocating rates needs SciPy: pip install 'commsim[opt]'") from None
    ways = [(w, way) for w, mine in enumerate(workers) for way in mine]
    _check(links, aggregators, workers)
    names, n_ways = list(aggregators), len(ways)
    # Variables: what goes each way, the stream out of each aggregator, and last the rate of the slowest.
    rows: list[Any] = []
    limits: list[float] = []
    for name, capacity in links.items():
        rows.append(
            [*(way.links.count(name) for _, way in ways), *(aggregators[a].links.count(name) for a in names), 0]
        )
        limits.append(capacity)
    for a in names:
        rows.append([*(way.aggregator == a for _, way in ways), *(0 for _ in names), 0])
        limits.append(aggregators[a].capacity)
    for i, (_, way) in enumerate(ways):
        if way.aggregator is not None:  # the stream is at least as fast as this part of it
            rows.append([*(j == i for j in range(n_ways)), *(-(a == way.aggregator) for a in names), 0])
            limits.append(0.0)
    for worker in range(len(workers)):
        rows.append([*(-(w == worker) for w, _ in ways), *(0 for _ in names), 1])
        limits.append(0.0)
    found = linprog([0.0] * (n_ways + len(names)) + [-1.0], np.array(rows, float), limits, method="highs")
    if found.x is None:
        raise InputError(f"no rates can be found: {found.message}")
    sent = iter(found.x[:n_ways].tolist())
    return Allocation(float(found.x[-1]), tuple(tuple(next(sent) for _ in mine) for mine in workers))


def _check(links: Mapping[str, float], aggregators: Mapping[str, Aggregator], workers: Sequence[Sequence[Way]]) -> None:
    if not workers or not all(workers):
        raise InputError("every worker needs a way to the server")
    used = {link for one in aggregators.values() for link in one.links}
    used |= {link for mine in workers for way in mine for link in way.links}
    if unknown := used - set(links):
        raise InputError(f"unknown links {', '.join(sorted(unknown))}; known: {', '.join(links)}")
    named = {way.aggregator for mine in workers for way in mine if way.aggregator is not None}
    if unknown := named - set(aggregators):
        raise InputError(f"unknown aggregators {', '.join(sorted(unknown))}; known: {', '.join(aggregators)}")


def push_pull_time(n_bytes: float, rate: float) -> float:
    """Time to send a model to the server and to fetch the result, one after the other at the same rate: 2 S / rate.

    Parameters
    ----------
    n_bytes : float, bytes
        S.
    rate : float, bytes/s
        Of the slowest worker.
    """
    if not (n_bytes >= 0 and rate > 0):
        raise InputError(f"a model of 0 bytes or more needs a positive rate, got {n_bytes} and {rate}")
    return 2 * n_bytes / rate
