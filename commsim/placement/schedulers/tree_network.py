"""Networks from trees of switches, and trees of switches from networks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.names.nodes_and_links import host_names
from commsim.core.network import HOST, SWITCH, Network, both_ways
from commsim.core.network_queries import fabric_switches, first_above, units
from commsim.core.network_queries import tiers as tiers_of
from commsim.core.units import write_bandwidth
from topologies import LINK_LATENCY

from .fabric_tree import Switch, SwitchTree, free_name, require_unique
from .tier_rates import Tiers


def build_network(tree: SwitchTree, tiers: Tiers, latency: float = LINK_LATENCY, name: str = "imported") -> Network:
    """Build the network of a tree: cables between a node or switch and the switch above it.

    Parameters
    ----------
    tree : SwitchTree
        Nodes become hosts. Where several switches are at the top, and `tiers` has cables above the highest of them, one
        more switch, ``fabric``, joins them: labels of racks say nothing of what is above.
    tiers : Tiers
        How fast the cables are. The tier of a cable is one more than that of its lower end.
    latency : float, s
        Latency of each cable, one way.
    name : str
        Name of the network.

    Returns
    -------
    Network
        Hosts first, in the order of the tree, then its switches.

    Raises
    ------
    InputError
        If `tiers` leaves out a tier that is needed, or has one that is not.
    """
    tree = _joined(tree, tiers)
    tier, above = tree.tiers(), tree.above
    up = {node: tiers.uplinks(1, 0.0, 0.0, f"node {node} to {above[node]}") for node in tree.nodes}
    first = tree.nodes[0]
    links = {1: f"node {first} to {above[first]}"}
    for switch in tree.from_below():
        if switch.name in above:
            below = [up[child] for child in (*switch.switches, *switch.nodes)]
            if not below:
                raise InputError(f"switch {switch.name} has no node below it")
            what = f"switch {switch.name} to {above[switch.name]}"
            capacity, port = sum(rate * n for rate, n in below), max(rate for rate, _ in below)
            up[switch.name] = tiers.uplinks(tier[switch.name] + 1, capacity, port, what)
            links.setdefault(tier[switch.name] + 1, what)
    tiers.require_used(links)
    names = (*tree.nodes, *(s.name for s in tree.switches))
    number = {name: i for i, name in enumerate(names)}
    over = {name: (above[name],) for name in names if name in above} | tree.shared
    pairs = [(name, top) for name in names for top in over.get(name, ()) for _ in range(up[name][1])]
    lower = [name for name, _ in pairs]
    src, dst = both_ways([number[name] for name in lower], [number[top] for _, top in pairs])
    kind = np.where(np.arange(len(names)) < len(tree.nodes), HOST, SWITCH)
    return Network(name, names, kind, src, dst, np.tile([up[name][0] for name in lower], 2), latency)


def _joined(tree: SwitchTree, tiers: Tiers) -> SwitchTree:
    """Return the tree with a switch above those at the top where there are cables for it."""
    above = tree.above
    tops = tuple(switch.name for switch in tree.switches if switch.name not in above)
    highest = 1 + max(tree.tiers().values())
    if len(tops) == 1 or not (highest in tiers.bandwidth or highest in tiers.oversubscription):
        return tree
    return SwitchTree((*tree.switches, Switch(free_name("fabric", tree), tops)))


def tops_said(tree: SwitchTree, network: Network) -> list[str]:
    """Say whether the switches at the top of a tree were joined in its network, or no path leads between them.

    Returns
    -------
    list of str
        None where one switch is above all others.
    """
    above = tree.above
    tops = [switch.name for switch in tree.switches if switch.name not in above]
    if len(tops) == 1:
        return []
    added = [name for name in network.nodes if name not in {*tree.nodes, *(s.name for s in tree.switches)}]
    if added:
        return [f"{len(tops)} switches at the top are joined by one that the file does not name, {added[0]}"]
    tier = 1 + max(tree.tiers().values())
    return [
        f"no path joins the {len(tops)} switches at the top: {tier}=2:1 in --tier-bandwidth adds a switch above them"
    ]


def cables_up(network: Network) -> list[str]:
    """Say how many cables go up from the switches of each tier of an imported network, and at what rates.

    Returns
    -------
    list of str
        One for each tier that has cables between switches.
    """
    tier = tiers_of(network)
    up = (network.kind[network.src] == SWITCH) & (network.kind[network.dst] == SWITCH)
    up &= tier[network.src] < tier[network.dst]
    lines = []
    for t in np.unique(tier[network.src[up]]).tolist():
        of = up & (tier[network.src] == t)
        counts = np.unique(np.bincount(network.src[of])[np.unique(network.src[of])])
        rates = " or ".join(write_bandwidth(rate) for rate in np.unique(network.bandwidth[of]).tolist())
        n = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        lines.append(f"tier {t + 1}: {n} {'cable' if n == '1' else 'cables'} of {rates} up from each switch")
    return lines


def tree_of(network: Network) -> tuple[SwitchTree, dict[str, tuple[str, ...]]]:
    """Find the tree that a scheduler should know: hosts by their first switch, switches by the first one above them.

    Of switches that do the same (the spines of a leaf-spine) one represents all. Switches at the top that nothing
    joins, in a network whose hosts can all reach each other, are put below one more, ``fabric``.

    Returns
    -------
    tree : SwitchTree
        Nodes are hosts, or machines by the first part of their nodes' names (``m0`` of ``m0.gpu0``).
    stand_ins : dict of str to tuple of str
        By switch of the tree that represents several: all of them, by their names in the network.

    Raises
    ------
    InputError
        If a host has no switch above it.
    """
    unit = units(network)
    above = first_above(network, unit)
    name = dict(zip(unit.tolist(), host_names(network), strict=True))
    at = list(dict.fromkeys(unit[network.endpoints].tolist()))
    require_unique([name[u] for u in at], "machine")
    below: dict[int, tuple[list[str], list[str]]] = {}
    level, switches = at, False
    while level:
        higher: dict[int, None] = {}
        for u in level:
            top = int(above[u])
            if top == u:
                if not switches:
                    raise InputError(f"{network.name}: {name[u]} has no switch above it; schedulers want a tree")
                continue
            higher[top] = None
            below.setdefault(top, ([], []))[0 if switches else 1].append(name[u])
        level, switches = list(higher), True
    switches_found = [Switch(name[u], tuple(s), tuple(n)) for u, (s, n) in below.items()]
    tops = [name[u] for u in below if above[u] == u]
    if len(tops) > 1 and _is_connected(network):
        names = (*network.nodes, *(name[u] for u in at))
        switches_found.append(Switch(free_name("fabric", names), tuple(tops)))
    return SwitchTree(tuple(switches_found)), _stand_ins(network, unit, above, name, set(below))


def _stand_ins(
    network: Network, unit: NDArray[np.int64], above: NDArray[np.int64], name: dict[int, str], used: set[int]
) -> dict[str, tuple[str, ...]]:
    """By switch of the tree, it and the switches one tier up from the same ones below that are not in the tree."""
    src, dst = unit[network.src], unit[network.dst]
    is_switch = np.zeros(len(above), np.bool_)
    is_switch[unit[fabric_switches(network)]] = True
    stand_ins: dict[str, dict[str, None]] = {}
    lower = set(unit[network.endpoints].tolist()) | used
    for a, b in zip(src.tolist(), dst.tolist(), strict=True):
        top = int(above[a])
        if a in lower and top != a and is_switch[b] and b not in lower:
            stand_ins.setdefault(name[top], {name[top]: None})[name[b]] = None
    return {top: tuple(names) for top, names in stand_ins.items()}


def _is_connected(network: Network) -> bool:
    label = np.arange(network.n_nodes)
    while True:
        lowest = label.copy()
        np.minimum.at(lowest, network.dst, label[network.src])
        np.minimum.at(lowest, network.src, label[network.dst])
        lowest = lowest[lowest]
        if np.array_equal(lowest, label):
            return len(np.unique(label[network.endpoints])) == 1
        label = lowest
