"""RCCL's rings on placed ranks (over a mesh of xGMI, direct links, or in order), and its choice at a size."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from collectives.nccl.call import NEWEST, max_channels
from commsim.core.machines.hardware import read_hardware
from commsim.core.network import Network
from commsim.core.network_queries import units
from commsim.core.placement import Placement
from commsim.core.units import format_size
from commsim.nccl.machine_links import links_inside, links_outside
from commsim.nccl.of_network import CPU_OF
from commsim.nccl.rccl_choice import OPERATIONS, choice_of
from commsim.nccl.rccl_costs import costs_of, rings_over_links


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
        protocol = _protocols(network, len(machines)) or f"LL up to {format_size(known.ll_below)}, else Simple"
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


def _protocols(network: Network, n_machines: int) -> str:
    """Say by which rules a call over several machines takes its protocol; empty on one."""
    if n_machines == 1 or choice_of(read_hardware(network.hardware)["gpu"]) is None:
        return ""
    return "trees or rings by RCCL's estimate, LL, LL128 or Simple by its limits of sizes"


def schedule_of_rccl(
    network: Network, placement: Placement, machines: tuple[tuple[int, ...], ...], operation: str, size: float,
    rings: Mapping[str, Any], *, free: bool,
) -> dict[str, Any]:  # fmt: skip
    """Return what RCCL takes at a size: the protocol, and of an all-reduce trees or another schedule than a ring.

    Parameters
    ----------
    network, placement : Network, Placement
        Network and placement of the ranks; the costs of RCCL on its GPUs are known.
    machines : tuple of tuple of int
        Ranks of each machine.
    operation : str
        Name of the operation.
    size : float, bytes
        Size of the array.
    rings : mapping of str to value
        Rings of the machines, of :func:`rings_of_rccl`.
    free : bool
        Whether the user leaves the schedule to RCCL.
    """
    known, hardware = costs_of(network.hardware), read_hardware(network.hardware)
    if known is None:
        return {}
    chosen: dict[str, Any] = {"protocol": known.protocol(size)}
    choice, n_ranks = choice_of(hardware["gpu"], len(machines[0])), sum(map(len, machines))
    if choice is None or len(machines) == 1 or operation not in OPERATIONS:
        is_eight = [*map(len, machines)] == [8] and rings.get("rings") == "mesh" and "cycles" not in rings
        return chosen | (known.schedule(size) if free and is_eight and operation == "all_reduce" else {})
    unit, nodes = units(network), placement.nodes[:n_ranks]
    inside, _ = links_inside(network, unit, nodes)
    outside, n_nics, *_ = links_outside(network, unit, nodes[unit[nodes] == unit[nodes[0]]])
    rate, cpu = min(inside, n_nics * outside), CPU_OF.get(hardware.get("cpu", ""), "other")
    algorithm, chosen["protocol"] = choice.cell(operation, size, n_ranks, len(machines), rate, cpu)
    return chosen | ({"algorithm": algorithm} if free else {})
