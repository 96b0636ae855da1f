"""Faults inside machines: NICs, PCIe, sockets, peer access, NVLink SHARP, virtual machines."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.core.machines.parts import NVLINK_METRIC
from commsim.core.network import CPU, GPU, NIC, SWITCH, Network
from commsim.core.network_queries import units
from commsim.diagnosis.causes.fabric_faults import rates_times
from commsim.diagnosis.causes.fault import ROUNDABOUT, Fault
from commsim.diagnosis.causes.ground import Ground, links_between, nics_of_machines, without_links, without_nodes
from commsim.nccl.gpu_costs import costs
from commsim.nccl.machine_links import links_outside, through_host
from commsim.nccl.nccl_setting import GENERATIONS
from commsim.nccl.site import Site

# Parts of their NICs that machines are left with.
PARTS_OF_NICS = (2, 4, 8)
# Rates that ports fall back to, in Gb/s: of InfiniBand those of its generations on four lanes (SDR, QDR or FDR10, FDR,
# EDR, HDR, NDR), and one lane of four; of Ethernet those of its ports (IEEE 802.3).
INFINIBAND_PORTS, LANES = (10, 40, 56, 100, 200, 400), 4
ETHERNET_PORTS = (10, 25, 40, 50, 100, 200, 400)
# What the way through the host's memory carries of the least link on it, which no public table tells: four steps, one
# of them the share that is fitted on EFA's.
STAGED = (0.85, costs().of_network("efa_staged").efficiency, 0.45, 0.3)
# What is left of the uplink that peers meet at, both ways together: all, and less where few reads are under way.
AT_THE_ROOT = (1.0, 0.7, 0.45)
# What peer reads across sockets carry of a NIC's rate, and LL's small messages of that again: few reads are under way
# at once (NVIDIA, GPUDirect RDMA, "Supported systems": limited where the path crosses CPUs).
PEERS_ACROSS = (0.3, 0.1)
# GPUs whose memory NICs read in every release.
SINCE_AMPERE = GENERATIONS[GENERATIONS.index("ampere") :]
# What a PCIe link is taken for where the system does not say it: 16 lanes of generation 3 (src/graph/xml.cc).
UNKNOWN_PCIE = 12e9


def fewer_nics(ground: Ground) -> Iterator[Fault]:
    """Yield grounds whose machines use n of their N NICs.

    NCCL takes the fewest channels of all machines, so that a NIC that one machine lacks costs what all would cost. GPUs
    whose own NIC is gone reach another one over the host bridge, or NVLink and the GPU beside it (PXN).
    """
    nics = nics_of_machines(ground)
    n = min((len(some) for some in nics), default=0)
    counts = sorted({n // part for part in PARTS_OF_NICS if n // part} | ({n - 1} if n > 2 else set()))
    for left in counts if n > 1 else ():
        dead = np.concatenate([_spread_out(some, left) for some in nics])
        weight = 4.0 if left * 2 == n else 1.0
        text = f"{'half' if left * 2 == n else f'{left} of {n}'} of the NICs are used"
        if left == n - 1 and ground.has_several:
            text = f"{left} of {n} NICs are used, by one machine or by all: one is dead"
        few = without_nodes(ground, dead)
        yield Fault("half_or_fewer_nics_used", text, few, weight, number=left)
        if left * 2 == n:
            far = dataclasses.replace(few, options=dataclasses.replace(few.options, path_inter="PHB"))
            yield Fault("half_or_fewer_nics_used", text, far, weight, number=left)


def _spread_out(nics: NDArray[np.int64], left: int) -> NDArray[np.int64]:
    """Return the NICs that are taken away so that those left are spread evenly over the machine."""
    kept = np.linspace(0, len(nics), left, endpoint=False).astype(int)
    gone: NDArray[np.int64] = np.delete(nics, kept)
    return gone


def slower_nics(ground: Ground) -> Iterator[Fault]:
    """Yield grounds with ports at a lower rate of the ladder: all, which NCCL reads, or one, which others wait for."""
    links = links_between(ground.network)
    rate = float(ground.network.bandwidth[links].max(initial=0.0)) * 8e-9
    ports = set(INFINIBAND_PORTS if ground.facts.get("net") == "infiniband" else ETHERNET_PORTS)
    nominal = next((port for port in sorted(ports) if port * 1.01 >= rate), round(rate))
    if ground.facts.get("net") == "infiniband":
        ports.add(nominal // LANES)
    for port in sorted(ports) if ground.has_several else ():
        if nominal / 17 < port < nominal / 1.2:
            text = f"NICs run at {port} Gb/s in place of {nominal:.4g}"
            yield Fault("nic_rate_degraded", text, ground.with_rates(links, port / nominal), number=port)
            text = f"one NIC runs at {port} Gb/s in place of {nominal:.4g}"
            slowest = ground.with_cost(rates_times(port / nominal))
            yield Fault("nic_rate_degraded", text, slowest, number=port)


def slower_pcie(ground: Ground) -> Iterator[Fault]:
    """Yield grounds whose PCIe links are a generation or a width below."""
    network = ground.network
    links = (network.metric != NVLINK_METRIC) & (units(network)[network.src] == units(network)[network.dst])
    for part in (2, 4, 8):
        text = f"PCIe runs at 1/{part} of its rate (generation or width)"
        yield Fault("pcie_gen_or_width", text, _with_nic_plugs(ground).with_rates(links, 1 / part))


def _with_nic_plugs(ground: Ground) -> Ground:
    """Return the ground in which a NIC's link inside its machine has the rate of its GPU's, as its slot has."""
    network = ground.network
    inside = units(network)[network.src] == units(network)[network.dst]
    plug = inside & ((network.kind[network.src] == NIC) | (network.kind[network.dst] == NIC))
    gpus = inside & ~plug & (network.metric != NVLINK_METRIC) & (network.kind[network.src] == GPU)
    slot = float(network.bandwidth[gpus].max(initial=0.0))
    rates = np.where(plug, np.maximum(network.bandwidth, slot), network.bandwidth)
    return dataclasses.replace(ground, network=dataclasses.replace(network, bandwidth=rates, family=""))


def without_gpudirect(ground: Ground) -> Iterator[Fault]:
    """Yield grounds whose NICs do not reach the GPUs' memory, so that all bytes go through the host's."""
    if not ground.has_several or _copies(ground) or ground.facts.get("gpudirect") == "no":
        return
    text = "no GPUDirect RDMA: bytes go through the host"
    for staged in _through_the_host(ground, STAGED):
        yield Fault("gpudirect_rdma_off", text, staged, 1.0, ROUNDABOUT)


def without_reads(ground: Ground) -> Iterator[Fault]:
    """Yield grounds of a release that sends by way of the host's memory what it could read from the GPU's.

    From 2.4.2 on NCCL lets NICs read the memory of GPUs before Ampere only where NVLink joins these, or where there is
    one of them (NCCL_NET_GDR_READ; ``src/graph/paths.cc``, ncclTopoCheckGdr).
    """
    site = ground.site()
    has_one = ground.n_ranks == site.setting.n_nodes
    if not site.pcie or has_one or site.setting.gpu in SINCE_AMPERE or not ground.has_several or _copies(ground):
        return
    text = "a release whose NICs do not read the GPUs' memory (NCCL_NET_GDR_READ)"
    for staged in _through_the_host(ground, STAGED):
        yield Fault("version_regression", text, staged, 1.0, ROUNDABOUT)


def _through_the_host(ground: Ground, shares: Sequence[float]) -> Iterator[Ground]:
    """Yield grounds whose bytes go through the host: of EFA with the costs of the CPU's copies, too."""
    staged = ground.with_facts(gpudirect="no")
    if ground.facts.get("net") in ("efa", "efa3"):
        yield staged
        staged = ground
    for share in shares:
        yield staged.with_cost(_nics_at_most(ground, share))


def without_peer_access(ground: Ground) -> Iterator[Fault]:
    """Yield grounds whose GPUs do not reach each other over PCIe (IOMMU, ACS), or whose NICs go through the root."""
    site = ground.site()
    text = "GPUs do not reach each other: shared memory of the host"
    if site.pcie and np.isfinite(site.link):
        for share in STAGED:
            yield Fault("pcie_p2p_or_acs", text, ground.with_cost(_link_times(share / 2)), 1.0, ROUNDABOUT)
    elif ground.n_ranks > site.setting.n_nodes:
        rate = _pcie_rate(ground)
        yield Fault("pcie_p2p_or_acs", text, ground.with_cost(_link_is(rate / 2)), 0.2, ROUNDABOUT)
        yield from _one_gpu_alone(ground)
    if ground.has_several and not _copies(ground):
        through = "ACS or IOMMU: PCIe peers meet at the root"
        for share in AT_THE_ROOT:
            root = ground.with_cost(_nics_at_most(ground, share, loses=False))
            yield Fault("pcie_p2p_or_acs", through, root, 0.25, ROUNDABOUT)


def _one_gpu_alone(ground: Ground) -> Iterator[Fault]:
    """Yield the ground with a GPU whose NVLinks are all down, as where the fabric manager left it out."""
    network, node = ground.network, int(ground.nodes[-1])
    dead = (network.metric == NVLINK_METRIC) & ((network.src == node) | (network.dst == node))
    if dead.any():
        text = "no NVLink joins one GPU to the others: bytes go over PCIe"
        yield Fault("pcie_p2p_or_acs", text, without_links(ground, dead), 0.2, other_way=True)


def across_sockets(ground: Ground) -> Iterator[Fault]:
    """Yield grounds whose GPUs use NICs of the other socket, where NCCL uses no GPUDirect."""
    if not ground.has_several or _copies(ground):
        return
    text, label = "GPUs use NICs of another socket or NUMA node", "numa_or_affinity"
    for staged in _through_the_host(ground, STAGED):
        far = dataclasses.replace(staged, options=dataclasses.replace(staged.options, path_inter="SYS"))
        yield Fault(label, text, far, 1.0, ROUNDABOUT)
    if between := _between_sockets(ground.network):
        capped = ground.with_facts(gpudirect="no").with_cost(_nics_at_most(ground, STAGED[1]))
        yield Fault(label, text, capped.with_cost(_all_nics_at_most(between)), 1.0, ROUNDABOUT)
    peers = ground.with_cost(_nics_at_most(ground, PEERS_ACROSS[0]))
    peers = dataclasses.replace(peers, plugin=(("ll_efficiency", PEERS_ACROSS[1]),))
    yield Fault(label, f"{text}, with GPUDirect across them", peers, 1.0, ROUNDABOUT)


def _between_sockets(network: Network) -> float:
    cpus = network.kind == CPU
    return float(network.bandwidth[cpus[network.src] & cpus[network.dst]].max(initial=0.0))


def without_nvls(ground: Ground) -> Iterator[Fault]:
    """Yield the ground whose NVSwitches do not add."""
    if "nvls" in ground.site().setting.channels:
        network = ground.network
        inside = (network.kind == SWITCH) & (network.machine >= 0)
        plain = dataclasses.replace(network, aggregates=network.aggregates & ~inside, family="")
        options = dataclasses.replace(ground.options, nvls=None)
        changed = dataclasses.replace(ground, network=plain, options=options)
        yield Fault("nvls_off_or_unavailable", "NVLink SHARP is off or not available", changed, other_way=True)


def in_virtual_machines(ground: Ground) -> Iterator[Fault]:
    """Yield grounds whose PCIe tree NCCL does not see: all NICs are far, and their speeds may be unknown."""
    if not ground.has_several or _copies(ground):
        return
    label, text = "virtualisation_or_topology_file_missing", "NCCL sees no PCIe tree (virtual machine, topology file)"
    rate = float(ground.network.bandwidth[links_between(ground.network)].max())
    seen = dataclasses.replace(ground.options, nic=min(rate, UNKNOWN_PCIE), path_inter="SYS")
    flat = dataclasses.replace(ground, options=seen)
    for staged in _through_the_host(flat, STAGED):
        yield Fault(label, text, staged, 1.0, ROUNDABOUT)
    yield Fault(label, f"{text}; GPUDirect works", flat, 0.5, ROUNDABOUT)
    nics = nics_of_machines(ground)
    if min(len(some) for some in nics) > 1:
        one = without_nodes(flat, np.concatenate([_spread_out(some, 1) for some in nics]))
        yield Fault(label, f"{text}; all GPUs take one NIC", one, 0.5, ROUNDABOUT)


def _copies(ground: Ground) -> bool:
    """Whether the CPU copies all bytes already."""
    return ground.facts.get("net", "") in ("ena", "sockets", "tcpx", "tcpxo")


def _pcie_rate(ground: Ground) -> float:
    """Return the rate of a GPU's PCIe link; 16 lanes of generation 4 where the network does not say it."""
    network, node = ground.network, int(ground.nodes[0])
    own = (network.src == node) & (network.metric != NVLINK_METRIC)
    return float(network.bandwidth[own].max(initial=0.0)) or 24e9


def _nics_at_most(ground: Ground, share: float, *, loses: bool = True) -> Callable[[Site], Site]:
    """Return a change: NICs carry a share of what the way through the host carries, or of their own rate if less."""
    network, node = ground.network, int(ground.nodes[0])
    unit = units(network)
    rate, n_nics, near, _ = links_outside(network, unit, ground.nodes[unit[ground.nodes] == unit[node]])
    staged = through_host(network, unit, node, near)
    each = min(rate, staged) * share if loses else min(rate, staged * share)

    def change(site: Site) -> Site:
        return dataclasses.replace(site, nics=min(site.nics, each * max(1, n_nics)))

    return change


def _all_nics_at_most(rate: float) -> Callable[[Site], Site]:
    def change(site: Site) -> Site:
        return dataclasses.replace(site, nics=min(site.nics, rate))

    return change


def _link_times(factor: float) -> Callable[[Site], Site]:
    def change(site: Site) -> Site:
        return dataclasses.replace(site, link=site.link * factor)

    return change


def _link_is(rate: float) -> Callable[[Site], Site]:
    def change(site: Site) -> Site:
        return dataclasses.replace(site, link=min(site.link, rate))

    return change
