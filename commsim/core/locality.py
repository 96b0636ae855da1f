"""What is near what: machines, racks, pods, found by climbing from each endpoint along the first link upwards."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .network import SWITCH, Network

_NAMES = ("machine", "rack", "pod")


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """One level of locality.

    Parameters
    ----------
    name : str
        ``machine``, ``rack``, ``pod``, then ``tier 4`` and so on.
    group : int64[n_endpoints]
        Which group each endpoint is in, numbered from 0 in the order of the groups' first endpoints.
    """

    name: str
    group: NDArray[np.int64]


def locality_levels(network: Network) -> tuple[Level, ...]:
    """Find the levels of locality, the innermost first; each group lies inside one group of the next level.

    Endpoints are in one machine as the network says. Machines are in one rack when the first switch that they are
    cabled to is the same; racks in one pod when the first switch of the next tier that theirs are cabled to is the
    same, and so on, up to the tier from which nothing leads up. "First" is by the number of the link.

    Returns
    -------
    tuple of Level
        At least the machines. Groups may be single endpoints, or all of them.
    """
    unit = units(network)
    above = first_above(network, unit)
    at = unit[network.endpoints]
    levels = [Level("machine", numbered(at))]
    while (above[at] != at).any():
        at = above[at]
        n = len(levels)
        levels.append(Level(_NAMES[n] if n < len(_NAMES) else f"tier {n}", numbered(at)))
    return tuple(levels)


def racks(network: Network) -> NDArray[np.int64]:
    """Rack of each endpoint: those whose machines are cabled to the same switch first are in one.

    Returns
    -------
    int64[n_endpoints]
        Rack numbers from 0, in the order of the racks' first endpoints; a machine without a switch outside of it is
        a rack of its own.
    """
    levels = locality_levels(network)
    return levels[min(1, len(levels) - 1)].group


def units(network: Network) -> NDArray[np.int64]:
    """Return the number of the machine that each node is in; what is in none is one by itself."""
    n_machines = int(network.machine.max()) + 1
    return np.where(network.machine >= 0, network.machine, n_machines + np.arange(network.n_nodes)).astype(np.int64)


def first_above(network: Network, unit: NDArray[np.int64]) -> NDArray[np.int64]:
    """By unit, the switch one tier up that its first link leads to; itself where there is none."""
    n_units = int(unit.max()) + 1
    src, dst = unit[network.src], unit[network.dst]
    is_switch = np.zeros(n_units, np.bool_)
    is_switch[unit[(network.kind == SWITCH) & (network.machine < 0)]] = True
    tier = np.where(is_switch, -1, 0)
    level = 0
    while True:
        found = dst[(tier[src] == level) & (tier[dst] < 0)]
        if not found.size:
            break
        level += 1
        tier[found] = level
    links = np.flatnonzero((tier[src] >= 0) & (tier[dst] == tier[src] + 1))[::-1]  # so that the first is written last
    above = np.arange(n_units)
    above[src[links]] = dst[links]
    return above


def numbered(key: NDArray[np.int64]) -> NDArray[np.int64]:
    """Renumber keys from 0, in the order of their first appearance."""
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]
