"""RCCL's rings on placed ranks: over a full mesh of xGMI, over direct links, or through each machine in order."""

from __future__ import annotations

import itertools
from typing import Any

from collectives.nccl.call import NEWEST, max_channels
from commsim.core.network import Network
from commsim.core.placement import Placement
from commsim.core.units import format_size
from commsim.software.nccl.rccl_costs import costs_of, rings_over_links


def rings_of_rccl(
    network: Network, placement: Placement, machines: tuple[tuple[int, ...], ...]
) -> tuple[dict[str, Any], str]:
    """Return RCCL's rings and channels, and what to say of them.

    Parameters
    ----------
    network, placement : Network, Placement
        Network and placement of the ranks.
    machines : tuple of tuple of int
        Ranks of each machine.

    Returns
    -------
    dict, str
        Parameters of the collective, and a remark.
    """
    known = costs_of(network.hardware)
    if known is None:
        protocol = "Simple by default; only links cost time, since RCCL's costs on these GPUs are not known"
    else:
        protocol = f"LL up to {format_size(known.ll_below)}, else Simple"
    n = min(len(machine) for machine in machines)
    linked = set(zip(network.src.tolist(), network.dst.tolist(), strict=True))
    nodes = placement.nodes.tolist()
    pairs = ((nodes[a], nodes[b]) for machine in machines for a, b in itertools.permutations(machine, 2))
    if n < 3 or not all(pair in linked for pair in pairs):
        cycles = rings_over_links(network, [nodes[rank] for rank in machines[0]])
        if not cycles or len({len(machine) for machine in machines}) > 1:
            return {"rings": "rails"}, f"rings through each machine in order; {protocol}"
        given = {"rings": "mesh", "cycles": cycles, "channels": 2 * n}
        return given, f"{2 * n} channels, rings over direct links, {len(cycles)} ways; {protocol}"
    channels = min(n * (n - 1), max_channels(NEWEST))
    return {"rings": "mesh", "channels": channels}, f"{channels} channels, rings over all links of the mesh; {protocol}"
