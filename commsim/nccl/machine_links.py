"""What the links of one machine say: how fast its GPUs and its NICs are, and how they reach each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.machine import NVLINK_METRIC
from commsim.core.network import SWITCH, Network
from commsim.core.node_kind import CPU, GPU, NIC


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
        raise InputError(f"{network.name}: ranks share a machine whose inside is not known; say --channels N:RATE")
    return float(network.bandwidth[within].max()), "PHB"


def links_outside(network: Network, unit: NDArray[np.int64], node: int) -> tuple[float, int, str]:
    """Rate and number of the NICs of a machine, and how a GPU reaches one."""
    mine = unit == unit[node]
    leaving = mine[network.src] & ~mine[network.dst]
    if not leaving.any():
        return 0.0, 0, "PIX"
    ports = np.unique(network.src[leaving])
    rate = float(np.bincount(network.src[leaving], network.bandwidth[leaving])[ports].min())
    if network.kind[node] != GPU:
        return rate, len(ports), "PIX"
    nics = mine & (network.kind == NIC)
    plugs = mine[network.src] & nics[network.dst]  # the PCIe links of the NICs, which may be slower than their ports
    beside = network.dst[(network.src == node) & mine[network.dst]]
    shared = network.dst[np.isin(network.src, beside[network.kind[beside] == SWITCH])]
    near = "PIX" if nics[shared].any() else ("PHB" if (network.kind[mine] == CPU).any() else "PXB")
    return min(rate, float(network.bandwidth[plugs].min(initial=rate))), int(nics.sum()), near


def has_nvls(network: Network, unit: NDArray[np.int64], node: int) -> bool:
    """Whether a switch inside the machine can reduce."""
    inside = (unit == unit[node]) & (network.machine >= 0)
    return bool((inside & network.aggregates & (network.kind == SWITCH)).any())
