"""Machines of public cases as topologies, by the words of the index: GPU, NICs, their rate, the fabric."""

from __future__ import annotations

import re
from collections.abc import Mapping

# Between Grace, whose PCIe links the NICs are on, and its GPU.
C2C = "450GB/s"
# Of a GPU's words: generation, host type, rate of its NVLinks and of its PCIe, CPU.
NVSWITCH, PCIE, MESH = "nvswitch_host", "pcie_host", "mesh_host"
GPUS: tuple[tuple[str, str, str, str, str, str], ...] = (
    (r"GH200", "hopper", MESH, "370.8GB/s", C2C, "arm"),
    (r"GB[23]00", "blackwell", NVSWITCH, "721.8GB/s", C2C, "arm"),
    (r"GB10", "blackwell", PCIE, "", "24GB/s", "arm"),
    (r"B[23]00", "blackwell", NVSWITCH, "721.8GB/s", "96GB/s", "intel"),
    (r"H[12]00", "hopper", NVSWITCH, "370.8GB/s", "48GB/s", "intel"),
    (r"A100 PCIe", "ampere", PCIE, "", "24GB/s", "amd"),
    (r"A100", "ampere", NVSWITCH, "240GB/s", "24GB/s", "amd"),
    (r"V100 PCIe", "volta", PCIE, "", "12GB/s", "intel"),
    (r"V100", "volta", NVSWITCH, "120GB/s", "12GB/s", "intel"),
    (r"T4", "turing", PCIE, "", "12GB/s", "intel"),
    (r"", "volta", NVSWITCH, "120GB/s", "12GB/s", "intel"),
)
NETS = (("efa", "efa"), ("ena", "efa"), ("slingshot", "slingshot"), ("roce", "roce"), ("", "infiniband"))
# Rate of a NIC in Gb/s where the index has none: what the generation's machines have.
USUAL = {"volta": 100, "turing": 50, "ampere": 200, "hopper": 400, "blackwell": 400}


def topology_of(line: Mapping[str, str]) -> str:
    """Return the topology that a user would give for a line of the index.

    Parameters
    ----------
    line : mapping of str to str
        ``nodes``, ``gpus_per_node``, ``gpu``, ``nics``, ``nic_gbps``, ``fabric``.
    """
    words, fabric = line["gpu"], line["fabric"].lower()
    _, gpu, kind, nvlink, pcie, cpu = next(row for row in GPUS if re.search(row[0], words))
    nodes, per_node = int(line["nodes"] or 1), int(line["gpus_per_node"] or 8)
    if domains := re.search(r"NVL(\d+)", words):
        nodes, per_node = nodes * per_node // int(domains[1]), int(domains[1])
    n_nics = int(line["nics"] or per_node) if nodes > 1 else 0
    if not line["nics"] and not line["gpu"]:
        n_nics = 1
    rate = float(line["nic_gbps"] or USUAL[gpu])
    if "efa" in fabric and n_nics > per_node > 1:  # the plugin joins the NICs of a GPU
        rate, n_nics = rate * n_nics / per_node, per_node
    n_switches = _switches(per_node, n_nics) if kind != PCIE or per_node > 1 else 0
    parts = {
        "n_gpus": per_node, "n_nics": n_nics, "n_pcie_switches": n_switches, "n_cpus": 2 if per_node > 1 else 1,
        "pcie": pcie, "gpu": gpu, "cpu": cpu,
    }  # fmt: skip
    if kind == MESH:
        parts |= {"n_pcie_switches": 0, "n_cpus": per_node}
    if nvlink:
        parts["nvlink"] = nvlink
    is_off = "nvls off" in line.get("note", "").lower()  # of both runs: a variable that their user set
    if kind == NVSWITCH and gpu in ("hopper", "blackwell") and per_node > 1 and not is_off:
        parts["nvls"] = "true"
    if nodes > 1:
        parts |= {"nic": f"{rate:g}Gbps", "net": next(net for word, net in NETS if word in fabric)}
        if gpu == "turing":
            parts["gpudirect"] = "no"
    text = f"{kind}:{','.join(f'{key}={value}' for key, value in parts.items())}"
    return f"{text}@star:machines={nodes}" if nodes > 1 else text


def _switches(n_gpus: int, n_nics: int) -> int:
    """Return PCIe switches of a machine: one for each GPU, or two GPUs where there are half as many NICs."""
    if n_gpus == 1:
        return 1
    return max(2, min(n_gpus, n_nics)) if n_nics else max(2, n_gpus // 2)
