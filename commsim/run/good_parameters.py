"""Parameters that network and placement decide where the user gives none: rings for rails, servers for free hosts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from collectives import NEEDS
from commsim.core.network import NIC, Network
from commsim.core.placement import Groups, Placement, count_places, is_strategy, place
from commsim.core.registry import Entry
from commsim.core.schedule import Schedule

MAX_RAILS = 64


def count_rails(network: Network, placement: Placement, groups: Groups) -> int | None:
    """Return how many rings leave a machine by NICs of their own; None where ranks are not in machines with NICs.

    Parameters
    ----------
    network, placement
        Where the ranks sit.
    groups : tuple of tuple of int
        Ranks of each machine. A ring needs a rank of its own in each, to leave from.
    """
    machines = np.unique(network.machine[placement.nodes[[group[0] for group in groups]]])
    if machines[0] < 0 or len(machines) < len(groups):
        return None
    nics = np.bincount(network.machine[network.kind == NIC], minlength=int(machines.max()) + 1)[machines]
    rails = min(int(nics.min()), min(len(group) for group in groups), MAX_RAILS)
    return rails or None


def servers_that_fit(
    entry: Entry[Schedule],
    given: Mapping[str, Any],
    network: Network,
    placement: str | Placement,
    n_ranks: int,
    seed: int,
) -> dict[str, int]:
    """Return the number of servers of a collective: one for each rank, or as many as there are hosts beside the ranks.

    Nothing is returned where the user gives a number, where servers share the hosts of ranks, where a placement says
    who sits where, or where no host is left: then the collective's own default says what it needs.

    Parameters
    ----------
    entry : Entry
        The collective.
    given : mapping
        Its parameters so far.
    network, placement, n_ranks, seed
        Where, how, and how many ranks are placed.
    """
    key = next((NEEDS[need] for need in ("servers", "aggregators") if need in entry.metadata["needs"]), None)
    if key is None or given.get(key) is not None or given.get("colocated"):
        return {}
    if isinstance(placement, str):
        if not (is_strategy(placement) and 1 <= n_ranks <= len(network.endpoints)):
            return {}  # placing the ranks says what is wrong
        placement = place(network, n_ranks, placement, seed)
    elif len(placement.nodes) != n_ranks:
        return {}
    free = count_places(network, placement.nodes)
    return {key: min(n_ranks, free)} if free > 1 else {}
