"""Which switches aggregate for a job: one choice for its schedule's helpers and for the packets that pass them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.network import SWITCH, Network

from .aggregation_tree import AggregationTree, aggregation_tree


@dataclass(frozen=True, slots=True)
class AggregatorPlacement:
    """Aggregating switches of a job, and the parameter server above them if there is one.

    Parameters
    ----------
    helpers : tuple of int
        Node of each helper of the job's schedule: aggregators of the first tree, the root first; then the server.
    tree : tuple of int
        Parent of each participant, ranks first and then helpers; -1 for the topmost.
    trees : tuple of AggregationTree
        The same as links, and the other trees over which packets are spread.
    """

    helpers: tuple[int, ...]
    tree: tuple[int, ...]
    trees: tuple[AggregationTree, ...]


def able_switches(network: Network, *, in_machines: bool = False) -> tuple[NDArray[np.bool_], bool]:
    """Find the switches that aggregators may sit on.

    Parameters
    ----------
    network : Network
        Network with the switches.
    in_machines : bool
        Whether the system is one of switches inside machines; only those are found where the network has some that say
        that they can.

    Returns
    -------
    able : bool[n_nodes]
        Switches that the network says can aggregate. Where it says so of none outside of machines, all those outside.
    assumed : bool
        Whether it is so assumed of some.
    """
    switches = network.kind == SWITCH
    outside = switches & (network.machine < 0)
    named = switches & network.aggregates
    if in_machines and (named & ~outside).any():
        return named & ~outside, False
    assumed = bool(outside.any()) and not (named & outside).any()
    return (named | outside if assumed else named), assumed


def place_aggregators(
    network: Network,
    ranks: Sequence[int],
    able: NDArray[np.bool_],
    *,
    server: int | None = None,
    chosen: Sequence[int] = (),
    n_trees: int = 1,
) -> AggregatorPlacement:
    """Choose the nodes of the helpers, and the trees of all participants.

    Parameters
    ----------
    network : Network
        Network with the switches.
    ranks : sequence of int
        Node of each rank.
    able : bool[n_nodes]
        Nodes that can aggregate, from :func:`able_switches`.
    server : int, optional
        Node of the parameter server, where one is wanted. Then only the root, which is the first switch on its way, and
        the first switch of each rank aggregate; else every switch where paths join.
    chosen : sequence of int
        Nodes of the aggregators when these are chosen already, the root first. Nothing is chosen then but the tree.
    n_trees : int
        Trees over which packets are spread.

    Raises
    ------
    InputError
        If no able switch reaches all, or a chosen one lies on the way of no rank.
    """
    if not able.any():
        raise InputError(f"{network.name} has no switch that could aggregate")
    root = None
    if len(chosen):
        able, root = np.isin(np.arange(network.n_nodes), chosen), int(chosen[0])
    workers, edges_only = tuple(int(node) for node in ranks), server is not None and not len(chosen)
    trees = tuple(
        aggregation_tree(network, workers, root=root, server=server, edges_only=edges_only, turn=turn, where=able)
        for turn in range(n_trees)
    )
    found = trees[0]
    nodes = _in_chosen_order(network, found.nodes, chosen)
    number = {node: len(ranks) + i for i, node in enumerate(nodes)}
    parent = dict(zip(found.nodes, found.parent, strict=True))
    above_root = -1 if server is None else len(ranks) + len(nodes)
    tree = [number[found.nodes[leaf]] for leaf in found.leaf]
    tree += [number[found.nodes[parent[node]]] if parent[node] >= 0 else above_root for node in nodes]
    if server is None:
        return AggregatorPlacement(nodes, tuple(tree), trees)
    return AggregatorPlacement((*nodes, int(server)), (*tree, -1), trees)


def _in_chosen_order(network: Network, found: tuple[int, ...], chosen: Sequence[int]) -> tuple[int, ...]:
    """Return aggregators in the order in which they were chosen; as found when they were not."""
    if not len(chosen):
        return found
    nodes = tuple(int(node) for node in chosen)
    if len(set(nodes)) < len(nodes):
        raise InputError("the placement puts two aggregators on one switch")
    for node in nodes:
        if node not in found:
            raise InputError(f"the placement puts an aggregator on {network.nodes[node]}, where no paths of ranks join")
    return nodes
