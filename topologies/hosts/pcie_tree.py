"""What all GPU servers share: CPU sockets with their memory, and PCIe switches with GPUs and NICs below them."""

from __future__ import annotations

from commsim.core.errors import InputError
from commsim.core.machines.parts import Parts
from commsim.core.network import CPU, GPU, MEMORY, NIC

# Seconds between a socket and its own memory: the order of one access.
MEMORY_LATENCY = 100e-9


def add_pcie_tree(
    name: str,
    parts: Parts,
    *,
    n_gpus: int,
    n_nics: int,
    n_pcie_switches: int,
    n_cpus: int,
    pcie: float,
    nic: float,
    inter_cpu: float,
    memory: float,
    pxn: bool = False,
) -> list[int]:
    """Add GPUs ``gpu0 …``, NICs ``nic0 …``, switches ``pcie0 …``, sockets ``cpu0 …`` and memories ``memory0 …``.

    GPUs and NICs are dealt to the switches in equal runs, and switches to the sockets; sockets are joined to each
    other. Without switches, GPUs and NICs hang on the sockets. There may be fewer NICs than switches.

    Returns
    -------
    list of int
        The GPUs.

    Raises
    ------
    InputError
        If a count does not divide evenly, or there are devices and nothing to plug them into.
    """
    n_slots = n_pcie_switches or n_cpus
    if n_gpus + n_nics and not n_slots:
        raise InputError(f"{name} has GPUs or NICs, so it needs n_pcie_switches or n_cpus of at least 1, got 0 and 0")
    for what, count in (("n_gpus", n_gpus), ("n_nics", n_nics)):
        if count and count % n_slots and (what == "n_gpus" or n_slots % count):
            kind = "n_pcie_switches" if n_pcie_switches else "n_cpus"
            wanted = f"a multiple {'or a divisor ' if what == 'n_nics' else ''}of {kind}"
            raise InputError(f"{name} needs {what} to be {wanted}, got {what}={count}, {kind}={n_slots}")
    if n_pcie_switches and n_cpus and n_pcie_switches % n_cpus:
        raise InputError(
            f"{name} needs n_pcie_switches to be a multiple of n_cpus, got n_pcie_switches={n_pcie_switches}, "
            f"n_cpus={n_cpus}"
        )
    gpus = [parts.add(f"gpu{i}", GPU, forwards=pxn) for i in range(n_gpus)]
    nics = [parts.add(f"nic{i}", NIC) for i in range(n_nics)]
    cpus = [parts.add(f"cpu{i}", CPU) for i in range(n_cpus)]
    for i, cpu in enumerate(cpus):
        parts.cable(cpu, parts.add(f"memory{i}", MEMORY), memory, MEMORY_LATENCY)
    parts.join_cpus(inter_cpu)
    for k in range(n_slots):
        devices = [(gpus[i], pcie) for i in range(k * n_gpus // n_slots, (k + 1) * n_gpus // n_slots)]
        devices += [(nics[i], nic) for i in range(k * n_nics // n_slots, (k + 1) * n_nics // n_slots)]
        if not n_pcie_switches:
            for device in devices:
                parts.leaf(cpus[k], device)
            continue
        hub = parts.pcie_switch(f"pcie{k}", devices)
        if cpus:
            parts.crossing(cpus[k * n_cpus // n_slots], hub, pcie)
    return gpus
