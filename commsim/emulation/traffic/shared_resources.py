"""What a message may share with others: links of its path, and nodes where messages cost their processor time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.placement import Placement
from commsim.prediction.scenario import Scenario
from commsim.routing.pinned import find_connection_routes
from commsim.routing.routing import read_routing

# Number that ECMP hashes for messages, the same whatever collectives are under way beside them.
MESSAGES = 30
# Channels that are told apart.
N_CHANNELS = 1000
# Routings whose paths depend on source, destination and channel only, and are one path.
ONE_PATH = ("ecmp", "ecmp_polarised", "shortest", "dmodk", "dimension_order", "minimal", "valiant")
_EVERYTHING = frozenset((-1,))
__all__ = ["MESSAGES", "N_CHANNELS", "SharedResources"]


class SharedResources:
    """Links and nodes by which messages may limit each other.

    Messages without any in common do not change each other's times. Where that cannot be said (messages on several
    paths, measured costs that depend on what else a host does, engines that NICs share), all have one in common.

    Parameters
    ----------
    scenario : Scenario
        Network with its costs, routing and seed.
    nodes : int32[n_ranks]
        Node of each rank.
    """

    def __init__(self, scenario: Scenario, nodes: NDArray[np.int32]) -> None:
        self._scenario, self._nodes = scenario, nodes
        network = scenario.network
        routing, entropies, _ = read_routing(scenario.routing or network.routing)
        self._pays = bool(network.overhead.any() or network.recv_overhead.any())
        self._is_one = (
            routing not in ONE_PATH or bool(entropies) or network.curves is not None
            or (network.has_nics and self._pays)
        )  # fmt: skip
        self._known: dict[tuple[int, int], list[tuple[int, frozenset[int]]]] = {}
        self._paths: dict[tuple[int, int, bytes], int] = {}

    def of(self, src: int, dst: int, chain: int) -> tuple[int, frozenset[int]]:
        """Return the number of a message's path, and what it may share: numbers of links, then those of nodes.

        Parameters
        ----------
        src, dst : int
            World ranks.
        chain : int
            Number among the chains of the two ranks.
        """
        known = self._known.get((src, dst))
        if known is None:
            known = self._known[src, dst] = self._found(src, dst, 1)
        channel = chain % N_CHANNELS
        if channel >= len(known):  # a network that is never idle: all channels at once
            known = self._known[src, dst] = self._found(src, dst, N_CHANNELS)
        return known[channel]

    def _found(self, src: int, dst: int, n_channels: int) -> list[tuple[int, frozenset[int]]]:
        """Return the path of each channel, and what it may share."""
        scenario, network = self._scenario, self._scenario.network
        if self._is_one:  # each channel counts as a path of its own
            return [(channel, _EVERYTHING) for channel in range(n_channels)]
        channels = np.arange(n_channels)
        routes = find_connection_routes(
            network, Placement(self._nodes), np.tile(np.array([[src, dst]], np.int32), (n_channels, 1)), channels,
            routing=scenario.routing, seed=scenario.seed, hashed_channel=channels + N_CHANNELS * MESSAGES,
        )  # fmt: skip
        at_ends = [network.n_links + int(self._nodes[rank]) for rank in (src, dst)]
        found = []
        for links in np.split(routes.link, routes.first[1:-1]):
            shared = frozenset([*links.tolist(), *(at_ends if self._pays or not len(links) else ())])
            found.append((self._paths.setdefault((src, dst, links.tobytes()), len(self._paths)), shared))
        return found
