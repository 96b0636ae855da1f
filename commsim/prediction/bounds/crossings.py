"""A bound of a cut, and what it is called: the sets of nodes whose borders bytes must cross."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import SWITCH, Network

# How bytes cross the border of a set of nodes.
WAYS = OUT, INTO = "out of", "into"


@dataclass(frozen=True, slots=True)
class Cut:
    """A bound ``T >= per_byte * S + fixed``, from what must cross some links, or from a linear program.

    Parameters
    ----------
    per_byte : float, s/byte
        Time per byte of the operation's size.
    why : str
        What limits it.
    fixed : float, s
        What its last message takes besides bytes.
    """

    per_byte: float
    why: str
    fixed: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Crossing:
    """Bytes that must cross the borders of sets of nodes, over the capacity of the links that do.

    A cut names it: most are only compared.

    Parameters
    ----------
    per_byte : float, s/byte
        Time per byte of the operation's size.
    way : str
        How bytes cross, one of ``WAYS`` or both.
    whose : str
        Sets, where they are several; of a single one what it is, such as a machine.
    network : Network
        Network that the operation runs on.
    ranks : int32[n_ranks]
        Node of each rank.
    of_node : int[n_nodes]
        Set of each node, or -1.
    group : int
        The only set; -1 where they are several.
    port : int
        Node inside at which the only link that way begins or ends; -1 where there are several.
    """

    per_byte: float
    way: str
    whose: str
    network: Network
    ranks: NDArray[np.int32]
    of_node: NDArray[np.integer[Any]]
    group: int = -1
    port: int = -1

    def cut(self) -> Cut:
        """Return the bound, named, with what its last message takes."""
        whose = self.whose if self.group < 0 else f"{self.whose} {_set_name(self)}"
        return Cut(self.per_byte, f"the capacity {self.way} {whose}", 0.0 if self.port < 0 else _handling(self))


def _handling(crossing: Crossing) -> float:
    """Overhead that a single rank with a single link cannot avoid: its link is its port, which is busy for it."""
    network = crossing.network
    inside = crossing.ranks[crossing.of_node[crossing.ranks] == crossing.group]
    if len(inside) != 1 or inside[0] != crossing.port:
        return 0.0
    costs = network.overhead if crossing.way == OUT else network.recv_overhead
    return float(costs[crossing.port])


def _set_name(crossing: Crossing) -> str:
    """Name of a set: its only rank, or its switches and how many ranks."""
    inside = np.flatnonzero(crossing.of_node == crossing.group)
    nodes = crossing.network.nodes
    ranks = inside[np.isin(inside, crossing.ranks)]
    if len(ranks) == 1:
        return nodes[int(ranks[0])]
    switches = inside[crossing.network.kind[inside] == SWITCH]
    if 0 < len(switches) <= 2:
        return " and ".join(nodes[int(s)] for s in switches)
    return f"of {nodes[int(ranks[0])]} and {len(ranks) - 1} others"
