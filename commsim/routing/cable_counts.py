"""How many cables join two switches of a fabric, and how many lead up from one."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from commsim.core.network import Network
from commsim.core.network_queries import fabric_switches, tiers


@dataclass(frozen=True, slots=True)
class CableCount:
    """The cables between two kinds of switches outside machines, such as leaves and spines.

    Parameters
    ----------
    below, above : str
        The kinds: names of switches without their numbers.
    per_pair, up : (int, int)
        Fewest and most cables between two switches that are joined, and from one switch below to all above.
    rates : tuple of float, bytes/s
        Bandwidths of these cables, one way, in ascending order.
    """

    below: str
    above: str
    per_pair: tuple[int, int]
    up: tuple[int, int]
    rates: tuple[float, ...]


def count_cables(network: Network) -> list[CableCount]:
    """Count the cables between switches outside machines, by what they join, from the hosts upwards."""
    tier = tiers(network)
    is_switch = fabric_switches(network) & (tier >= 0)
    low, high = tier[network.src], tier[network.dst]
    rises = is_switch[network.src] & is_switch[network.dst]
    links = np.flatnonzero(rises & ((low < high) | ((low == high) & (network.src < network.dst))))
    stems, stem = np.unique([kind_of(name) for name in network.nodes] or [""], return_inverse=True)
    kinds = stem[network.src[links]] * len(stems) + stem[network.dst[links]]
    counts = []
    for kind in sorted(set(kinds.tolist()), key=lambda kind: int(low[links[kinds == kind]].min())):
        of_kind = links[kinds == kind]
        src, dst = network.src[of_kind].astype(np.int64), network.dst[of_kind].astype(np.int64)
        pairs = np.unique(src * network.n_nodes + dst, return_counts=True)[1]
        up = np.unique(src, return_counts=True)[1]
        rates = tuple(np.unique(network.bandwidth[of_kind]).tolist())
        ends = (str(stems[kind // len(stems)]), str(stems[kind % len(stems)]))
        counts.append(CableCount(*ends, (int(pairs.min()), int(pairs.max())), (int(up.min()), int(up.max())), rates))
    return counts


def kind_of(name: str) -> str:
    """Return the name of a switch without its number and the number of its plane: ``leaf`` for ``plane1_leaf3``."""
    return re.sub(r"^plane\d+_|[\d_]+$", "", name)
