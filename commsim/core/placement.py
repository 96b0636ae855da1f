"""Placement: the node of each participant; placement strategies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.extensions import house

from .errors import InputError
from .network import CPU, KINDS, MEMORY, PLURALS, SEATS, Network
from .network_queries import locality_levels, numbered
from .registry import Registry
from .spec import is_own_file
from .units import count_text
from .value import Value, freeze

if TYPE_CHECKING:
    from .pinned_routes import PinnedRoutes

PACKED = "packed"  # the placement where none is given
# How jobs, and the ranks of one collective, are placed.
STRATEGIES: Registry[dict[int, NDArray[np.int64]]] = Registry(
    "placement strategy", lambda: house().services["placement strategies"]
)


@dataclass(frozen=True, slots=True, eq=False)
class Placement(Value):
    """Participant -> node; and the links between them that messages take, where they are pinned.

    Parameters
    ----------
    nodes : int32[n_participants]
        Index of the node that each participant sits on; ranks first, then helpers.
    routes : PinnedRoutes, optional
        Links of connections that take one route whatever the routing says; without it, none do.
    """

    nodes: NDArray[np.int32]
    routes: PinnedRoutes | None = None

    if TYPE_CHECKING:  # what may be given is wider than what is kept

        def __init__(self, nodes: ArrayLike, routes: PinnedRoutes | None = ...) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", freeze(self.nodes, np.int32, name="placement"))
        if self.nodes.ndim != 1 or not self.nodes.size:
            raise InputError(f"a placement is a list of at least one node, got shape {self.nodes.shape}")

    def check(self, network: Network, n_ranks: int, n_helpers: int = 0) -> None:
        """Raise unless every participant is on a node that takes it.

        Raises
        ------
        InputError
            If the number of participants differs, a node does not exist, a rank is on a switch, a CPU or a NIC, two
            ranks share a node, a helper is on a node that cannot aggregate, or the network lacks a pinned route.
        """
        if len(self.nodes) != n_ranks + n_helpers:
            wanted = f"{count_text(n_ranks, 'rank')} and {count_text(n_helpers, 'helper')}"
            raise InputError(f"placement has {count_text(len(self.nodes), 'participant')}, the collective {wanted}")
        if self.nodes.min() < 0 or self.nodes.max() >= network.n_nodes:
            bad = self.nodes.min() if self.nodes.min() < 0 else self.nodes.max()
            raise InputError(f"placement names node {bad}, {network.name} has nodes 0..{network.n_nodes - 1}")
        ranks, helpers = self.nodes[:n_ranks], self.nodes[n_ranks:]
        for rank in np.flatnonzero(~np.isin(network.kind[ranks], SEATS)):
            node = ranks[rank]
            message = f"rank {rank} is placed on {network.nodes[node]}, a {KINDS[network.kind[node]]}"
            raise InputError(f"{message}; ranks are placed on hosts, GPUs or host memories")
        where, count = np.unique(ranks, return_counts=True)
        if (count > 1).any():
            node = int(where[count.argmax()])
            shared = ", ".join(str(r) for r in np.flatnonzero(ranks == node)[:4])
            raise InputError(
                f"ranks {shared} share node {network.nodes[node]}; a {KINDS[network.kind[node]]} takes one rank"
            )
        for helper in np.flatnonzero(~network.aggregates[helpers]):
            raise InputError(f"helper {helper} is placed on {network.nodes[helpers[helper]]}, which cannot aggregate")
        if self.routes is not None:
            self.routes.check(network, self.nodes)


def joined(placements: Sequence[Placement]) -> Placement:
    """Return one placement of the participants of all, numbered one placement after the other."""
    if len(placements) == 1:
        return placements[0]
    from .pinned_routes import PinnedRoutes

    routes = PinnedRoutes.joined([p.routes for p in placements], [len(p.nodes) for p in placements])
    return Placement(np.concatenate([p.nodes for p in placements]), routes)


def place(network: Network, n_ranks: int, strategy: str = PACKED, seed: int = 0) -> Placement:
    """Put ranks on the network's endpoints by a named strategy.

    Parameters
    ----------
    network : Network
        Network whose endpoints are taken.
    n_ranks : int
        Ranks.
    strategy : str
        ``packed``: in the order of the endpoints; ``spread``: dealt round robin over the racks, and in each over its
        machines; ``random``: drawn without repetition; or another placement strategy, or a ``FILE.py`` that registers
        one: what it gives a job that has the network to itself.
    seed : int
        Seed of a random strategy.

    Raises
    ------
    InputError
        If the network has too few endpoints, or the strategy is unknown.
    """
    endpoints = network.endpoints
    if not 1 <= n_ranks <= len(endpoints):
        places = count_text(len(endpoints), KINDS[network.seat_kind], PLURALS[network.seat_kind])
        raise InputError(f"ranks must be 1..{len(endpoints)} ({network.name} has {places}), got {n_ranks}")
    order = RANK_ORDERS.get(strategy)
    if order is None:
        from .files.own_files import resolve

        entry, arguments = resolve(STRATEGIES, strategy)
        if arguments:
            raise InputError(f"{strategy}: a placement strategy takes no arguments")
        order = entry.metadata["ranks"]
    return Placement(order(network, n_ranks, seed))


def is_strategy(text: str) -> bool:
    """Whether :func:`place` takes `text`; the usual strategies are known without importing the others."""
    return text in RANK_ORDERS or is_own_file(text) or text in STRATEGIES


def helper_nodes(network: Network) -> NDArray[np.intp]:
    """Nodes beside the endpoints that helpers go to by default: memories that can aggregate, else such CPUs.

    Returns
    -------
    intp[m]
        None when ranks sit on memories themselves, or the network has neither.
    """
    for kind in (MEMORY, CPU):
        nodes = np.flatnonzero((network.kind == kind) & network.aggregates)
        if nodes.size and kind != network.seat_kind:
            return nodes
    return np.empty(0, np.intp)


def spare_nodes(network: Network, ranks: NDArray[np.integer]) -> NDArray[np.intp]:
    """Nodes for helpers on machines without a rank: one of each machine, and then the next one of each.

    A server beside GPUs shares their NIC, and so slows down what it should help: BytePS's CPU machines, and the
    servers of the others, are machines of their own (Jiang et al., OSDI 2020, section 4).

    Parameters
    ----------
    ranks : int[n_ranks]
        Nodes of the ranks.
    """
    beside = helper_nodes(network)
    machine = network.machine[beside]
    spare = beside[(machine < 0) | ~np.isin(machine, network.machine[ranks])]
    return spare[_round_robin(numbered(network.machine[spare].astype(np.int64)))] if spare.size else spare


def helper_order(network: Network, ranks: NDArray[np.integer]) -> NDArray[np.intp]:
    """Nodes for helpers: those of :func:`spare_nodes`; where no machine is spare, all of :func:`helper_nodes`."""
    spare = spare_nodes(network, ranks)
    return spare if spare.size else helper_nodes(network)


def count_places(network: Network, ranks: NDArray[np.integer]) -> int:
    """Count the places for servers: machines without a rank; without such machines, what is beside ranks or free."""
    spare = spare_nodes(network, ranks)
    if spare.size:
        return len(np.unique(network.machine[spare]))
    return len(helper_nodes(network)) or len(network.endpoints) - len(ranks)


def _packed(network: Network, n: int, seed: int) -> NDArray[np.intp]:  # noqa: ARG001 - as the others
    return network.endpoints[:n]


def _spread(network: Network, n: int, seed: int) -> NDArray[np.intp]:  # noqa: ARG001 - as the others
    """Deal the machines of each rack in turn, and then the racks."""
    order = np.arange(len(network.endpoints))
    for level in locality_levels(network)[:2]:
        order = order[_round_robin(level.group[order])]
    return network.endpoints[order[:n]]


def _random(network: Network, n: int, seed: int) -> NDArray[np.intp]:
    if seed < 0:
        raise InputError(f"the seed of a random placement must be 0 or more, got {seed}")
    return np.random.default_rng(seed).choice(network.endpoints, n, replace=False)


# Nodes of the first n ranks on an idle network, from the network, n and a seed.
RANK_ORDERS: dict[str, Callable[[Network, int, int], NDArray[np.intp]]] = {
    "packed": _packed, "spread": _spread, "random": _random,
}  # fmt: skip


def _round_robin(rack: NDArray[np.int64]) -> NDArray[np.intp]:
    """Order that deals one of each rack in turn; within a rack the order stays."""
    order = np.argsort(rack, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(rack[order]) != 0])
    turn = np.empty(len(rack), np.int64)
    turn[order] = np.arange(len(rack)) - np.repeat(starts, np.diff(np.r_[starts, len(rack)]))
    return np.lexsort((rack, turn))
