"""Networks from trees of switches, and trees of switches from networks.

How fast the links of each tier are, since no scheduler's file says so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.network import HOST, SWITCH, Network, both_ways
from commsim.core.network_queries import first_above, units
from commsim.core.units import parse_bandwidth
from topologies import LINK_LATENCY

from .fabric_tree import Switch, Tree, free_name, require_unique

_ENTRY = re.compile(r"\s*(\d{1,3})\s*=\s*(.*?)\s*", re.ASCII | re.DOTALL)
_RATIO = re.compile(r"(\d+(?:\.\d+)?):(\d+(?:\.\d+)?)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Tiers:
    """Rates by tier: 1 is the link between a node and its switch, 2 the link from there upwards, and so on.

    Parameters
    ----------
    bandwidth : dict of int to float, bytes/s
        Of each link, in each direction.
    oversubscription : dict of int to float
        In place of a rate: what the switch's links downwards can carry together, over what the link upwards can.
    """

    bandwidth: dict[int, float]
    oversubscription: dict[int, float]

    def uplink(self, tier: int, below: float, what: str) -> float:
        """Rate of one link upwards.

        Parameters
        ----------
        tier : int
            Of the link.
        below : float, bytes/s
            Of the links downwards of its lower end, together.
        what : str
            The link, for messages.

        Raises
        ------
        InputError
            If the table does not say.
        """
        if tier in self.bandwidth:
            return self.bandwidth[tier]
        if tier in self.oversubscription:
            return below / self.oversubscription[tier]
        raise InputError(f"--tier-bandwidth does not give the rate of tier {tier} ({what}); the file has no"
                         f" rates; give for example --tier-bandwidth 1=100Gbps,2=2:1")  # fmt: skip

    def require_used(self, n_tiers: int) -> None:
        """Raise if the table says something about a tier that is not there."""
        for tier in (*self.bandwidth, *self.oversubscription):
            if not 1 <= tier <= n_tiers:
                raise InputError(f"--tier-bandwidth has a tier {tier}, but there are 1..{n_tiers}")


def parse_tiers(text: str) -> Tiers:
    """Read ``1=100Gbps,2=400Gbps,3=2:1``; N:1 is the oversubscription of the links into that tier.

    Raises
    ------
    InputError
        If it is something else, a tier is there twice, or tier 1 is a ratio.
    """
    table = Tiers({}, {})
    for entry in text.split(","):
        match = _ENTRY.fullmatch(entry)
        if match is None:
            raise InputError(f"--tier-bandwidth is TIER=RATE,..., as in 1=100Gbps,2=400Gbps or 1=100Gbps,2=2:1, "
                             f"got {entry!r}")  # fmt: skip
        tier = int(match[1])
        if tier in table.bandwidth or tier in table.oversubscription:
            raise InputError(f"--tier-bandwidth names tier {tier} twice")
        ratio = _RATIO.fullmatch(match[2])
        if ratio is None:
            table.bandwidth[tier] = parse_bandwidth(match[2], f"--tier-bandwidth {tier}")
        elif tier == 1 or not (float(ratio[1]) > 0 and float(ratio[2]) > 0):
            raise InputError(f"--tier-bandwidth {tier} cannot be {match[2]}: a ratio is of positive numbers, and tier "
                             "1, the link of a node, has nothing below it")  # fmt: skip
        else:
            table.oversubscription[tier] = float(ratio[1]) / float(ratio[2])
    return table


def build_network(tree: Tree, tiers: Tiers, latency: float = LINK_LATENCY, name: str = "imported") -> Network:
    """Build the network of a tree: one cable between a node or switch and the switch above it.

    Parameters
    ----------
    tree : Tree
        Nodes become hosts.
    tiers : Tiers
        How fast the cables are. The tier of a cable is one more than that of its lower end.
    latency : float, s
        Of every cable, each way.
    name : str
        Of the network.

    Returns
    -------
    Network
        Hosts first, in the order of the tree, then its switches.

    Raises
    ------
    InputError
        If `tiers` leaves out a tier that is needed, or has one that is not.
    """
    tier, above = tree.tiers(), tree.above
    rate = {node: tiers.uplink(1, 0.0, f"node {node} to {above[node]}") for node in tree.nodes}
    for switch in tree.from_below():
        if switch.name in above:
            below = sum(rate[child] for child in (*switch.switches, *switch.nodes))
            if not below:
                raise InputError(f"switch {switch.name} has no node below it")
            what = f"switch {switch.name} to {above[switch.name]}"
            rate[switch.name] = tiers.uplink(tier[switch.name] + 1, below, what)
    tiers.require_used(1 + max((tier[name] for name in rate if name in tier), default=0))
    names = (*tree.nodes, *(s.name for s in tree.switches))
    number = {name: i for i, name in enumerate(names)}
    lower = [name for name in names if name in above]
    src, dst = both_ways([number[name] for name in lower], [number[above[name]] for name in lower])
    kind = np.where(np.arange(len(names)) < len(tree.nodes), HOST, SWITCH)
    return Network(name, names, kind, src, dst, np.tile([rate[name] for name in lower], 2), latency)


def tree_of(network: Network) -> tuple[Tree, dict[str, tuple[str, ...]]]:
    """Find the tree that a scheduler should know: hosts by their first switch, switches by the first one above them.

    Of switches that do the same (the spines of a leaf-spine) one stands for all. Switches at the top that nothing
    joins, in a network whose hosts can all reach each other, are put below one more, ``fabric``.

    Returns
    -------
    tree : Tree
        Nodes are hosts, or machines by the first part of their nodes' names (``m0`` of ``m0.gpu0``).
    stand_ins : dict of str to tuple of str
        By switch of the tree that stands for several: all of them, by their names in the network.

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
        taken = (*network.nodes, *(name[u] for u in at))
        switches_found.append(Switch(free_name("fabric", taken), tuple(tops)))
    return Tree(tuple(switches_found)), _stand_ins(network, unit, above, name, set(below))


def host_names(network: Network) -> tuple[str, ...]:
    """By node, what schedulers call the host that it is, or is a part of: ``m0`` for ``m0.gpu0`` of a machine."""
    return tuple(
        name.partition(".")[0] if machine >= 0 else name
        for name, machine in zip(network.nodes, network.machine.tolist(), strict=True)
    )


def _stand_ins(
    network: Network, unit: NDArray[np.int64], above: NDArray[np.int64], name: dict[int, str], used: set[int]
) -> dict[str, tuple[str, ...]]:
    """By switch of the tree, it and the switches one tier up from the same ones below that are not in the tree."""
    src, dst = unit[network.src], unit[network.dst]
    is_switch = np.zeros(len(above), np.bool_)
    is_switch[unit[(network.kind == SWITCH) & (network.machine < 0)]] = True
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
