"""The placement: which participant sits on which node of the network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import InputError
from .network import HOST, SWITCH, Network
from .value import Value, freeze

STRATEGIES = ("packed", "spread", "random")


@dataclass(frozen=True, slots=True, eq=False)
class Placement(Value):
    """Participant -> node.

    Parameters
    ----------
    nodes : int32[n_participants]
        Index of the node that each participant sits on; ranks first, then helpers.
    """

    nodes: NDArray[np.int32]

    if TYPE_CHECKING:  # what may be given is wider than what is kept

        def __init__(self, nodes: ArrayLike) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", freeze(self.nodes, np.int32, name="placement"))
        if self.nodes.ndim != 1 or not self.nodes.size:
            raise InputError(f"a placement is a list of at least one node, got shape {self.nodes.shape}")

    def check(self, network: Network, n_ranks: int, n_helpers: int = 0) -> None:
        """Raise unless every participant may sit where it is put.

        Raises
        ------
        InputError
            If the number of participants differs, a node does not exist, a rank is on a switch, two ranks share a
            node, or a helper is on a node that cannot aggregate.
        """
        if len(self.nodes) != n_ranks + n_helpers:
            raise InputError(
                f"placement has {len(self.nodes)} participants, the collective {n_ranks} ranks and {n_helpers} helpers"
            )
        if self.nodes.min() < 0 or self.nodes.max() >= network.n_nodes:
            bad = self.nodes.min() if self.nodes.min() < 0 else self.nodes.max()
            raise InputError(f"placement names node {bad}, {network.name} has nodes 0..{network.n_nodes - 1}")
        ranks, helpers = self.nodes[:n_ranks], self.nodes[n_ranks:]
        on_switch = np.flatnonzero(network.kind[ranks] != HOST)
        if on_switch.size:
            rank = int(on_switch[0])
            raise InputError(f"rank {rank} is placed on {network.nodes[ranks[rank]]}, a switch; ranks sit on hosts")
        where, count = np.unique(ranks, return_counts=True)
        if (count > 1).any():
            node = int(where[count.argmax()])
            shared = ", ".join(str(r) for r in np.flatnonzero(ranks == node)[:4])
            raise InputError(f"ranks {shared} share node {network.nodes[node]}; a host takes one rank")
        for helper in np.flatnonzero(~network.aggregates[helpers]):
            raise InputError(f"helper {helper} is placed on {network.nodes[helpers[helper]]}, which cannot aggregate")


def place(network: Network, n_participants: int, strategy: str = "packed", seed: int = 0) -> Placement:
    """Put participants on hosts by a named strategy.

    Parameters
    ----------
    network : Network
        Where to.
    n_participants : int
        How many hosts are needed.
    strategy : {"packed", "spread", "random"}
        In the order of the hosts; dealt round robin over the racks; or drawn without repetition.
    seed : int
        Of the random strategy.

    Raises
    ------
    InputError
        If the network has too few hosts, or the strategy is unknown.
    """
    hosts = network.hosts
    if not 1 <= n_participants <= len(hosts):
        raise InputError(f"ranks must be 1..{len(hosts)} ({network.name} has {len(hosts)} hosts), got {n_participants}")
    if strategy == "packed":
        return Placement(hosts[:n_participants])
    if strategy == "random":
        return Placement(np.random.default_rng(seed).choice(hosts, n_participants, replace=False))
    if strategy == "spread":
        return Placement(hosts[_round_robin(racks(network))[:n_participants]])
    raise InputError(f"unknown placement {strategy!r}; known: {', '.join(STRATEGIES)}, or a file")


def racks(network: Network) -> NDArray[np.int64]:
    """Rack of each host: hosts are in one rank when the first switch that they are cabled to is the same.

    Returns
    -------
    int64[n_hosts]
        Rack numbers from 0, in the order of the racks' first hosts; a host without a switch is a rack of its own.
    """
    first_switch = np.full(network.n_nodes, -1, np.int64)
    up = (network.kind[network.src] == HOST) & (network.kind[network.dst] == SWITCH)
    links = np.flatnonzero(up)[::-1]  # reversed, so that the first link of each host is written last
    first_switch[network.src[links]] = network.dst[links]
    key = first_switch[network.hosts]
    key = np.where(key < 0, network.n_nodes + network.hosts, key)
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def _round_robin(rack: NDArray[np.int64]) -> NDArray[np.intp]:
    """Order of hosts that deals one of each rack in turn."""
    order = np.argsort(rack, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(rack[order]) != 0])
    turn = np.empty(len(rack), np.int64)
    turn[order] = np.arange(len(rack)) - np.repeat(starts, np.diff(np.r_[starts, len(rack)]))
    return np.lexsort((rack, turn))
