"""The rail-optimised fabric: NIC i of every machine of a group on one leaf, so that equal GPUs are one switch apart."""

from __future__ import annotations

import math

import numpy as np

from commsim.core.attach import attach_machines
from commsim.core.errors import InputError
from commsim.core.network import Network, both_ways, kinds, node_names
from commsim.core.node_kind import NIC
from commsim.core.units import Bandwidth, Seconds

from . import LINK_LATENCY, require_at_least, require_buildable, topology


@topology
def rail_optimized(
    n_hosts: int,
    preset: str = "dgx-h100",
    hosts_per_group: int | None = None,
    n_spines: int | None = None,
    oversubscription: float = 1.0,
    planes: int = 1,
    bandwidth: Bandwidth | None = None,
    latency: Seconds = LINK_LATENCY,
) -> Network:
    """Rail-optimised: in a group of machines, the i-th NICs share the i-th leaf; spines join the leaves.

    Parameters
    ----------
    n_hosts : int
        Machines, at least 1.
    preset : str
        What they are: a preset (``commsim presets list``), a host type without arguments, or a file of a machine.
    hosts_per_group : int, optional
        Machines under one set of leaves (a scalable unit); a divisor of `n_hosts`. By default all, but at most 32.
    n_spines : int, optional
        Spines of each plane, each with a cable to every leaf of the plane; by default as many as a group has machines.
    oversubscription : float
        Capacity of a leaf's links to machines over that of its links to spines.
    planes : int
        Ports of each NIC, each on a leaf of its own; the leaves and spines of different planes are not joined
        (dual-ToR, dual-plane for 2).
    bandwidth : float, bytes/s, optional
        Of all ports of a NIC together, in each direction; by default that of the NIC's link inside the machine.
    latency : float, s
        Of every link outside of the machines.

    Returns
    -------
    Network
        The machines; ``leaf0 …``, by group, rail and plane; ``spine0 …``, by plane.

    Raises
    ------
    InputError
        If a count is not positive or does not divide evenly, or the network would be too large.

    References
    ----------
    NVIDIA, "DGX SuperPOD reference architecture", H100, 2023: rail-optimised leaves and spines. Qian et al., "Alibaba
    HPN: a data center network for large language model training", SIGCOMM 2024: the same with two planes.
    """
    from .hosts.load import load_machine

    group = min(n_hosts, 32) if hosts_per_group is None else hosts_per_group
    n_spines = group if n_spines is None else n_spines
    require_at_least("rail_optimized", 1, n_hosts=n_hosts, hosts_per_group=group, n_spines=n_spines, planes=planes)
    if n_hosts % group:
        raise InputError(f"rail_optimized needs n_hosts to be a multiple of hosts_per_group, got {n_hosts} and {group}")
    if not 0 < oversubscription < math.inf:
        raise InputError(f"rail_optimized needs a positive oversubscription, got {oversubscription}")
    machine = load_machine(preset)
    rails, nic = _rails(machine)
    n_ports, n_leaves = n_hosts * rails, n_hosts // group * rails * planes
    n_links = 2 * (n_ports * planes + n_leaves * n_spines)
    require_buildable(
        "rail_optimized", n_hosts * machine.n_nodes + n_leaves + planes * n_spines, n_hosts * machine.n_links + n_links
    )
    rate = (nic if bandwidth is None else bandwidth) / planes
    uplink = group * rate / (n_spines * oversubscription)
    # NIC ports: host m has the rails m * rails + r; a leaf stands for (group, rail, plane).
    cable = np.arange(n_ports * planes)
    port, plane = cable // planes, cable % planes
    leaf = n_ports + (port // rails // group * rails + port % rails) * planes + plane
    up = np.arange(n_leaves * n_spines)
    spine = n_ports + n_leaves + up // n_spines % planes * n_spines + up % n_spines
    src, dst = both_ways(np.concatenate((port, n_ports + up // n_spines)), np.concatenate((leaf, spine)))
    fabric = Network(
        "rail_optimized", node_names(h=n_ports, leaf=n_leaves, spine=planes * n_spines),
        kinds(n_ports, n_leaves + planes * n_spines), src, dst,
        np.tile(np.repeat([rate, uplink], [len(cable), len(up)]), 2), latency,
    )  # fmt: skip
    return attach_machines(fabric, machine)


def _rails(machine: Network) -> tuple[int, float]:
    """How many NICs a machine has, and the rate of the first one's link inside."""
    nics = np.flatnonzero(machine.kind == NIC)
    if not nics.size:
        raise InputError(f"rail_optimized needs machines with NICs, and {machine.name} has none")
    return len(nics), float(machine.bandwidth[np.flatnonzero(machine.src == nics[0])[0]])
