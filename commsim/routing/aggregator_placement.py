"""Seats on switches: where the aggregators of a collective go, and which of them every participant sends to."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputError
from ..core.network import SWITCH, Network
from .aggregation_tree import aggregation_tree


@dataclass(frozen=True, slots=True)
class SwitchTree:
    """What a collective declares whose helpers are aggregators on switches: the root first, then those below it.

    Its builder takes ``tree``: the parent of every participant, ranks first and then helpers, and -1 for the topmost.

    Parameters
    ----------
    edges_only : bool
        Only the root and the first switch of each rank aggregate; else every switch where paths join.
    server : bool
        Whether the topmost is a parameter server on a host, the last of the helpers. The root is then the first switch
        on its way.
    systems : tuple of str
        Switch systems that send such packets, as ``name:key=value,...``, for the bytes of their headers.
    """

    edges_only: bool = False
    server: bool = False
    systems: tuple[str, ...] = ()


def able_switches(network: Network) -> tuple[NDArray[np.bool_], bool]:
    """Find the switches that aggregators may sit on.

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
    assumed = bool(outside.any()) and not (named & outside).any()
    return (named | outside if assumed else named), assumed


def seat_on_switches(
    network: Network,
    ranks: Sequence[int],
    wanted: SwitchTree,
    able: NDArray[np.bool_],
    *,
    server: int | None = None,
    given: Sequence[int] = (),
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Choose the nodes of the helpers, and the tree of all participants.

    A rank inside a machine reaches the switches through the NIC that is nearest to it by the network's metric.

    Parameters
    ----------
    network : Network
        Where.
    ranks : sequence of int
        Node of each rank.
    wanted : SwitchTree
        What the collective declares.
    able : bool[n_nodes]
        As from :func:`able_switches`.
    server : int, optional
        Node of the parameter server, where one is wanted.
    given : sequence of int
        Nodes of the aggregators when these are chosen already, the root first. Nothing is chosen then but the tree.

    Returns
    -------
    helpers : tuple of int
        Node of each helper.
    tree : tuple of int
        Parent of each participant.

    Raises
    ------
    InputError
        If no able switch reaches all, or a given one lies on the way of nobody.
    """
    if not able.any():
        raise InputError(f"{network.name} has no switch that could aggregate")
    exits = _exits(network, ranks)
    workers = tuple(dict.fromkeys(exits))
    root = int(given[0]) if len(given) else None
    if root is None and server is not None:
        above = network.dst[(network.src == _exits(network, [server])[0]) & able[network.dst]]
        root = int(above[0]) if above.size else None
    found = aggregation_tree(network, workers, root=root, edges_only=wanted.edges_only and not len(given), where=able)
    nodes = _in_given_order(network, found.nodes, given)
    number = {node: len(ranks) + i for i, node in enumerate(nodes)}
    leaf = dict(zip(workers, found.leaf, strict=True))
    parent = dict(zip(found.nodes, found.parent, strict=True))
    above_root = -1 if server is None else len(ranks) + len(nodes)
    tree = [number[found.nodes[leaf[out]]] for out in exits]
    tree += [number[found.nodes[parent[node]]] if parent[node] >= 0 else above_root for node in nodes]
    if server is None:
        return nodes, tuple(tree)
    return (*nodes, int(server)), (*tree, -1)


def _in_given_order(network: Network, found: tuple[int, ...], given: Sequence[int]) -> tuple[int, ...]:
    """Return aggregators in the order in which they were given; as found when they were not."""
    if not len(given):
        return found
    nodes = tuple(int(node) for node in given)
    if len(set(nodes)) < len(nodes):
        raise InputError("the placement puts two aggregators on one switch")
    for node in nodes:
        if node not in found:
            raise InputError(f"the placement puts an aggregator on {network.nodes[node]}, where no paths of ranks join")
    return nodes


def _exits(network: Network, nodes: Sequence[int]) -> list[int]:
    """Last node before the nearest switch outside of each node's machine; itself where it is in none."""
    order = np.argsort(network.src, kind="stable")
    first = np.searchsorted(network.src[order], np.arange(network.n_nodes + 1))
    return [_exit(network, int(node), order, first) if network.machine[node] >= 0 else int(node) for node in nodes]


def _exit(network: Network, node: int, order: NDArray[np.intp], first: NDArray[np.intp]) -> int:
    """Search the machine by rising distance; `order` has the links by source, from `first` on for each node."""
    near, done = [(0, node)], set[int]()
    while near:
        distance, here = heapq.heappop(near)
        if here in done or (here != node and not network.forwards[here]):
            continue
        done.add(here)
        for link in order[first[here] : first[here + 1]]:
            there = int(network.dst[link])
            if network.machine[there] == network.machine[node]:
                heapq.heappush(near, (distance + int(network.metric[link]), there))
            elif network.kind[there] == SWITCH:
                return here
    return node
