"""Rates that NCCL and RCCL plan with, of PCIe, sockets and ports, and transports by the names of NICs.

References
----------
NCCL 2.30, ``src/graph/topo.h`` and ``topo.cc``: effective rates.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from commsim.formats.markup import Element

_LANE_MBPS = {2.5: 1500, 5: 3000, 8: 6000, 16: 12000, 32: 24000, 64: 48000}
_UNKNOWN_LANE_MBPS = 6000
_GIGATRANSFERS = re.compile(r"\s*(\d+(?:\.\d+)?)\s*GT/s.*", re.ASCII)
_UNKNOWN_NET_MBPS = 10000
# Transports by how the names of RDMA devices begin: of AWS, HPE, Broadcom and AMD.
TRANSPORT_OF_DEVICE = {"rdmap": "efa", "efa": "efa", "cxi": "slingshot", "bnxt_re": "roce", "ionic": "roce"}
# Of a PCIe link into an Intel CPU that is left for GPU to GPU: the root complex cuts it into small packets.
INTEL_GPU_SHARE = 5 / 6


def pcie_rate(element: Element) -> float:
    """Bandwidth of a ``<pci>`` element's link, bytes/s; generation 3 and 16 lanes where the file does not say."""
    match = _GIGATRANSFERS.fullmatch(element.text("link_speed", ""))
    lane = _LANE_MBPS.get(float(match[1]), _UNKNOWN_LANE_MBPS) if match else _UNKNOWN_LANE_MBPS
    width = element.whole("link_width", 0) if element.text("link_width", "").strip() else 0
    return (width or 16) * lane * 1e6 / 8


def net_rate(element: Element) -> float:
    """Bandwidth of a ``<net>`` element, bytes/s; 10 Gb/s where its speed is not known."""
    speed = element.whole("speed", _UNKNOWN_NET_MBPS, minimum=-1)
    return (speed if speed > 0 else _UNKNOWN_NET_MBPS) * 1e6 / 8


def socket_rate(cpu: Element) -> float:
    """Bandwidth between two sockets, bytes/s, by the attributes of a ``<cpu>`` element."""
    arch = cpu.text("arch", "").strip()
    family, model = cpu.whole("familyid", 0, minimum=-1), cpu.whole("modelid", 0, minimum=-1)
    if arch == "ppc64":
        return 32e9
    if arch == "arm64":
        return 6e9
    if (vendor := vendor_of(cpu)) == "intel":
        return _intel(family, model)
    if vendor == "amd":
        return {26: 32e9, 0xBF: 32e9, 25: 24e9, 0xAF: 24e9}.get(family, 16e9)
    if cpu.text("vendor", "").strip() in ("CentaurHauls", "Shanghai"):
        return 9e9 if (family, model) == (7, 0x5B) else 6e9
    return 10e9


def vendor_of(cpu: Element) -> str:
    """Return who makes a ``<cpu>``: intel, amd, arm or other."""
    if cpu.text("arch", "").strip() == "arm64":
        return "arm"
    vendor = cpu.text("vendor", "").strip()
    return {"GenuineIntel": "intel", "AuthenticAMD": "amd", "AMD": "amd"}.get(vendor, "other")


def _intel(family: int, model: int) -> float:
    if family == 6 and (model >= 0xCF or model in (0xAD, 0xAE, 0xAF)):
        return 40e9  # Emerald Rapids; Granite Rapids and Sierra Forest have lower numbers
    if family == 6 and model >= 0x8F:
        return 22e9  # Sapphire Rapids
    return 10e9 if family == 6 and model >= 0x55 else 6e9  # Skylake, Broadwell


def transport_of_nics(names: Iterable[str]) -> str:
    """Return the transport that the names of NICs' devices say; empty where they say none, or several.

    NVIDIA's devices (mlx5) are InfiniBand or RoCE, which a name does not tell.
    """
    found = {net for name in names for prefix, net in TRANSPORT_OF_DEVICE.items() if name.startswith(prefix)}
    return found.pop() if len(found) == 1 else ""
