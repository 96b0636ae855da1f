"""Machines as clouds rent them out."""

from __future__ import annotations

from . import Preset, Rate
from .nvidia import AMPERE, CX6, CX7, DDR4, DDR5, HOPPER, NCCL_NVLINK, NVLINK_TIME, PCIE3, PCIE4, PCIE5, ROME
from .nvidia import SAPPHIRE_RAPIDS as SPR

PRESETS = (
    Preset(
        "p4d", "AWS p4d.24xlarge: 8 A100, 4 EFA of 100 Gb/s, two GPUs and one NIC per PCIe switch", "nvswitch_host",
        {"n_gpus": "8", "n_nics": "4", "n_pcie_switches": "4", "n_cpus": "2"},
        (
            AMPERE, PCIE3,
            Rate("nic", "100Gbps", None, "EFA, 4 x 100 Gb/s for 8 GPUs: aws-ofi-nccl"),
            Rate("inter_cpu", None, "10GB/s", f"Intel Skylake family (model 85): {NCCL_NVLINK}"),
            Rate("memory", "140.8GB/s", None, "six channels of DDR4-2933 x 8 B, arithmetic"),
        ),
        ("PCIe tree, generation 3, and CPU model: aws-ofi-nccl topology/p4d-24xl-topo.xml", NVLINK_TIME),
    ),
    Preset(
        "p5", "AWS p5.48xlarge: 8 H100, 32 EFA of 100 Gb/s, four of them a rail", "nvswitch_host",
        {"n_gpus": "8", "n_nics": "8", "n_pcie_switches": "8", "n_cpus": "2", "nvls": "true"},
        (
            HOPPER, PCIE5,
            Rate("nic", "400Gbps", None, "EFA, 32 x 100 Gb/s: aws-ofi-nccl; the four of a GPU are drawn as one NIC"),
            Rate("inter_cpu", None, "24GB/s", f"AMD Zen 3: {NCCL_NVLINK}"),
            DDR4,
        ),
        ("counts: aws-ofi-nccl; a PCIe switch per GPU is assumed", NVLINK_TIME),
    ),
    Preset(
        "ndv4", "Azure ND A100 v4: 8 A100, 8 HDR rails, two GPUs and two NICs per PCIe switch and NUMA node",
        "nvswitch_host", {"n_gpus": "8", "n_nics": "8", "n_pcie_switches": "4", "n_cpus": "4"},
        (
            AMPERE, PCIE4, CX6, ROME,
            Rate("memory", "102.4GB/s", None, "half of a socket's eight channels of DDR4-3200, arithmetic"),
        ),
        ("PCIe tree, four NUMA nodes, CPU model: azhpc-images topology/ndv4-topo.xml", NVLINK_TIME),
    ),
    Preset(
        "ndv5", "Azure ND H100 v5: 8 H100, 8 NDR rails, one NIC for each GPU", "nvswitch_host",
        {"n_gpus": "8", "n_nics": "8", "n_pcie_switches": "8", "n_cpus": "2", "nvls": "true"},
        (HOPPER, PCIE5, CX7, SPR, DDR5),
        ("counts: Azure ND H100 v5: 8 x (GPU and NDR 400 Gb/s), PCIe 5, 3.2 Tb/s", NVLINK_TIME),
    ),
)  # fmt: skip
