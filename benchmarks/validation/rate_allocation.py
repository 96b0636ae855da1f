"""The rate at which workers can send when links and switches that aggregate are limited: a linear program.

Fragments that a switch aggregates arrive from each worker and leave as one stream, no slower than the fastest of them;
adding takes switch capacity in proportion to what arrives. What a worker sends may be divided among its ways. All
workers need the same rate in the end, so the least of them counts.

A published worked example of rates: one server, eight workers, three switches, and three schemes.

Workers 0 to 3 are on switch S1, 4 and 5 on S2, 6 and 7 on S3, beside the server. Links carry 3, the server takes in 9,
and each switch adds up to 9 (Gb/s). Published for the slowest worker are 1 without aggregation (Geryon), 2.43 with ATP
and 3 with GRID.

Which links there are and how flows go is our reconstruction from these numbers, under which all three come out:

- The switches form a triangle. Without aggregation worker 3 goes through S2 and the others of S1 straight to S3, so
  that each link into S3 has three flows. The bound does not depend on that: six workers cross to S3 over links of 6.
- ATP's flows keep to their shortest paths. S1 adds 9/4 = 2.25 of each of its four workers, and one stream of that
  leaves on the link of 3. What is left of it, 0.75, the four share: 2.25 + 0.1875 = 2.4375. The published number and
  its sum, 2.25 + 0.18, are cut off after two digits. ATP's second level, at S3, is left out.
- GRID sends worker 3's fragments to be added at S2, so that each switch adds 9 at most: 3, the workers' own links.

References
----------
GRID (ToN 2023), section 3.1 and figure 1.
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


LINK, SERVER, SWITCH = 3.0, 9.0, 9.0
HOME = ("S1", "S1", "S1", "S1", "S2", "S2", "S3", "S3")
INTAKE = "S3-server"
LINKS = {f"worker{w}": LINK for w in range(len(HOME))} | {
    "S1-S2": LINK,
    "S1-S3": LINK,
    "S2-S3": LINK,
    INTAKE: SERVER,
}
ONWARD = {"S1": ("S1-S3", INTAKE), "S2": ("S2-S3", INTAKE), "S3": (INTAKE,)}
AROUND = ("S1-S2", *ONWARD["S2"])
AGGREGATORS = {switch: Aggregator(SWITCH, links) for switch, links in ONWARD.items()}


def unaggregated(split: bool = False) -> Allocation:
    """Send straight to the server: on one path for each flow as Geryon has it, or divided over both."""
    ways = []
    for worker, home in enumerate(HOME):
        paths = [ONWARD[home], AROUND] if home == "S1" else [ONWARD[home]]
        if not split:
            paths = [AROUND] if worker == 3 else [ONWARD[home]]
        ways.append([Way((f"worker{worker}", *path)) for path in paths])
    return allocate(LINKS, {}, ways)


def atp() -> Allocation:
    """Add at the worker's own switch while that has capacity, and send the rest on the same path."""
    ways = [
        [Way((f"worker{worker}",), home), Way((f"worker{worker}", *ONWARD[home]))] for worker, home in enumerate(HOME)
    ]
    return allocate(LINKS, AGGREGATORS, ways)


def grid() -> Allocation:
    """Add at one switch for each worker, its own or, for worker 3, S2."""
    ways = [
        [Way((f"worker{worker}", "S1-S2"), "S2") if worker == 3 else Way((f"worker{worker}",), home)]
        for worker, home in enumerate(HOME)
    ]
    return allocate(LINKS, AGGREGATORS, ways)
