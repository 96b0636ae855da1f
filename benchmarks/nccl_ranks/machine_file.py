"""A machine of one GPU and one NIC that does not exist, as a topology file of NCCL (``NCCL_TOPO_FILE``).

It begins with what NCCL has found on the real machine, so that the GPU is known; rate and place of the NIC and the
vendor of the CPU are replaced.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

LINK = {"link_speed": "32.0 GT/s PCIe", "link_width": "16"}
CPUS = {"intel": ("GenuineIntel", "6", "143"), "amd": ("AuthenticAMD", "175", "17")}


def machine_file(folder: Path, rank: int, machine: dict[str, Any]) -> str:
    """Write the file of a rank and return its path.

    Parameters
    ----------
    folder : Path
        Folder with ``machine.RANK.xml``, which NCCL wrote (``NCCL_TOPO_DUMP_FILE``).
    rank : int
        Rank.
    machine : dict
        `speed` of the NIC in Mbit/s; `near`, PIX or PHB; `cpu`, intel or amd.
    """
    tree = ElementTree.parse(folder / f"machine.{rank}.xml")
    cpu = tree.getroot().find("cpu")
    if cpu is None:
        raise ValueError(f"machine.{rank}.xml has no CPU")
    vendor, family, model = CPUS[machine["cpu"]]
    cpu.attrib |= {"arch": "x86_64", "vendor": vendor, "familyid": family, "modelid": model}
    gpu = next(pci for pci in cpu.iter("pci") if pci.find("gpu") is not None)
    nic = next(cpu.iter("nic"))
    net = nic.find("net")
    if net is None:
        raise ValueError(f"machine.{rank}.xml has no NIC")
    net.attrib |= {"speed": str(machine["speed"])}
    gpu.attrib |= LINK
    for parent in list(cpu.iter()):
        for child in list(parent):
            if child is gpu or child is nic:
                parent.remove(child)
    for empty in [child for child in cpu if child.tag == "pci" and not len(child)]:
        cpu.remove(empty)
    card = ElementTree.Element("pci", {"busid": "0000:00:07.0", "class": "0x020700", **LINK})
    card.append(nic)
    if machine["near"] == "PIX":
        switch = ElementTree.SubElement(cpu, "pci", {"busid": "0000:00:01.0", "class": "0x060400", **LINK})
        switch.extend([gpu, card])
    else:
        cpu.extend([gpu, card])
    name = f"machine.{rank}." + "-".join(str(machine[key]) for key in sorted(machine)) + ".xml"
    tree.write(folder / name)
    return str(folder / name)
