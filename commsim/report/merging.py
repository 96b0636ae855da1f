"""Which nodes become one box, so that a large network stays readable."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network
from commsim.core.network_queries import tiers

MAX_IN_ROW, SHOWN_AT_ENDS = 48, 12
MAX_IN_ROW_IF_ASKED = 256
"""Where nothing is to be collapsed, and for a grid."""
MAX_BUNDLES = 160
"""Pairs of boxes with links between them, beyond which switches with the same neighbours are one box as well."""
Numbers = NDArray[np.int64]


def machines(network: Network, merge: bool) -> tuple[Numbers, Numbers]:
    """Return the element (node or machine) of each node, and the row of each element."""
    part = np.arange(network.n_nodes)
    if merge and (len(np.unique(network.machine)) > 1 or (network.machine < 0).all()):
        part = np.where(network.machine >= 0, network.n_nodes + network.machine, part)
    _, first, of_node = np.unique(part, return_index=True, return_inverse=True)
    of_node = np.argsort(np.argsort(first))[of_node]
    tier = tiers(network)
    tier = np.where(tier < 0, tier.max() + 1, tier)  # what no endpoint reaches stands above all
    lowest = np.full(len(first), network.n_nodes)
    np.minimum.at(lowest, of_node, tier)
    return of_node, np.unique(lowest, return_inverse=True)[1]


def fewer(network: Network, of_node: Numbers, row: Numbers) -> Numbers:
    """Merge in the bottom row, and then in others, those with the most elements first, until few bundles are left."""
    ends = _ends(network, of_node)
    unit = np.arange(len(row))
    for level in (0, *(1 + np.argsort(-np.bincount(row)[1:], kind="stable"))):
        if level and len(np.unique(elided_rows(unit, row, MAX_IN_ROW)[0][ends], axis=0)) <= 2 * MAX_BUNDLES:
            break
        unit = np.where(row == level, _merged(network, of_node, row == level, ends), unit)
    return unit


def _ends(network: Network, of_node: Numbers) -> Numbers:
    """Return (element, neighbour) for all links, both ways, sorted."""
    src, dst = of_node[network.src], of_node[network.dst]
    ends = np.concatenate((np.stack((src, dst), 1), np.stack((dst, src), 1)))
    return np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0)


def _merged(network: Network, of_node: Numbers, which: NDArray[np.bool_], ends: Numbers) -> Numbers:
    """Return the unit of each element: of `which` elements, those of a kind that have the same neighbours are one."""
    begin = np.searchsorted(ends[:, 0], np.arange(len(which) + 1))
    kind = np.empty(len(which), np.int64)
    kind[of_node[::-1]] = network.kind[::-1]
    unit = np.arange(len(which))
    seen: dict[tuple[int, bytes], int] = {}
    for element in np.flatnonzero(which).tolist():
        key = int(kind[element]), ends[begin[element] : begin[element + 1], 1].tobytes()
        unit[element] = seen.setdefault(key, element)
    return unit


def elided_rows(unit: Numbers, row: Numbers, most: int) -> tuple[Numbers, NDArray[np.bool_]]:
    """Make the middle of long rows one unit; which elements are in such a middle."""
    elided = np.zeros(len(unit), np.bool_)
    for level in range(int(row.max()) + 1):
        units = np.unique(unit[row == level])
        if len(units) > most:
            middle = (row == level) & np.isin(unit, units[SHOWN_AT_ENDS:-SHOWN_AT_ENDS])
            elided |= middle
            unit = np.where(middle, units[SHOWN_AT_ENDS], unit)
    return unit, elided
