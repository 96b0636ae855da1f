"""The NVSwitch host: GPUs joined by NVLink through a switch, and a PCIe tree with a NIC near each GPU."""

from __future__ import annotations

from commsim.core.machines.parts import NVLINK_LATENCY, Parts
from commsim.core.network import SWITCH, Network
from commsim.core.units import Bandwidth, Seconds
from topologies import require_at_least

from . import INTER_CPU, MEMORY, NVLINK, PCIE, host_type
from .pcie_tree import add_pcie_tree


@host_type(up_to_n_gpus=("n_nics", "n_pcie_switches", "n_cpus"))
def nvswitch_host(
    n_gpus: int = 8,
    n_nics: int = 8,
    n_pcie_switches: int = 8,
    n_cpus: int = 2,
    nvlink: Bandwidth = NVLINK,
    pcie: Bandwidth = PCIE,
    nic: Bandwidth = 50e9,
    inter_cpu: Bandwidth = INTER_CPU,
    memory: Bandwidth = MEMORY,
    nvls: bool = False,
    pxn: bool = False,
    nvlink_latency: Seconds = NVLINK_LATENCY,
) -> Network:
    """NVSwitch host: every GPU reaches every other one at the full rate of its NVLinks.

    Parameters
    ----------
    n_gpus, n_nics, n_pcie_switches, n_cpus : int
        Number of GPUs, at least 1; each of the others may be 0, as long as GPUs and NICs hang on something. GPUs are a
        multiple of the PCIe switches, NICs a multiple or a divisor, and switches a multiple of the sockets. By default,
        each of fewer than 8 GPUs has a NIC and a PCIe switch of its own, and a single GPU one socket.
    nvlink : float, bytes/s
        Bandwidth of all NVLinks of one GPU together, one way. The switch chips are drawn as one switch, since every GPU
        spreads all its traffic over all of them.
    pcie : float, bytes/s
        Bandwidth of the PCIe link of a GPU, and of the uplink of a PCIe switch.
    nic : float, bytes/s
        Bandwidth of a NIC.
    inter_cpu : float, bytes/s
        Bandwidth between two sockets.
    memory : float, bytes/s
        Bandwidth of a socket's memory, one way.
    nvls : bool
        Whether the NVSwitch can reduce, so that a helper may sit on it.
    pxn : bool
        Whether a GPU sends over NVLink and the NIC of another one where that is the receiver's rail, as NCCL does by
        default; presets have it where NCCL's settings do.
    nvlink_latency : float, s
        Latency of each of the two links between two GPUs.

    Returns
    -------
    Network
        ``gpu0 …``, ``nic0 …``, ``cpu0 …``, ``memory0 …``, ``nvswitch0``, ``pcie0 …`` of one machine.

    Raises
    ------
    InputError
        Without a GPU, or if a count does not divide evenly.

    References
    ----------
    NVIDIA, "DGX H100 system architecture", 2022: 18 links per GPU into 4 NVSwitch chips, one NIC per GPU.
    """
    require_at_least("nvswitch_host", 1, n_gpus=n_gpus)
    parts = Parts()
    gpus = add_pcie_tree(
        "nvswitch_host", parts, n_gpus=n_gpus, n_nics=n_nics, n_pcie_switches=n_pcie_switches, n_cpus=n_cpus,
        pcie=pcie, nic=nic, inter_cpu=inter_cpu, memory=memory, pxn=pxn,
    )  # fmt: skip
    switch = parts.add("nvswitch0", SWITCH, aggregates=nvls)
    for gpu in gpus:
        parts.nvlink(gpu, switch, nvlink, nvlink_latency)
    return parts.build("nvswitch_host")
