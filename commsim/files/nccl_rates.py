"""How fast NCCL takes links to be: PCIe by generation and width, NVLink by the GPU, sockets by the CPU, ports by speed.

References
----------
NCCL 2.30, ``src/graph/topo.h`` and ``topo.cc``: the numbers are those that it plans with, so they are effective rates.
"""

from __future__ import annotations

import re

from .xml_tree import Element

_LANE_MBPS = {2.5: 1500, 5: 3000, 8: 6000, 16: 12000, 32: 24000, 64: 48000}
_UNKNOWN_LANE_MBPS = 6000
_GIGATRANSFERS = re.compile(r"\s*(\d+(?:\.\d+)?)\s*GT/s.*", re.ASCII)
_NVLINK_GBS = ((100, 40.1), (90, 20.6), (87, 20.0), (86, 12.0), (70, 20.0), (60, 18.0))
_UNKNOWN_NET_MBPS = 10000

INTEL_GPU_SHARE = 5 / 6
"""Of a PCIe link into an Intel CPU that is left for GPU to GPU: the root complex cuts it into small packets."""


def pcie_rate(element: Element) -> float:
    """Bandwidth of a ``<pci>`` element's link, bytes/s; generation 3 and 16 lanes where the file does not say."""
    match = _GIGATRANSFERS.fullmatch(element.text("link_speed", ""))
    lane = _LANE_MBPS.get(float(match[1]), _UNKNOWN_LANE_MBPS) if match else _UNKNOWN_LANE_MBPS
    width = element.whole("link_width", 0) if element.text("link_width", "").strip() else 0
    return (width or 16) * lane * 1e6 / 8


def nvlink_rate(compute_capability: int) -> float:
    """Bandwidth of one NVLink of a GPU, bytes/s, by its compute capability: 90 for 9.0."""
    return 1e9 * next((rate for least, rate in _NVLINK_GBS if compute_capability >= least), 20.0)


def net_rate(element: Element) -> float:
    """Bandwidth of a ``<net>`` element, bytes/s; 10 Gb/s where its speed is not known."""
    speed = element.whole("speed", _UNKNOWN_NET_MBPS, minimum=-1)
    return (speed if speed > 0 else _UNKNOWN_NET_MBPS) * 1e6 / 8


def socket_rate(cpu: Element) -> float:
    """Bandwidth between two sockets, bytes/s, by what a ``<cpu>`` element says of the CPU."""
    arch, vendor = cpu.text("arch", "").strip(), cpu.text("vendor", "").strip()
    family, model = cpu.whole("familyid", 0, minimum=-1), cpu.whole("modelid", 0, minimum=-1)
    if arch == "ppc64":
        return 32e9
    if arch == "arm64":
        return 6e9
    if vendor == "GenuineIntel":
        return _intel(family, model)
    if vendor == "AuthenticAMD":
        return {26: 32e9, 0xBF: 32e9, 25: 24e9, 0xAF: 24e9}.get(family, 16e9)
    if vendor in ("CentaurHauls", "Shanghai"):
        return 9e9 if (family, model) == (7, 0x5B) else 6e9
    return 10e9


def is_intel(cpu: Element) -> bool:
    """Whether a ``<cpu>`` element is an Intel CPU."""
    return cpu.text("vendor", "").strip() == "GenuineIntel"


def _intel(family: int, model: int) -> float:
    if family == 6 and (model >= 0xCF or model in (0xAD, 0xAE, 0xAF)):
        return 40e9  # Emerald Rapids; Granite Rapids and Sierra Forest have lower numbers
    if family == 6 and model >= 0x8F:
        return 22e9  # Sapphire Rapids
    return 10e9 if family == 6 and model >= 0x55 else 6e9  # Skylake, Broadwell
