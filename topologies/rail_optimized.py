"""The rail-optimised fabric: NIC i of every machine of a group on one leaf, so that equal GPUs are one switch apart."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import numpy as np

from commsim.core.errors import InputError
from commsim.core.machines.attach import attach_machines
from commsim.core.network import NIC, Network, both_ways, kinds, node_names
from commsim.core.units import Bandwidth, Ratio, Seconds

from . import LINK_LATENCY, require_at_least, require_buildable, topology
from .switch_ports import RAILS, fewest_above, fitting_group, require_ports
from .uplinks import CableOptions, Cables, Tier, by_tier, lay

# Machines under one set of leaves, at most: a scalable unit of DGX H100, whose leaves have 64 ports, half of them down.
UNIT = 32
PODS = Tier("rail_optimized", "spine", "core switch", "cores_per_spine", "uplinks_per_core", "pod_")


@topology(sized_by=("n_hosts",), holds_machines=True)
def rail_optimized(
    n_hosts: int,
    preset: str = "dgx-h100",
    hosts_per_group: int | None = None,
    n_spines: int | None = None,
    oversubscription: Ratio | None = None,
    planes: int = 1,
    bandwidth: Bandwidth | None = None,
    latency: Seconds = LINK_LATENCY,
    groups_per_pod: int | None = None,
    cores_per_spine: int | None = None,
    pod_oversubscription: Ratio | None = None,
    uplink_bandwidth: Bandwidth | None = None,
    uplinks_per_spine: int | None = None,
    pod_uplink_bandwidth: Bandwidth | None = None,
    uplinks_per_core: int | None = None,
    switch_ports: int | None = None,
    uplink_latency: Seconds | None = None,
    pod_uplink_latency: Seconds | None = None,
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
        Machines under one set of leaves (a scalable unit); the last group has what is left. By default all of up to 32
        machines, in one group whose traffic between equal rails meets no spine; of more, the largest divisor from 16 to
        32, or 32 without one; with `switch_ports` as many as a leaf has ports for.
    n_spines : int, optional
        Spines of each plane, or of each plane of a pod, cabled to every leaf there; by default as many as a leaf has
        cables up (over `uplinks_per_spine`).
    oversubscription : float, optional
        Capacity of a leaf's links to machines over that of its cables to spines, such as 2:1. It says how many cables
        there are; spines that would get none are left out. By default as few cables as are non-blocking, or those that
        `n_spines` and `uplinks_per_spine` give together.
    planes : int
        Ports of each NIC, each on a leaf of its own; the leaves and spines of different planes are not joined
        (dual-ToR, dual-plane for 2).
    bandwidth : float, bytes/s, optional
        Bandwidth of all ports of a NIC together, one way; by default that of the NIC's link inside the machine.
    latency : float, s
        Latency of each link outside of the machines.
    groups_per_pod : int, optional
        Groups whose leaves share spines; a divisor of the number of groups. By default all, without a third tier. Where
        spines of `switch_ports` have too few ports for all, and their number is not given, the divisor with the fewest
        switches.
    cores_per_spine : int, optional
        Core switches that each spine is cabled to, with pods; by default as many as a spine has cables up.
    pod_oversubscription : float, optional
        Capacity of a spine's cables to leaves over that of its cables to core switches, with pods; as
        `oversubscription`.
    uplink_bandwidth : float, bytes/s, optional
        Bandwidth of each cable between leaf and spine, one way; by default that of a port.
    uplinks_per_spine : int, optional
        Parallel cables between each leaf and each spine; by default 1, or more if `n_spines` are too few.
    pod_uplink_bandwidth : float, bytes/s, optional
        Bandwidth of each cable between spine and core switch, one way; by default that of one between leaf and spine.
    uplinks_per_core : int, optional
        Parallel cables between each spine and each of its core switches; as `uplinks_per_spine`.
    switch_ports : int, optional
        Ports of each switch, such as 64. Spines are then as few as have ports for all cables, unless their number is
        given, and a network that needs switches with more ports is refused. By default any number.
    uplink_latency : float, s, optional
        Latency of each cable between leaf and spine; by default that of the hosts' links.
    pod_uplink_latency : float, s, optional
        Latency of each cable between spine and core switches; by default that of the cables below it.

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

    require_at_least("rail_optimized", 1, n_hosts=n_hosts, planes=planes)
    machine = load_machine(preset)
    rails, nic = _rails(machine)
    rate = (nic if bandwidth is None else bandwidth) / planes
    options = CableOptions(n_spines, uplinks_per_spine, oversubscription, uplink_bandwidth)
    group = hosts_per_group
    if group is None:
        fits = switch_ports is not None
        group = fitting_group(n_hosts, switch_ports or 0, rails, rate, options) if fits else _unit(n_hosts)
    require_at_least("rail_optimized", 1, hosts_per_group=group)
    counts = {"n_spines": n_spines, "uplinks_per_spine": uplinks_per_spine, "uplinks_per_core": uplinks_per_core,
             "groups_per_pod": groups_per_pod, "cores_per_spine": cores_per_spine}  # fmt: skip
    require_at_least("rail_optimized", 1, **{key: count for key, count in counts.items() if count is not None})
    group = min(group, n_hosts)
    n_groups = -(-n_hosts // group)
    asked_of_pods = CableOptions(cores_per_spine, uplinks_per_core, pod_oversubscription, pod_uplink_bandwidth)
    tiers = _Tiers(n_groups, group, rails, rate, options, asked_of_pods, switch_ports)
    pod, leaf_up, spine_up = tiers.laid(groups_per_pod)
    n_pods = n_groups // pod
    n_ports, n_leaves, all_spines = n_hosts * rails, n_groups * rails * planes, n_pods * planes * leaf_up.n_above
    leaf_cables, spine_cables = leaf_up.n_above * leaf_up.per_pair, spine_up.n_above * spine_up.per_pair
    n_cables = n_ports * planes + n_leaves * leaf_cables + all_spines * spine_cables
    n_switches = {"leaf": n_leaves, "spine": all_spines, "core": planes * leaf_up.n_above * spine_up.n_above}
    require_buildable(
        "rail_optimized", n_hosts * machine.n_nodes + sum(n_switches.values()), n_hosts * machine.n_links + 2 * n_cables
    )
    # NIC ports: host m has the rails m * rails + r; leaves are (group, rail, plane), spines for (pod, plane, i).
    cable = np.arange(n_ports * planes, dtype=np.int32)
    port, plane = cable // planes, cable % planes
    leaf = n_ports + (port // rails // group * rails + port % rails) * planes + plane
    up = np.arange(n_leaves * leaf_cables, dtype=np.int32)
    lower = up // leaf_cables
    spine = lower // (pod * rails * planes) * planes + lower % planes
    spine = n_ports + n_leaves + spine * leaf_up.n_above + up // leaf_up.per_pair % leaf_up.n_above
    top = np.arange(all_spines * spine_cables, dtype=np.int32)
    upper = top // max(1, spine_cables)
    core = upper % (planes * leaf_up.n_above) * spine_up.n_above
    core = n_ports + n_leaves + all_spines + core + top // max(1, spine_up.per_pair) % max(1, spine_up.n_above)
    src, dst = both_ways(
        np.concatenate((port, n_ports + lower, n_ports + n_leaves + upper)), np.concatenate((leaf, spine, core))
    )
    fabric = Network(
        "rail_optimized", node_names(h=n_ports, **n_switches), kinds(n_ports, sum(n_switches.values())), src, dst,
        np.tile(np.repeat([rate, leaf_up.rate, spine_up.rate], [len(cable), len(up), len(top)]), 2),
        by_tier([len(cable), len(up), len(top)], latency, uplink_latency, pod_uplink_latency),
        left_out=", ".join(filter(None, (leaf_up.left_out, spine_up.left_out))),
    )  # fmt: skip
    return attach_machines(fabric, machine)


@dataclass(frozen=True, slots=True)
class _Tiers:
    """The tiers above the machines: how many groups share spines, and the cables up from leaves and from spines."""

    n_groups: int
    group: int
    rails: int
    rate: float
    options: CableOptions
    of_pods: CableOptions
    ports: int | None

    def laid(self, groups_per_pod: int | None) -> tuple[int, Cables, Cables]:
        """Return the groups of a pod and both sets of cables; without `groups_per_pod`, a third tier only if needed."""
        pod = self.n_groups if groups_per_pod is None else groups_per_pod
        if self.n_groups % pod:
            raise InputError(f"rail_optimized needs groups_per_pod to divide the {self.n_groups} groups, got {pod}")
        is_derived = groups_per_pod is None and self._is_fewest
        if is_derived and self._spine_ports(pod, *self._cables(pod)) > (self.ports or 0):
            pod = self._fitting_pod()
        if pod == self.n_groups and self.of_pods != CableOptions():
            raise InputError("rail_optimized has core switches only with pods: give groups_per_pod below the groups")
        leaf_up, spine_up = self._cables(pod)
        self._require_ports(pod, leaf_up, spine_up)
        return pod, leaf_up, spine_up

    @property
    def _is_fewest(self) -> bool:
        """Whether spines are as few as have ports for all cables."""
        return self.ports is not None and self.options.n_above is None and self.options.per_pair is None

    def _fitting_pod(self) -> int:
        """Return the groups of a pod with the fewest switches, of those that fit; 1 if none does."""
        switches = {}
        for pod in (n for n in range(self.n_groups // 2, 0, -1) if self.n_groups % n == 0):
            with contextlib.suppress(InputError):  # too few ports, or no cables of the ratio
                leaf_up, spine_up = self._cables(pod)
                self._require_ports(pod, leaf_up, spine_up)
                switches[pod] = leaf_up.n_above * (self.n_groups // pod + spine_up.n_above)
        return min(switches, key=lambda pod: switches[pod], default=1)

    def _cables(self, pod: int) -> tuple[Cables, Cables]:
        n_pods = self.n_groups // pod
        leaf_up = lay(RAILS, self.group * self.rate, self.rate, self.options, is_full=True)
        if self.ports is not None and self._is_fewest:
            down = self.ports if n_pods == 1 else self.ports / (1 + 1 / (self.of_pods.oversubscription or 1.0))
            leaf_up = fewest_above(leaf_up, pod * self.rails, down)
        if n_pods == 1:
            return leaf_up, Cables(0, 0, 1.0)
        below = pod * self.rails * leaf_up.per_pair * leaf_up.rate
        spine_up = lay(PODS, below, leaf_up.rate, self.of_pods, is_full=True)
        if self.ports is not None and self.of_pods.n_above is None and self.of_pods.per_pair is None:
            spine_up = fewest_above(spine_up, n_pods, self.ports)
        return leaf_up, spine_up

    def _spine_ports(self, pod: int, leaf_up: Cables, spine_up: Cables) -> int:
        return pod * self.rails * leaf_up.per_pair + spine_up.n_above * spine_up.per_pair

    def _require_ports(self, pod: int, leaf_up: Cables, spine_up: Cables) -> None:
        if self.ports is None:
            return
        ports = {"leaf": self.group + leaf_up.n_above * leaf_up.per_pair,
                 "spine": self._spine_ports(pod, leaf_up, spine_up),
                 "core switch": self.n_groups // pod * spine_up.per_pair}  # fmt: skip
        require_ports("rail_optimized", ports, self.ports)


def _unit(n_hosts: int) -> int:
    """Return how many machines a group has where nobody says: all of up to 32, else an even share of them, or 32."""
    if n_hosts <= UNIT:
        return n_hosts
    return next((size for size in range(UNIT, UNIT // 2 - 1, -1) if n_hosts % size == 0), UNIT)


def _rails(machine: Network) -> tuple[int, float]:
    """How many NICs a machine has, and the rate of the first one's link inside."""
    nics = np.flatnonzero(machine.kind == NIC)
    if not nics.size:
        raise InputError(f"rail_optimized needs machines with NICs, and {machine.name} has none")
    return len(nics), float(machine.bandwidth[np.flatnonzero(machine.src == nics[0])[0]])
