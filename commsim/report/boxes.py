"""What is drawn as one box: a node, a whole machine, endpoints that hang on the same switches, the middle of a row."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network
from commsim.core.network_metrics import tiers
from commsim.core.node_kind import KINDS, PLURALS

from .grid import grid_dims
from .palette import MACHINE

MOST_ENDPOINTS = 48
"""Drawn one by one unless asked otherwise."""
MOST_IN_ROW, SHOWN_AT_ENDS = 48, 12
MOST_IN_ROW_IF_ASKED = 256
"""Where nothing is to be collapsed, and for a grid."""
MOST_BUNDLES = 160
"""Pairs of boxes with links between them, beyond which switches with the same neighbours are one box as well."""
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """How the nodes of a network are drawn.

    Parameters
    ----------
    of_node : int64[n_nodes]
        Box of each node; boxes are numbered in the order of their first nodes.
    row : int64[n_boxes]
        Row of each box, 0 at the bottom.
    kind : int64[n_boxes]
        An index of ``KINDS``, or ``MACHINE``.
    size : int64[n_boxes]
        How many nodes or machines a box stands for.
    label, title : tuple of str
        What is written in each box, and what its tooltip says.
    notes : tuple of str
        What was drawn as one, to be told to the reader.
    """

    of_node: Numbers
    row: Numbers
    kind: Numbers
    size: Numbers
    label: tuple[str, ...]
    title: tuple[str, ...]
    notes: tuple[str, ...]


def make_boxes(network: Network, collapse: bool | None = None) -> Boxes:
    """Choose the boxes of a network's picture.

    Parameters
    ----------
    network : Network
        To be drawn; a node is in the row of its tier.
    collapse : bool, optional
        Whether a machine is one box, and endpoints or machines with the same neighbours are one box together. By
        default when there are more than ``MOST_ENDPOINTS``. The middle of rows that are still long is one box.
    """
    notes: list[str] = []
    n_endpoints = len(network.endpoints)
    plural = PLURALS[network.seat_kind]
    if collapse is None and n_endpoints > MOST_ENDPOINTS:
        notes.append(f"collapsed, since there are more than {MOST_ENDPOINTS} {plural}")
    asked = collapse is not None and not collapse
    of_node, row = _machines(network, merge=n_endpoints > MOST_ENDPOINTS if collapse is None else collapse)
    unit = np.arange(len(row))
    if collapse or notes:
        ends = _ends(network, of_node)
        unit = _merged(network, of_node, row == 0, ends)
        if len(np.unique(unit[ends], axis=0)) > 2 * MOST_BUNDLES:
            unit = _merged(network, of_node, row >= 0, ends)
    long = MOST_IN_ROW_IF_ASKED if asked or grid_dims(network) else MOST_IN_ROW
    unit, elided = _elided(unit, row, long)
    if elided.any():
        notes.append(f"of rows with more than {long} boxes the middle is one box")
    first, of_unit = np.unique(unit, return_index=True, return_inverse=True)[1:]
    size = np.bincount(of_unit)
    label, title, kind = _describe(network, of_unit[of_node], size, elided[first])
    return Boxes(of_unit[of_node], row[first], kind, size, label, title, tuple(notes))


def _machines(network: Network, merge: bool) -> tuple[Numbers, Numbers]:
    """Number of the element (node or machine) that each node belongs to, and the row of each element."""
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


def _ends(network: Network, of_node: Numbers) -> Numbers:
    """Return (element, neighbour) for all links, both ways, sorted."""
    src, dst = of_node[network.src], of_node[network.dst]
    ends = np.concatenate((np.stack((src, dst), 1), np.stack((dst, src), 1)))
    return np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0)


def _merged(network: Network, of_node: Numbers, which: NDArray[np.bool_], ends: Numbers) -> Numbers:
    """Unit of each element: of `which` elements, those of a kind that have the same neighbours are one."""
    begin = np.searchsorted(ends[:, 0], np.arange(len(which) + 1))
    kind = np.empty(len(which), np.int64)
    kind[of_node[::-1]] = network.kind[::-1]
    unit = np.arange(len(which))
    seen: dict[tuple[int, bytes], int] = {}
    for element in np.flatnonzero(which).tolist():
        key = int(kind[element]), ends[begin[element] : begin[element + 1], 1].tobytes()
        unit[element] = seen.setdefault(key, element)
    return unit


def _elided(unit: Numbers, row: Numbers, most: int) -> tuple[Numbers, NDArray[np.bool_]]:
    """Make the middle of long rows one unit; which elements are in such a middle."""
    elided = np.zeros(len(unit), np.bool_)
    for level in range(int(row.max()) + 1):
        units = np.unique(unit[row == level])
        if len(units) > most:
            middle = (row == level) & np.isin(unit, units[SHOWN_AT_ENDS:-SHOWN_AT_ENDS])
            elided |= middle
            unit = np.where(middle, units[SHOWN_AT_ENDS], unit)
    return unit, elided


def _describe(
    network: Network, of_node: Numbers, size: Numbers, elided: NDArray[np.bool_]
) -> tuple[tuple[str, ...], tuple[str, ...], Numbers]:
    """Label, title and kind of each box."""
    labels, titles, kinds = [], [], []
    order = np.argsort(of_node, kind="stable")
    for box, nodes in enumerate(np.split(order, np.cumsum(np.bincount(of_node))[:-1])):
        machines = np.unique(network.machine[nodes])
        is_machine = len(nodes) > size[box] and machines[0] >= 0
        kind = MACHINE if is_machine else int(network.kind[nodes[0]])
        plural = "machines" if is_machine else PLURALS[kind]
        names = [network.nodes[nodes[0]], network.nodes[nodes[-1]]]
        if is_machine:
            ends = (nodes[network.machine[nodes] == m] for m in (machines[0], machines[-1]))
            names = [_machine_name(network, of_machine) for of_machine in ends]
        if size[box] == 1:
            labels.append(names[0])
            what = _content(network, nodes) if is_machine else KINDS[kind]
            titles.append(f"{names[0]}: {what}")
        else:
            labels.append(f"{size[box]} more" if elided[box] else f"{size[box]} {plural}")
            titles.append(f"{size[box]} {plural}: {names[0]} … {names[1]}")
        kinds.append(kind)
    return tuple(labels), tuple(titles), np.array(kinds, np.int64)


def _machine_name(network: Network, nodes: Numbers) -> str:
    """What the names of a machine's nodes begin with, up to a separator; else its number."""
    begin = os.path.commonprefix([network.nodes[node] for node in nodes])
    cut = max(begin.rfind(separator) for separator in "._-/:")
    return begin[:cut] if cut > 0 else f"machine {network.machine[nodes[0]]}"


def _content(network: Network, nodes: Numbers) -> str:
    count = np.bincount(network.kind[nodes], minlength=len(KINDS))
    return ", ".join(f"{n} {KINDS[k] if n == 1 else PLURALS[k]}" for k, n in enumerate(count) if n)
