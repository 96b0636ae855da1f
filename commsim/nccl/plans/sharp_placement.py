"""Switches that add for NCCL with SHARP: for each rail a tree above its member in every machine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from collectives.nccl.call import MANY
from collectives.nccl.sharp_trees import OUTSIDE, SharpTrees
from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.network_queries import fabric_switches
from commsim.core.placement import Placement
from commsim.routing.aggregation_tree import aggregation_tree

# Roots that a remark names.
MAX_NAMED = 4


@dataclass(frozen=True, slots=True)
class SharpPlacement:
    """Trees of the switches that add.

    Parameters
    ----------
    switches : tuple of int
        Node of each switch that is in a tree.
    trees : tuple of tuple of int
        Trees by rail, as the collectives of NCCL take them.
    """

    switches: tuple[int, ...]
    trees: SharpTrees

    def text(self, network: Network) -> str:
        """Describe the trees."""
        n_machines = len(self.trees[0]) - len(self.switches)
        roots = dict.fromkeys(network.nodes[self.switches[row[n_machines:].index(-1)]] for row in self.trees)
        text = ", ".join([*roots][:MAX_NAMED]) + (", ..." if len(roots) > MAX_NAMED else "")
        return f"each rail has a SHARP tree of shortest paths, and its topmost switch is one of {text}"


def place_sharp(network: Network, placement: Placement, machines: Sequence[Sequence[int]]) -> SharpPlacement | None:
    """Find for each rail the tree of shortest paths; where paths join, a switch adds.

    Rails whose trees could begin at several equally good switches take them in turn, so that links between switches
    share the load.

    Parameters
    ----------
    network, placement : Network, Placement
        Network and placement of the ranks.
    machines : sequence of sequence of int
        Ranks of each machine, at least two; the member at place i is on rail i.

    Returns
    -------
    SharpPlacement or None
        None where no switch that adds, outside of machines, reaches all of them.
    """
    where = network.aggregates & fabric_switches(network)
    if not where.any():
        return None
    sizes = [len(machine) for machine in machines]
    members = [
        tuple(int(placement.nodes[machine[rail % len(machine)]]) for machine in machines)
        for rail in range(min(math.lcm(*sizes), MANY))
    ]
    try:
        trees = [aggregation_tree(network, nodes, turn=rail, where=where) for rail, nodes in enumerate(members)]
    except InputError:
        return None
    switches = sorted({node for tree in trees for node in tree.nodes})
    number = {node: i for i, node in enumerate(switches)}
    rows = []
    for tree in trees:
        above = np.full(len(switches), OUTSIDE)
        for node, parent in zip(tree.nodes, tree.parent, strict=True):
            above[number[node]] = number[tree.nodes[parent]] if parent >= 0 else -1
        rows.append((*(number[tree.nodes[leaf]] for leaf in tree.leaf), *above.tolist()))
    return SharpPlacement(tuple(switches), tuple(rows))
