"""How likely each cause is beforehand on machines of some kind, before any time is looked at.

A cause has a class (:data:`~commsim.diagnosis.causes.labels.CAUSES`); what is known of the machines moves it by one or
two. A reader of a log does the same first: a rack of two machines has no uplinks, a machine whose maker laid its NICs
out has them beside their GPUs, where GPUs lie on all sockets one is beside each NIC, and one GPU that a scheduler gave
out has any NIC.

References
----------
Kubernetes, "Control Topology Management Policies on a Node": the default policy is ``none``, by which devices of a pod
are given without a look at their NUMA nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from commsim.core.machines.parts import NVLINK_METRIC
from commsim.core.network import CPU
from commsim.core.network_queries import levels_from, units
from commsim.diagnosis.causes.ground import Ground, nics_of_machines
from commsim.diagnosis.causes.labels import CAUSES, HEALTHY, HEALTHY_ALONE, HEALTHY_BESIDE_REFERENCE, RARE
from commsim.nccl.site import Site

# Machines up to which a run is usually below one switch, where there is no uplink that could be shared.
ON_ONE_SWITCH, BETWEEN_SWITCHES = 2, ("oversubscribed_or_hash_collisions", "rail_mismatch_or_cabling")
# Networks whose cables and ports an operator of a cloud keeps, not its user.
CLOUDS = ("efa", "efa3", "ena", "tcpx", "tcpxo")


def shares_beforehand(ground: Ground, labels: Iterable[str], *, has_reference: bool) -> dict[str, float]:
    """Return the share of tables that each cause has among those that people ask about.

    Parameters
    ----------
    ground : Ground
        What they were measured on.
    labels : iterable of str
        Causes that the ground may have.
    has_reference : bool
        Whether a better table of the same sizes is beside it.
    """
    site = ground.site()
    known = {label: weight_on(ground, label, site) for label in labels if label != HEALTHY}
    return shares_of(known, has_reference=has_reference)


def shares_of(weights: Mapping[str, float], *, has_reference: bool) -> dict[str, float]:
    """Return the share of each cause, and of healthy tables, from how likely the causes are relative to each other.

    Parameters
    ----------
    weights : mapping of str to float
        Weight of each cause.
    has_reference : bool
        Whether a better table of the same sizes is beside it.
    """
    healthy, total = HEALTHY_BESIDE_REFERENCE if has_reference else HEALTHY_ALONE, sum(weights.values())
    return {HEALTHY: healthy, **{label: (1 - healthy) * weight / total for label, weight in weights.items()}}


def weight_on(ground: Ground, label: str, site: Site | None = None) -> float:
    """Return how likely a cause is on a ground, relative to the others.

    Parameters
    ----------
    ground : Ground
        Ground without a fault.
    label : str
        Cause.
    site : Site, optional
        Where its calls run. Default: it is sought here.
    """
    usual, n_machines, site = CAUSES[label].prior, len(nics_of_machines(ground)), site or ground.site()
    is_card, is_alone = site.pcie or not _has_nvlink(ground), ground.n_ranks == n_machines
    if label == "numa_or_affinity":
        if is_alone and not is_card:  # a part of a machine: a scheduler gave out a GPU and some NIC
            return 2 * usual
        return RARE if _is_laid_out(ground, site) or _has_gpus_on_every_socket(ground) else usual
    if label == "pcie_p2p_or_acs" and not site.pcie:  # only the way from NICs to GPUs is left to it
        return RARE if is_alone else usual / 2
    if label == "pcie_gen_or_width" and not is_card:  # no slot that a card may sit loose in, but those of NICs
        return usual / 2
    if label == "nic_rate_degraded" and ground.facts.get("net") in CLOUDS:  # no cable of the user's
        return usual / 2
    if label in BETWEEN_SWITCHES and n_machines <= ON_ONE_SWITCH:
        return usual / 2
    if label == "straggler_host" and n_machines == 1:
        return RARE / 2  # there is no other host
    return usual


def _has_nvlink(ground: Ground) -> bool:
    """Whether the ranks' GPUs have NVLinks, which those on cards mostly lack."""
    network, node = ground.network, int(ground.nodes[0])
    return bool(((network.src == node) & (network.metric == NVLINK_METRIC)).any())


def _is_laid_out(ground: Ground, site: Site) -> bool:
    """Whether the machine's maker put NICs beside GPUs: several GPUs on NVLink that have a NIC for each two at most."""
    machines = nics_of_machines(ground)
    each = ground.n_ranks / len(machines)
    return each > 1 and not site.pcie and min(map(len, machines)) * 2 >= each


def _has_gpus_on_every_socket(ground: Ground) -> bool:
    """Whether several GPUs of a machine lie on all its sockets, so that one is beside a NIC in whatever slot.

    NCCL leaves machines by such a GPU (``src/graph/search.cc``, ncclTopoSelectNets).
    """
    network, unit = ground.network, units(ground.network)
    here = unit == unit[ground.nodes[0]]
    gpus, cpus = ground.nodes[here[ground.nodes]], np.flatnonzero(here & (network.kind == CPU))
    if len(gpus) < 2 or not len(cpus):
        return False
    inside = here[network.src] & here[network.dst] & (network.metric != NVLINK_METRIC)
    src, dst, nodes = network.src[inside], network.dst[inside], np.arange(network.n_nodes)
    far = np.array([levels_from(nodes == cpu, src, dst)[gpus] for cpu in cpus])
    return bool((far == far.min(axis=0)).any(axis=1).all())
