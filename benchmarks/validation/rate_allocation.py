"""The rate at which workers can send when links and switches that aggregate are limited: a linear program.

Fragments that a switch aggregates arrive from each worker and leave as one stream, no slower than the fastest of them;
adding takes switch capacity in proportion to what arrives. What a worker sends may be divided among its ways. Where
there are several servers, each holds a part of the model, and a part has one size for all workers: all send a server at
the same rate, whichever server is nearer to them. A switch has one capacity for what it adds for all servers.

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

SERVER = "server"  # the name of the only one


@dataclass(frozen=True, slots=True)
class Way:
    """One way of a worker's fragments.

    Parameters
    ----------
    links : tuple of str
        From the worker to the switch that aggregates, or to the server.
    aggregator : str, optional
        That switch.
    server : str
        Where the fragments are sent in the end.
    """

    links: tuple[str, ...]
    aggregator: str | None = None
    server: str = SERVER


@dataclass(frozen=True, slots=True)
class Aggregator:
    """A switch that aggregates.

    Parameters
    ----------
    capacity : float
        Of what arrives to be added, for all servers together.
    links : mapping of str to tuple of str
        From it to each server.
    """

    capacity: float
    links: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Allocation:
    """Rates, in the unit of the capacities.

    Parameters
    ----------
    rate : float
        Of every worker, to all servers together; as high as it can be.
    shares : mapping of str to float
        What of it each server gets.
    sent : tuple of tuple of float
        Of each worker, on each of its ways.
    """

    rate: float
    shares: Mapping[str, float]
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
    _check(links, aggregators, workers)
    ways = [(w, way) for w, mine in enumerate(workers) for way in mine]
    streams = [(a, server) for a, one in aggregators.items() for server in one.links]
    servers = list(dict.fromkeys(way.server for _, way in ways))
    # Variables: what goes each way, the stream out of each aggregator to each server, and the share of each server.
    n_ways, n_sent = len(ways), len(ways) + len(streams)
    rows: list[Any] = []
    limits: list[float] = []
    for name, capacity in links.items():
        used = [aggregators[a].links[server].count(name) for a, server in streams]
        rows.append([*(way.links.count(name) for _, way in ways), *used, *(0 for _ in servers)])
        limits.append(capacity)
    for a, one in aggregators.items():
        rows.append([float(i < n_ways and ways[i][1].aggregator == a) for i in range(n_sent + len(servers))])
        limits.append(one.capacity)
    for i, (_, way) in enumerate(ways):
        if way.aggregator is not None:  # the stream is at least as fast as this part of it
            row = np.zeros(n_sent + len(servers))
            row[i], row[n_ways + streams.index((way.aggregator, way.server))] = 1, -1
            rows.append(row)
            limits.append(0.0)
    for worker in range(len(workers)):
        for s, server in enumerate(servers):  # each worker sends a server the whole share: parts are equal for all
            row = np.zeros(n_sent + len(servers))
            row[:n_ways] = [-float(w == worker and way.server == server) for w, way in ways]
            row[n_sent + s] = 1
            rows.append(row)
            limits.append(0.0)
    found = linprog([0.0] * n_sent + [-1.0] * len(servers), np.array(rows, float), limits, method="highs")
    if found.x is None:
        raise InputError(f"no rates can be found: {found.message}")
    sent = iter(found.x[:n_ways].tolist())
    shares = dict(zip(servers, found.x[n_sent:].tolist(), strict=True))
    return Allocation(sum(shares.values()), shares, tuple(tuple(next(sent) for _ in mine) for mine in workers))


def _check(links: Mapping[str, float], aggregators: Mapping[str, Aggregator], workers: Sequence[Sequence[Way]]) -> None:
    if not workers or not all(workers):
        raise InputError("every worker needs a way to the server")
    used = {link for one in aggregators.values() for path in one.links.values() for link in path}
    used |= {link for mine in workers for way in mine for link in way.links}
    if unknown := used - set(links):
        raise InputError(f"unknown links {', '.join(sorted(unknown))}; known: {', '.join(links)}")
    named = {way.aggregator for mine in workers for way in mine if way.aggregator is not None}
    if unknown := named - set(aggregators):
        raise InputError(f"unknown aggregators {', '.join(sorted(unknown))}; known: {', '.join(aggregators)}")
    for mine in workers:
        for way in mine:
            if way.aggregator is not None and way.server not in aggregators[way.aggregator].links:
                reached = ", ".join(aggregators[way.aggregator].links)
                raise InputError(f"aggregator {way.aggregator} has no links to {way.server}; it has: {reached}")


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


LINK, INTAKE_RATE, SWITCH = 3.0, 9.0, 9.0
HOME = ("S1", "S1", "S1", "S1", "S2", "S2", "S3", "S3")
INTAKE = "S3-server"
LINKS = {f"worker{w}": LINK for w in range(len(HOME))} | {
    "S1-S2": LINK,
    "S1-S3": LINK,
    "S2-S3": LINK,
    INTAKE: INTAKE_RATE,
}
ONWARD = {"S1": ("S1-S3", INTAKE), "S2": ("S2-S3", INTAKE), "S3": (INTAKE,)}
AROUND = ("S1-S2", *ONWARD["S2"])
AGGREGATORS = {switch: Aggregator(SWITCH, {SERVER: links}) for switch, links in ONWARD.items()}


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


RACKS, PER_RACK = 2, 3


def two_servers(between: float, *, switch: float = 6.0, server: float = 3.0) -> Allocation:
    """Two racks of three workers, a server and a switch that adds; each worker sends to both servers.

    A share is s = a + u for either server, of which a is added and u sent as it is. The link between the racks carries
    a + 3 u of the far server's, a server's link the same for both racks, and a switch adds 3 a for both servers.

    Parameters
    ----------
    between : float
        Capacity between the racks, each way.
    switch, server : float
        What a switch adds, for both servers together, and what a server's link takes.
    """
    names = [f"server{r}" for r in range(RACKS)]
    links = dict.fromkeys(names, server) | {f"from{r}": between for r in range(RACKS)}
    onward = [
        {name: (name,) if r == there else (f"from{r}", name) for there, name in enumerate(names)} for r in range(RACKS)
    ]
    ways = [[Way((), f"switch{r}", name) for name in names] + [Way(onward[r][name], server=name) for name in names]
            for r in range(RACKS)]  # fmt: skip
    switches = {f"switch{r}": Aggregator(switch, onward[r]) for r in range(RACKS)}
    return allocate(links, switches, [ways[r] for r in range(RACKS) for _ in range(PER_RACK)])
