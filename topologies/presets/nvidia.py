"""Machines as NVIDIA sells them."""

from __future__ import annotations

from . import Preset, Rate

NCCL_NVLINK = "NCCL 2.30.7 src/graph/topo.h"
PCIE5 = Rate("pcie", "63GB/s", "48GB/s", "PCIe 5.0 x16, 128b/130b; effective: NCCL 2.30.7 topo.cc, 16 lanes x 24 Gb/s")
PCIE4 = Rate(
    "pcie", "31.5GB/s", "24GB/s", "PCIe 4.0 x16, 128b/130b; effective: NCCL 2.30.7 topo.cc, 16 lanes x 12 Gb/s"
)
PCIE3 = Rate(
    "pcie", "15.75GB/s", "12GB/s", "PCIe 3.0 x16, 128b/130b; effective: NCCL 2.30.7 topo.cc, 16 lanes x 6 Gb/s"
)
CX7 = Rate("nic", "400Gbps", "48.5GB/s", "ConnectX-7, NDR 400 Gb/s; effective: SimAI 1.7 calbusbw.h")
CX6 = Rate("nic", "200Gbps", "23.5GB/s", "ConnectX-6, HDR 200 Gb/s; effective: SimAI 1.7 calbusbw.h")
HOPPER = Rate("nvlink", "450GB/s", "370.8GB/s", f"18 links x 25 GB/s; effective 18 x 20.6: {NCCL_NVLINK}")
AMPERE = Rate("nvlink", "300GB/s", "240GB/s", f"12 links x 25 GB/s; effective 12 x 20: {NCCL_NVLINK}")
ROME = Rate("inter_cpu", None, "16GB/s", f"AMD Zen 2: {NCCL_NVLINK}")
SAPPHIRE_RAPIDS = Rate("inter_cpu", None, "22GB/s", f"Intel Sapphire Rapids: {NCCL_NVLINK}")
DDR5 = Rate("memory", "307.2GB/s", None, "eight channels of DDR5-4800 x 8 B, arithmetic")
DDR4 = Rate("memory", "204.8GB/s", None, "eight channels of DDR4-3200 x 8 B, arithmetic")
NVLINK_TIME = "NVLink latency of all machines: ASTRA-sim's validated HGX-H100, 936.25 ns between two GPUs"

PRESETS = (
    Preset(
        "dgx-a100", "8 A100 on NVSwitch, 8 HDR rails, two GPUs and two NICs per PCIe switch", "nvswitch_host",
        {"n_gpus": "8", "n_nics": "8", "n_pcie_switches": "4", "n_cpus": "2"},
        (AMPERE, PCIE4, CX6, ROME, DDR4),
        ("counts: NVIDIA DGX A100 and Azure NDv4 documentation; 12 links: SimAI 1.7", NVLINK_TIME),
    ),
    Preset(
        "dgx-h100", "8 H100 on NVSwitch with NVLink SHARP, 8 NDR rails, one PCIe switch per GPU and NIC",
        "nvswitch_host", {"n_gpus": "8", "n_nics": "8", "n_pcie_switches": "8", "n_cpus": "2", "nvls": "true"},
        (HOPPER, PCIE5, CX7, SAPPHIRE_RAPIDS, DDR5),
        ('counts: MLPerf inference 4.1, NVIDIA systems: "18x 4th Gen NVLink, 900GB/s" (both directions)', NVLINK_TIME),
    ),
    Preset(
        "h800", "8 H800 on NVSwitch: an H100 with 8 of its 18 NVLinks", "nvswitch_host",
        {"n_gpus": "8", "n_nics": "8", "n_pcie_switches": "8", "n_cpus": "2", "nvls": "true"},
        (
            Rate("nvlink", "200GB/s", "164.8GB/s", f"8 links x 25 GB/s: SimAI 1.7; effective 8 x 20.6: {NCCL_NVLINK}"),
            PCIE5, CX7, SAPPHIRE_RAPIDS, DDR5,
        ),
        ("counts: SimAI 1.7", NVLINK_TIME),
    ),
    Preset(
        "gb200-nvl72", "72 Blackwell GPUs on one NVSwitch fabric, a NIC for each", "nvswitch_host",
        {"n_gpus": "72", "n_nics": "72", "n_pcie_switches": "72", "n_cpus": "0", "nvls": "true"},
        (
            Rate("nvlink", "900GB/s", "721.8GB/s", f"18 links x 50 GB/s; effective 18 x 40.1: {NCCL_NVLINK}"),
            PCIE5, CX7,
        ),
        (
            "counts: Microsoft ND-GB200-v6: 18 trays of 4 GPUs, 400 Gb/s each",
            "the Grace CPUs and their memory are left out, since we have no source for their effective rates",
            NVLINK_TIME,
        ),
    ),
)  # fmt: skip
