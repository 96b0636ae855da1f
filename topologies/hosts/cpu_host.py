"""The server without GPUs: sockets with memory and NICs; participants sit on the memories."""

from __future__ import annotations

from commsim.core.machines.parts import Parts
from commsim.core.network import Network
from commsim.core.units import Bandwidth
from topologies import require_at_least

from . import INTER_CPU, MEMORY, host_type
from .pcie_tree import add_pcie_tree


@host_type
def cpu_host(
    n_cpus: int = 2,
    n_nics: int = 2,
    nic: Bandwidth = 12.5e9,
    inter_cpu: Bandwidth = INTER_CPU,
    memory: Bandwidth = MEMORY,
) -> Network:
    """CPU host: one participant on the memory of each socket, as MPI ranks bound to sockets or parameter servers are.

    Parameters
    ----------
    n_cpus, n_nics : int
        Number of sockets, at least 1, and of NICs, which are dealt to the sockets in equal runs and may be 0.
    nic : float, bytes/s
        Bandwidth of a NIC.
    inter_cpu : float, bytes/s
        Bandwidth between two sockets; by default what NCCL takes for Sapphire Rapids.
    memory : float, bytes/s
        Bandwidth of a socket's memory, one way; by default eight channels of DDR5-4800.

    Returns
    -------
    Network
        ``memory0 …``, ``nic0 …``, ``cpu0 …`` of one machine.

    Raises
    ------
    InputError
        Without a socket, or if the NICs do not divide evenly.

    References
    ----------
    Jiang et al., "A unified architecture for accelerating distributed DNN training in heterogeneous GPU/CPU clusters"
    (BytePS), OSDI 2020, section 2: spare CPU servers as parameter servers.
    """
    require_at_least("cpu_host", 1, n_cpus=n_cpus)
    parts = Parts()
    add_pcie_tree(
        "cpu_host", parts, n_gpus=0, n_nics=n_nics, n_pcie_switches=0, n_cpus=n_cpus,
        pcie=nic, nic=nic, inter_cpu=inter_cpu, memory=memory,
    )  # fmt: skip
    return parts.build("cpu_host")
