"""The boxes of a network's picture, and the bundles of links between them.

A box is a node, a whole machine, endpoints on the same switches, or the middle of a long row, so that a large network
stays readable.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.network import KINDS, PLURALS, Network
from commsim.core.network_queries import tiers
from commsim.pages.palette import GAP, MACHINE

from .picture import text_width

MAX_IN_ROW, SHOWN_AT_ENDS = 48, 12
# Where nothing is to be collapsed, and for a grid.
MAX_IN_ROW_IF_ASKED = 256
# Pairs of boxes with links between them, beyond which switches with the same neighbours are one box as well.
MAX_BUNDLES = 160
Numbers = NDArray[np.int64]
# Drawn one by one unless asked otherwise.
MAX_ENDPOINTS = 48
# Pixels of the widest row, beyond which machines are not drawn part by part unless asked.
MAX_WIDTH = 2000.0
MAX_DIMS = 3


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


def _fewer(network: Network, of_node: Numbers, row: Numbers) -> Numbers:
    """Merge in the bottom row, and then in others, those with the most elements first, until few bundles are left."""
    ends = _ends(network, of_node)
    unit = np.arange(len(row))
    for level in (0, *(1 + np.argsort(-np.bincount(row)[1:], kind="stable"))):
        if level and len(np.unique(_elided_rows(unit, row, MAX_IN_ROW)[0][ends], axis=0)) <= 2 * MAX_BUNDLES:
            break
        unit = np.where(row == level, _merged(network, of_node, row == level, ends), unit)
    return unit


def _ends(network: Network, of_node: Numbers) -> Numbers:
    """Return (element, neighbour) for all links, both ways, sorted."""
    src, dst = of_node[network.src], of_node[network.dst]
    ends = np.concatenate((np.stack((src, dst), 1), np.stack((dst, src), 1)))
    return np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0)


def _merged(network: Network, of_node: Numbers, which: NDArray[np.bool_], ends: Numbers) -> Numbers:
    """Return the unit of each element: of the elements in `which`, those of a kind with the same neighbours are one."""
    begin = np.searchsorted(ends[:, 0], np.arange(len(which) + 1))
    kind = np.empty(len(which), np.int64)
    kind[of_node[::-1]] = network.kind[::-1]
    unit = np.arange(len(which))
    seen: dict[tuple[int, bytes], int] = {}
    for element in np.flatnonzero(which).tolist():
        key = int(kind[element]), ends[begin[element] : begin[element + 1], 1].tobytes()
        unit[element] = seen.setdefault(key, element)
    return unit


def _elided_rows(unit: Numbers, row: Numbers, most: int) -> tuple[Numbers, NDArray[np.bool_]]:
    """Make the middle of each long row one unit."""
    elided = np.zeros(len(unit), np.bool_)
    for level in range(int(row.max()) + 1):
        units = np.unique(unit[row == level])
        if len(units) > most:
            middle = (row == level) & np.isin(unit, units[SHOWN_AT_ENDS:-SHOWN_AT_ENDS])
            elided |= middle
            unit = np.where(middle, units[SHOWN_AT_ENDS], unit)
    return unit, elided


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
        What was drawn as one, for the reader.
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
        Network to draw; a node is in the row of its tier.
    collapse : bool, optional
        Whether a machine is one box, and endpoints or machines with the same neighbours are one box together. By
        default when there are more than ``MAX_ENDPOINTS``, or the parts of several machines would be too wide. The
        middle of rows that are still long is one box.
    """
    n_endpoints = len(network.endpoints)
    is_wide = network.machine.max(initial=-1) > 0 and _width_of_parts(network) > MAX_WIDTH
    merge = n_endpoints > MAX_ENDPOINTS or is_wide if collapse is None else collapse
    of_node, row = machines(network, merge)
    unit = _fewer(network, of_node, row) if merge else np.arange(len(row))
    long = MAX_IN_ROW_IF_ASKED if not merge or grid_dims(network) else MAX_IN_ROW
    unit, elided = _elided_rows(unit, row, long)
    first, of_unit = np.unique(unit, return_index=True, return_inverse=True)[1:]
    size = np.bincount(of_unit)
    notes = []
    if collapse is None and len(first) < network.n_nodes and merge:
        notes.append(
            f"collapsed, since there are more than {MAX_ENDPOINTS} {PLURALS[network.seat_kind]}"
            if n_endpoints > MAX_ENDPOINTS
            else f"machines are drawn as a whole, since their parts would take more than {MAX_WIDTH:.0f} pixels"
        )
    if elided.any():
        notes.append(f"of rows with more than {long} boxes the middle is one box")
    label, title, kind = _describe(network, of_unit[of_node], size, elided[first])
    return Boxes(of_unit[of_node], row[first], kind, size, label, title, tuple(notes))


def _width_of_parts(network: Network) -> float:
    """Width of the widest row, pixels, where each node is a box."""
    tier = tiers(network)
    letters = np.array([len(name) for name in network.nodes])
    longest = np.zeros(int(tier.max()) + 1, np.int64)
    np.maximum.at(longest, tier[tier >= 0], letters[tier >= 0])
    wide = [text_width("x" * n) + 12 + GAP for n in longest.tolist()]
    return float((np.bincount(tier[tier >= 0]) * wide).max())


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
    """Return what the names of a machine's nodes begin with, up to a separator; else its number."""
    begin = _common([network.nodes[node] for node in nodes])
    cut = max(begin.rfind(separator) for separator in "._-/:")
    return begin[:cut] if cut > 0 else f"machine {network.machine[nodes[0]]}"


def _common(names: list[str]) -> str:
    """Return the longest text that all names begin with: that of the first and the last one in alphabetic order."""
    first, last = min(names), max(names)
    n = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    return first[:n]


def _content(network: Network, nodes: Numbers) -> str:
    count = np.bincount(network.kind[nodes], minlength=len(KINDS))
    return ", ".join(f"{n} {KINDS[k] if n == 1 else PLURALS[k]}" for k, n in enumerate(count) if n)


@dataclass(frozen=True, slots=True, eq=False)
class BoxLinks:
    """All links between two boxes, by pair; those inside a box are left out.

    Parameters
    ----------
    low, high : int64[n]
        The two boxes.
    up, down : int64[n]
        Links from low to high, and from high to low.
    rate : float64[n], bytes/s
        Rate of the fastest link.
    load_up, load_down : float64[n]
        Load of the busiest link each way: what it carried over what it could carry; 0 without a result.
    dead, slow : int64[n]
        Cables that the network without faults has and this one lacks, and those that are slower than there.
    slowest : float64[n], bytes/s
        Rate of the slowest of the slower ones; infinite without any.
    """

    low: NDArray[np.int64]
    high: NDArray[np.int64]
    up: NDArray[np.int64]
    down: NDArray[np.int64]
    rate: NDArray[np.float64]
    load_up: NDArray[np.float64]
    load_down: NDArray[np.float64]
    dead: NDArray[np.int64]
    slow: NDArray[np.int64]
    slowest: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.low)


def make_bundles(
    network: Network,
    box: NDArray[np.int64],
    row: NDArray[np.int64],
    load: NDArray[np.float64] | None,
    whole: Network | None = None,
) -> BoxLinks:
    """Gather links by the boxes that they join.

    Parameters
    ----------
    network : Network
        Network with the links.
    box : int64[n_nodes]
        Box of each node.
    row : int64[n_boxes]
        Row of each box; the lower one of a pair is `low`.
    load : float64[n_links] or None
        Load of each link.
    whole : Network, optional
        The network without faults, whose missing and faster cables are counted as well.
    """
    whole = network if whole is None else whole
    src, dst = box[np.r_[network.src, whole.src]], box[np.r_[network.dst, whole.dst]]
    between = np.flatnonzero(src != dst)
    rises = (row[src] < row[dst]) | ((row[src] == row[dst]) & (src < dst))
    pairs = np.where(rises[:, np.newaxis], np.stack((src, dst), 1), np.stack((dst, src), 1))[between]
    pairs, found = np.unique(pairs.reshape(-1, 2), axis=0, return_inverse=True)
    n, of_link = len(pairs), np.full(len(src), -1)
    of_link[between] = found.reshape(-1)
    is_here = (np.arange(len(src)) < network.n_links) & (of_link >= 0)
    up, down, were_up, were_down = (
        np.bincount(of_link[which & (of_link >= 0)], minlength=n)
        for which in (is_here & rises, is_here & ~rises, ~is_here & rises, ~is_here & ~rises)
    )
    is_slow = _slower(network, whole) & is_here[: network.n_links]
    here, all_rates = of_link[: network.n_links], np.r_[network.bandwidth, whole.bandwidth]
    slow_up, slow_down = (np.bincount(here[is_slow & way], minlength=n) for way in _ways(rises[: network.n_links]))
    rate, load_up, load_down, slowest = np.zeros(n), np.zeros(n), np.zeros(n), np.full(n, np.inf)
    np.maximum.at(rate, of_link[is_here], all_rates[is_here])
    gone = (of_link >= 0) & (rate[of_link] == 0)
    np.maximum.at(rate, of_link[gone], all_rates[gone])  # that of the cables that are all dead
    np.minimum.at(slowest, here[is_slow], network.bandwidth[is_slow])
    if load is not None:
        for loads, way in zip((load_up, load_down), _ways(rises[: network.n_links]), strict=True):
            np.maximum.at(loads, here[way & (here >= 0)], load[way & (here >= 0)])
    dead = np.maximum(np.maximum(were_up - up, were_down - down), 0)
    slow = np.maximum(slow_up, slow_down)
    return BoxLinks(pairs[:, 0], pairs[:, 1], up, down, rate, load_up, load_down, dead, slow, slowest)


def _ways(rises: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    return rises, ~rises


def _slower(network: Network, whole: Network) -> NDArray[np.bool_]:
    """Whether each link is slower than all those between the same two nodes without faults."""
    if whole is network:
        return np.zeros(network.n_links, np.bool_)
    here, there = (one.src.astype(np.int64) * one.n_nodes + one.dst for one in (network, whole))
    ends, of_link = np.unique(there, return_inverse=True)
    least = np.full(len(ends), np.inf)
    np.minimum.at(least, of_link.reshape(-1), whole.bandwidth)
    return np.asarray(network.bandwidth < least[np.searchsorted(ends, here)] * (1 - 1e-9))


def link_loads(network: Network, link_bytes: NDArray[np.float64], time: float) -> NDArray[np.float64]:
    """Divide what each link carried by what it could have carried in that time.

    Parameters
    ----------
    network : Network
        Network of `n_links` links.
    link_bytes : float64[n_links], bytes
        What each link carried.
    time : float, s
        Time in which the links carried it.

    Raises
    ------
    InputError
        If there is not one number per link.
    """
    if len(link_bytes) != network.n_links:
        text = f"{len(link_bytes)} links" if len(link_bytes) else "no links (a real run or a closed form has none)"
        raise InputError(f"the result has loads of {text}, but {network.name} has {network.n_links} links")
    return np.asarray(link_bytes / (network.bandwidth * time) if time else np.zeros(network.n_links))


def grid_dims(network: Network) -> list[int]:
    """Dimensions in which the nodes' coordinates differ; none unless there are two or three, and no switches."""
    at = network.coordinates
    if not at.size or (at < 0).any() or (network.kind != network.seat_kind).any():
        return []
    dims = [d for d in range(at.shape[1]) if np.ptp(at[:, d]) > 0]
    return dims if 2 <= len(dims) <= MAX_DIMS and len(np.unique(at, axis=0)) == len(at) else []
