"""The channels that commsim's own search finds on the machines of the topology files, against those that NCCL found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.nccl_ranks.machine_file import CPUS
from commsim.nccl.of_network import NcclOptions, setting_of
from commsim.prediction.inputs import load_network, load_placement

LINK = 'link_speed="32.0 GT/s PCIe" link_width="16"'


def machine_text(machine: dict[str, Any]) -> str:
    """Return a machine of :mod:`benchmarks.nccl_ranks.machine_file` as a topology file, without the real one's rest.

    Parameters
    ----------
    machine : dict
        `speed` of the NIC in Mbit/s; `near`, PIX or PHB; `cpu`, intel or amd.
    """
    vendor, family, model = CPUS[machine["cpu"]]
    gpu = f'<pci busid="0:6:0.0" class="0x030200" {LINK}><gpu dev="0" sm="90" rank="0" gdr="0"/></pci>'
    net = f'<net name="eth0" dev="0" speed="{machine["speed"]}" port="0" gdr="0"/>'
    devices = f'{gpu}<pci busid="0:7:0.0" class="0x020700" {LINK}><nic>{net}</nic></pci>'
    if machine["near"] == "PIX":
        devices = f'<pci busid="0:1:0.0" class="0x060400" {LINK}>{devices}</pci>'
    facts = f'numaid="0" arch="x86_64" vendor="{vendor}" familyid="{family}" modelid="{model}"'
    return f'<system version="1"><cpu {facts}>{devices}</cpu></system>'


def differing_channels(choice: dict[str, Any], folder: Path, version: tuple[int, int]) -> list[str]:
    """Return the patterns of which commsim's search finds other channels than NCCL.

    Parameters
    ----------
    choice : dict
        What one communicator found and chose.
    folder : Path
        Folder for the topology file.
    version : (int, int)
        Version of NCCL.
    """
    machine, ranks, differing = choice["machine"], choice["ranks"], []
    path = folder / "machine.xml"
    path.write_text(machine_text(machine))
    network = load_network(f"{path}@star:machines={ranks},bandwidth={machine['speed']}Mbps")
    setting = setting_of(network, load_placement("packed", network, ranks), ranks, NcclOptions(version=version))
    for name, (n, inside, between, near) in choice["patterns"].items():
        ours = setting.channels[name]
        found = ours.n, round(ours.intra / 1e9, 2), round(ours.inter / 1e9, 2), ours.path_inter
        if found != (n, inside, between, near):
            differing.append(f"{name} {machine}: {found}, not {(n, inside, between, near)}")
    return differing
