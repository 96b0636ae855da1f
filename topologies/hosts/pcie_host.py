"""The PCIe host: GPUs that reach each other by PCIe switches and CPU sockets only."""

from __future__ import annotations

from commsim.core.machines.parts import Parts
from commsim.core.network import Network
from commsim.core.units import Bandwidth
from topologies import require_at_least

from . import host_type
from .pcie_tree import add_pcie_tree


@host_type
def pcie_host(
    n_gpus: int = 8,
    n_nics: int = 2,
    n_pcie_switches: int = 2,
    n_cpus: int = 2,
    pcie: Bandwidth = 24e9,
    nic: Bandwidth = 12.5e9,
    inter_cpu: Bandwidth = 10e9,
    memory: Bandwidth = 140.8e9,
) -> Network:
    """PCIe host: GPUs under PCIe switches under CPU sockets, which are joined to each other.

    Parameters
    ----------
    n_gpus, n_nics, n_pcie_switches, n_cpus : int
        Number of GPUs, at least 1; each of the others may be 0, as long as GPUs and NICs hang on something. GPUs are a
        multiple of the PCIe switches, NICs a multiple or a divisor, and switches a multiple of the sockets.
    pcie : float, bytes/s
        Bandwidth of the PCIe link of a GPU, and of the uplink of a PCIe switch; by default generation 4 x16 as NCCL
        counts it.
    nic : float, bytes/s
        Bandwidth of a NIC.
    inter_cpu : float, bytes/s
        Bandwidth between two sockets; by default what NCCL takes for Skylake.
    memory : float, bytes/s
        Bandwidth of a socket's memory, one way; by default six channels of DDR4-2933.

    Returns
    -------
    Network
        ``gpu0 …``, ``nic0 …``, ``cpu0 …``, ``memory0 …``, ``pcie0 …`` of one machine.

    Raises
    ------
    InputError
        Without a GPU, or if a count does not divide evenly.

    References
    ----------
    Li et al., "Evaluating modern GPU interconnect", IEEE TPDS 2020, section 2: the PCIe tree of a dual-socket server.
    """
    require_at_least("pcie_host", 1, n_gpus=n_gpus)
    parts = Parts()
    add_pcie_tree(
        "pcie_host", parts, n_gpus=n_gpus, n_nics=n_nics, n_pcie_switches=n_pcie_switches, n_cpus=n_cpus,
        pcie=pcie, nic=nic, inter_cpu=inter_cpu, memory=memory,
    )  # fmt: skip
    return parts.build("pcie_host")
