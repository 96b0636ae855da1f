"""Derive NCCL's setting from a network and a placement, and write down everything that had to be assumed.

What the links of one machine say: how fast its GPUs and its NICs are, and how they reach each other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.machine import NVLINK_METRIC
from commsim.core.network import CPU, GPU, NIC, SWITCH, Network
from commsim.core.network_queries import units
from commsim.core.placement import Placement

from .search import CHANNEL_GBS, Channels, Setting, doubled, nvls_channels, packed_channels


def links_inside(network: Network, unit: NDArray[np.int64], node: int, per_node: int) -> tuple[float, str]:
    """Rate of a GPU's links to the other GPUs of its machine, and the kind of path."""
    out = network.src == node
    within = out & (unit[network.dst] == unit[node])
    if per_node == 1:
        return float("inf"), "NVL"
    nvlinks = within & (network.metric == NVLINK_METRIC)
    if nvlinks.any():
        return float(network.bandwidth[nvlinks].sum()), "NVL"
    if not within.any():
        raise InputError(
            f"{network.name}: ranks share a machine without a description of its inside; give --channels N:RATE"
        )
    return float(network.bandwidth[within].max()), "PHB"


def links_outside(network: Network, unit: NDArray[np.int64], node: int) -> tuple[float, int, str]:
    """Rate and number of the NICs of a machine, and how a GPU reaches one."""
    in_unit = unit == unit[node]
    leaving = in_unit[network.src] & ~in_unit[network.dst]
    if not leaving.any():
        return 0.0, 0, "PIX"
    ports = np.unique(network.src[leaving])
    rate = float(np.bincount(network.src[leaving], network.bandwidth[leaving])[ports].min())
    if network.kind[node] != GPU:
        return rate, len(ports), "PIX"
    nics = in_unit & (network.kind == NIC)
    plugs = in_unit[network.src] & nics[network.dst]  # the PCIe links of the NICs, which may be slower than their ports
    beside = network.dst[(network.src == node) & in_unit[network.dst]]
    shared = network.dst[np.isin(network.src, beside[network.kind[beside] == SWITCH])]
    near = "PIX" if nics[shared].any() else ("PHB" if (network.kind[in_unit] == CPU).any() else "PXB")
    return min(rate, float(network.bandwidth[plugs].min(initial=rate))), int(nics.sum()), near


def has_nvls(network: Network, unit: NDArray[np.int64], node: int) -> bool:
    """Whether a switch inside the machine can reduce."""
    inside = (unit == unit[node]) & (network.machine >= 0)
    return bool((inside & network.aggregates & (network.kind == SWITCH)).any())


_GENERATION_OF = (
    (r"v100", "volta"), (r"a100|p4de?\b|ndv4", "ampere"), (r"h100|h200|h800|\bp5|ndv5|hpn7|meta-24k", "hopper"),
    (r"b200|b300|nvl72|p6", "blackwell"),
)  # fmt: skip
# By what a preset is called; its sources say which CPU each has.
_CPU_OF = ((r"dgx-a100|ndv4|p5\b", "amd"), (r"dgx-h100|h800|ndv5|p4d", "intel"), (r"gb200|gb300", "other"))


@dataclass(frozen=True, slots=True)
class Given:
    """What the user says instead of what would be derived; None: derive it.

    Parameters
    ----------
    gpu, cpu : str
        Generation and vendor.
    channels : (int, float), bytes/s
        Of rings and trees, after doubling.
    nvls : (int, float), bytes/s
        Of NVLink SHARP; (0, 0) for a machine without.
    nic : float, bytes/s
        That NCCL takes a NIC to have.
    path_inter : str
        Between a GPU and its NIC.
    net_latency : float, s
        Of the network plugin.
    collnet : bool
        Whether the network reduces.
    by_pattern : dict of str to Channels
        From NCCL's own dump; replaces all of the above that it has.
    """

    gpu: str | None = None
    cpu: str | None = None
    channels: tuple[int, float] | None = None
    nvls: tuple[int, float] | None = None
    nic: float | None = None
    path_inter: str | None = None
    net_latency: float | None = None
    collnet: bool = False
    by_pattern: dict[str, Channels] | None = None


def setting_of(network: Network, placement: Placement, n_ranks: int, given: Given) -> Setting:
    """Derive the setting.

    Parameters
    ----------
    network, placement
        Where the ranks sit.
    n_ranks : int
        At least 2.
    given : Given
        What is known better.

    Raises
    ------
    InputError
        If no channel fits, or something given is out of its range.
    """
    nodes = placement.nodes[:n_ranks]
    unit = units(network)
    machines, counts = np.unique(unit[nodes], return_counts=True)
    assumed: list[str] = []
    gpu = given.gpu or _by_name(network, _GENERATION_OF, "hopper", "GPUs are Hopper (--gpu)", assumed)
    cpu = given.cpu or _by_name(network, _CPU_OF, "intel", "CPUs are Intel's (--cpu)", assumed)
    if counts.min() != counts.max():
        assumed.append(
            f"ranks must be spread evenly; nodes have {counts.min()} to {counts.max()}, and NCCL rounds down"
        )
    node = int(nodes[0])
    inside, path = links_inside(network, unit, node, int(counts[0]))
    outside, n_nics, near = links_outside(network, unit, node)
    if given.nic is not None:
        outside = given.nic
    elif len(machines) > 1:
        assumed.append(f"NCCL takes a NIC to have the {outside / 1e9:.4g} GB/s of the network (--nic)")
    channels = _channels(gpu, inside, path, outside, n_nics, len(machines) > 1, given, near, assumed)
    if given.net_latency is None and len(machines) > 1 and given.by_pattern is None:
        assumed.append("the network plugin adds no latency (--net-latency)")
    adds = has_nvls(network, unit, node) and gpu in ("hopper", "blackwell") and counts.min() > 1
    if given.nvls is not None or (adds and "nvls" not in channels):
        n, rate = given.nvls or nvls_channels(gpu, int(counts[0]), inside)
        fastest = next((gbs * 1e9 for gbs in CHANNEL_GBS[gpu] if gbs * 1e9 <= inside), 0.0)
        channels["nvls"] = _with(channels["ring"], n, rate, fastest, len(machines) > 1)
        if given.nvls is None:
            assumed.append(f"NVLink SHARP has {n} channels of {rate / 1e9:.4g} GB/s, one for each GPU (--nvls)")
    if given.collnet and "collnet" not in channels:
        channels["collnet"] = channels["ring"]
        assumed.append("CollNet has the channels of the ring")
    return Setting(n_ranks, len(machines), gpu, cpu, channels, given.collnet, n_nics == 1, tuple(assumed))


def _channels(
    gpu: str, inside: float, path: str, outside: float, n_nics: int, many: bool, given: Given, near: str,
    assumed: list[str],
) -> dict[str, Channels]:  # fmt: skip
    """Return channels of rings and trees: as NCCL dumped them, as the user says, or packed."""
    rates = dict(given.by_pattern or {})
    if "ring" in rates:
        rates.setdefault("tree", rates["ring"])
        return rates
    if given.channels is not None:
        n, rate = given.channels
    else:
        n, rate = doubled(gpu, *packed_channels(gpu, inside, outside if many else None, n_nics))
        links = f"{inside / 1e9:.4g} GB/s inside a node" if inside != float("inf") else "one GPU per node"
        beside = f" and {n_nics} NICs of {outside / 1e9:.4g} GB/s" if many else ""
        assumed.append(
            f"rings and trees have {n} channels of {rate / 1e9:.4g} GB/s: what carries the most within {links}{beside} "
            "(--channels, or --graph with NCCL's own)"
        )
    reach = given.path_inter or near
    if many and given.path_inter is None:
        assumed.append(f"a GPU reaches its NIC by {near}" + ("" if n_nics else " (the network does not show it)"))
    one = Channels(n, rate, rate if many else 0.0, given.net_latency or 0.0, path, reach if many else "PIX")
    return {"ring": one, "tree": one} | rates


def _with(ring: Channels, n: int, rate: float, fastest: float, many: bool) -> Channels:
    """Channels of another pattern over the same NICs; without any, the search leaves the rate that it began with."""
    outside = (ring.n * ring.inter / n if n else 0.0) if many else fastest
    return Channels(n, rate, outside, ring.latency, ring.path_intra, ring.path_inter, ring.same)


def _by_name(network: Network, known: tuple[tuple[str, str], ...], usual: str, text: str, assumed: list[str]) -> str:
    """Tell a fact by the preset that the network is called after."""
    for pattern, value in known:
        if re.search(pattern, network.name.lower()):
            return value
    assumed.append(text)
    return usual
