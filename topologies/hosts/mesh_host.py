"""The mesh host: GPUs that are joined to each other by links of their own, without a switch, and a PCIe tree."""

from __future__ import annotations

import itertools
from typing import Literal

from commsim.core.errors import InputError
from commsim.core.machines.parts import NVLINK_LATENCY, Parts
from commsim.core.network import Network
from commsim.core.units import Bandwidth, Seconds
from topologies import require_at_least

from . import INTER_CPU, MEMORY, NVLINK, PCIE, host_type
from .pcie_tree import add_pcie_tree

# The hybrid cube mesh of eight V100, six NVLinks each: pairs of GPUs, and how many of the six join them.
CUBE = {
    (0, 1): 1, (0, 2): 1, (0, 3): 2, (0, 4): 2, (1, 2): 2, (1, 3): 1, (1, 5): 2, (2, 3): 2, (2, 6): 1, (3, 7): 1,
    (4, 5): 1, (4, 6): 1, (4, 7): 2, (5, 6): 2, (5, 7): 1, (6, 7): 2,
}  # fmt: skip
# The eight dies of four MI250X: four xGMI links between the two dies of a package, one or two between packages.
_DIES = {
    (0, 1): 4, (2, 3): 4, (4, 5): 4, (6, 7): 4, (0, 6): 2, (2, 4): 2, (0, 2): 1, (1, 3): 1, (1, 5): 1, (3, 7): 1,
    (4, 6): 1, (5, 7): 1,
}  # fmt: skip
# Layouts of eight in which GPUs forward: pairs with their links, and the links of a GPU.
_EIGHT = {"cube": (CUBE, 6), "dies": (_DIES, 7)}


@host_type
def mesh_host(
    n_gpus: int = 4,
    n_nics: int = 4,
    n_pcie_switches: int = 0,
    n_cpus: int = 2,
    layout: Literal["full", "pairs", "cube", "dies"] = "full",
    nvlink: Bandwidth = NVLINK,
    pcie: Bandwidth = PCIE,
    nic: Bandwidth = 25e9,
    inter_cpu: Bandwidth = INTER_CPU,
    memory: Bandwidth = MEMORY,
    nvlink_latency: Seconds = 2 * NVLINK_LATENCY,
) -> Network:
    """Mesh host: GPUs with direct links (NVLink, xGMI) to some or all of the others, and NICs in a PCIe tree.

    Parameters
    ----------
    n_gpus, n_nics, n_pcie_switches, n_cpus : int
        Number of GPUs, at least 1; each of the others may be 0, as long as GPUs and NICs hang on something. GPUs are a
        multiple of the PCIe switches, NICs a multiple or a divisor, and switches a multiple of the sockets.
    layout : {"full", "pairs", "cube", "dies"}
        Pairs of GPUs that are joined: all; neighbours 0-1, 2-3 and so on (a bridge); or eight as in the hybrid cube
        mesh, where some pairs have twice the links of others, and GPUs forward for each other; or the eight dies of
        four MI250X, likewise.
    nvlink : float, bytes/s
        Bandwidth of all such links of one GPU together, one way; a full mesh deals it equally to the other GPUs.
    pcie : float, bytes/s
        Bandwidth of the PCIe link of a GPU, and of the uplink of a PCIe switch.
    nic : float, bytes/s
        Bandwidth of a NIC.
    inter_cpu : float, bytes/s
        Bandwidth between two sockets.
    memory : float, bytes/s
        Bandwidth of a socket's memory, one way.
    nvlink_latency : float, s
        Latency between two joined GPUs; by default that of two links with an NVSwitch between them.

    Returns
    -------
    Network
        ``gpu0 …``, ``nic0 …``, ``cpu0 …``, ``memory0 …``, ``pcie0 …`` of one machine.

    Raises
    ------
    InputError
        Without a GPU, or if a count does not divide evenly, or the layout is for another number of GPUs.

    References
    ----------
    Li et al., "Evaluating modern GPU interconnect", IEEE TPDS 2020, section 2: the hybrid cube mesh of DGX-1. Pearson,
    "Interconnect bandwidth heterogeneity on AMD MI250x and Infinity Fabric", arXiv 2302.14827: the dies.
    """
    require_at_least("mesh_host", 1, n_gpus=n_gpus)
    parts = Parts()
    gpus = add_pcie_tree(
        "mesh_host", parts, n_gpus=n_gpus, n_nics=n_nics, n_pcie_switches=n_pcie_switches, n_cpus=n_cpus,
        pcie=pcie, nic=nic, inter_cpu=inter_cpu, memory=memory,
    )  # fmt: skip
    rate = {(gpus[a], gpus[b]): share * nvlink for (a, b), share in _shares(layout, n_gpus).items()}
    # Over two bridged GPUs no third one is reached, so that forwarding would only let traffic of NICs through.
    parts.mesh(rate, gpus if layout in _EIGHT else (), nvlink_latency)
    return parts.build("mesh_host")


def _shares(layout: str, n_gpus: int) -> dict[tuple[int, int], float]:
    """Part of a GPU's links that joins each pair."""
    if layout in _EIGHT:
        if n_gpus != 8:
            raise InputError(f"mesh_host: layout={layout} joins 8 GPUs, got n_gpus={n_gpus}")
        pairs, most = _EIGHT[layout]
        return {pair: links / most for pair, links in pairs.items()}
    if layout == "pairs":
        if n_gpus % 2:
            raise InputError(f"mesh_host: layout=pairs needs an even number of GPUs, got n_gpus={n_gpus}")
        return {(a, a + 1): 1.0 for a in range(0, n_gpus, 2)}
    return dict.fromkeys(itertools.combinations(range(n_gpus), 2), 1 / max(1, n_gpus - 1))
