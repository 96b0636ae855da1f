"""The rail-optimised fabric: NIC i of every machine of a group on one leaf, so that equal GPUs are one switch apart."""

from __future__ import annotations

import math

import numpy as np

from commsim.core.errors import InputError
from commsim.core.machines.attach import attach_machines
from commsim.core.network import NIC, Network, both_ways, kinds, node_names
from commsim.core.units import Bandwidth, Seconds

from . import LINK_LATENCY, require_at_least, require_buildable, topology


@topology(sized_by=("n_hosts",), holds_machines=True)
def rail_optimized(
    n_hosts: int,
    preset: str = "dgx-h100",
    hosts_per_group: int | None = None,
    n_spines: int | None = None,
    oversubscription: float = 1.0,
    planes: int = 1,
    bandwidth: Bandwidth | None = None,
    latency: Seconds = LINK_LATENCY,
    groups_per_pod: int | None = None,
    cores_per_spine: int | None = None,
    pod_oversubscription: float = 1.0,
) -> Network:
    """Rail-optimised: in a group of machines, the i-th NICs share the i-th leaf; spines join the leaves.

    With pods there is a third tier: the spines join the leaves of their pod, and the i-th spines of all pods share
    core switches, as aggregation switches of a fat tree do.

    Parameters
    ----------
    n_hosts : int
        Machines, at least 1.
    preset : str
        What they are: a preset (``commsim topo presets``), a host type without arguments, or a file of a machine.
    hosts_per_group : int, optional
        Machines under one set of leaves (a scalable unit); a divisor of `n_hosts`. By default all, but at most 32.
    n_spines : int, optional
        Spines of each plane, or of each plane of a pod, each with a cable to every leaf there; by default as many as a
        group has machines.
    oversubscription : float
        Capacity of a leaf's links to machines over that of its links to spines.
    planes : int
        Ports of each NIC, each on a leaf of its own; the leaves and spines of different planes are not joined
        (dual-ToR, dual-plane for 2).
    bandwidth : float, bytes/s, optional
        Bandwidth of all ports of a NIC together, one way; by default that of the NIC's link inside the machine.
    latency : float, s
        Latency of each link outside of the machines.
    groups_per_pod : int, optional
        Groups whose leaves share spines; a divisor of the number of groups. By default all, without a third tier.
    cores_per_spine : int, optional
        Core switches that each spine has a cable to, with pods; by default as many as a pod has leaves of one plane.
    pod_oversubscription : float
        Capacity of a spine's links to leaves over that of its links to core switches, with pods.

    Returns
    -------
    Network
        The machines; ``leaf0 …``, by group, rail and plane; ``spine0 …``, by pod and plane; ``core0 …``, by plane and
        spine.

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
    for key, ratio in (("oversubscription", oversubscription), ("pod_oversubscription", pod_oversubscription)):
        if not 0 < ratio < math.inf:
            raise InputError(f"rail_optimized needs a positive {key}, got {ratio}")
    n_groups = n_hosts // group
    pod = n_groups if groups_per_pod is None else groups_per_pod
    require_at_least("rail_optimized", 1, groups_per_pod=pod)
    if n_groups % pod:
        raise InputError(f"rail_optimized needs groups_per_pod to divide the {n_groups} groups, got {pod}")
    n_pods = n_groups // pod
    machine = load_machine(preset)
    rails, nic = _rails(machine)
    if n_pods == 1 and (cores_per_spine is not None or pod_oversubscription != 1.0):
        raise InputError("rail_optimized has core switches only with pods: give groups_per_pod below the groups")
    cores = 0 if n_pods == 1 else pod * rails if cores_per_spine is None else cores_per_spine
    require_at_least("rail_optimized", 0 if n_pods == 1 else 1, cores_per_spine=cores)
    n_ports, n_leaves, all_spines = n_hosts * rails, n_groups * rails * planes, n_pods * planes * n_spines
    n_cables = n_ports * planes + n_leaves * n_spines + all_spines * cores
    require_buildable(
        "rail_optimized", n_hosts * machine.n_nodes + n_leaves + all_spines + planes * n_spines * cores,
        n_hosts * machine.n_links + 2 * n_cables,
    )  # fmt: skip
    rate = (nic if bandwidth is None else bandwidth) / planes
    uplink = group * rate / (n_spines * oversubscription)
    # NIC ports: host m has the rails m * rails + r; leaves are (group, rail, plane), spines for (pod, plane, i).
    cable = np.arange(n_ports * planes)
    port, plane = cable // planes, cable % planes
    leaf = n_ports + (port // rails // group * rails + port % rails) * planes + plane
    up = np.arange(n_leaves * n_spines)
    below = up // n_spines
    spine = n_ports + n_leaves + (below // (pod * rails * planes) * planes + below % planes) * n_spines + up % n_spines
    top = np.arange(all_spines * cores)
    above = n_ports + n_leaves + all_spines + top // max(1, cores) % (planes * n_spines) * cores + top % cores
    src, dst = both_ways(
        np.concatenate((port, n_ports + below, n_ports + n_leaves + top // max(1, cores))),
        np.concatenate((leaf, spine, above)),
    )
    top_rate = pod * rails * uplink / (cores * pod_oversubscription) if cores else 1.0
    n_switches = {"leaf": n_leaves, "spine": all_spines, "core": planes * n_spines * cores}
    fabric = Network(
        "rail_optimized", node_names(h=n_ports, **n_switches), kinds(n_ports, sum(n_switches.values())), src, dst,
        np.tile(np.repeat([rate, uplink, top_rate], [len(cable), len(up), len(top)]), 2), latency,
    )  # fmt: skip
    return attach_machines(fabric, machine)


def _rails(machine: Network) -> tuple[int, float]:
    """How many NICs a machine has, and the rate of the first one's link inside."""
    nics = np.flatnonzero(machine.kind == NIC)
    if not nics.size:
        raise InputError(f"rail_optimized needs machines with NICs, and {machine.name} has none")
    return len(nics), float(machine.bandwidth[np.flatnonzero(machine.src == nics[0])[0]])
