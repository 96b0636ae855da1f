"""Machines as NVIDIA sells them and as clouds rent them out, and whole networks that have been described in public."""

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

NVIDIA = (
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


CLOUDS = (
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
        (HOPPER, PCIE5, CX7, SAPPHIRE_RAPIDS, DDR5),
        ("counts: Azure ND H100 v5: 8 x (GPU and NDR 400 Gb/s), PCIe 5, 3.2 Tb/s", NVLINK_TIME),
    ),
)  # fmt: skip


FABRICS = (
    Preset(
        "tpu-v5p", "Google TPU v5p, the largest slice that one job gets: 6144 chips; dims=8x8x8 for a smaller one",
        "torus", {"dims": "16x16x24"},
        (Rate("bandwidth", "100GB/s", None, "1200 GB/s per chip, 6 links, both directions: docs.cloud.google.com"),),
        ("docs.cloud.google.com, TPU v5p: 3-D torus of cubes of 4x4x4; a slice that is twisted is not modelled",),
    ),
    Preset(
        "hpn7-segment", "Alibaba HPN 7.0, one segment: 1024 GPUs on 8 rails, two ports of 200 Gb/s per NIC, two planes",
        "rail_optimized",
        {"n_hosts": "128", "preset": "dgx-h100", "hosts_per_group": "128", "n_spines": "60", "planes": "2",
         "oversubscription": "1.0666666666666667"},
        (Rate("bandwidth", "400Gbps", None, "2 x 200 Gb/s per NIC: Qian et al., SIGCOMM 2024"),),
        (
            "Qian et al., SIGCOMM 2024: 128 hosts, 16 ToR switches of 128 x 200 Gb/s down and 60 x 400 Gb/s up",
            "60 switches per plane above, one cable each, and the inside of the hosts are assumed",
        ),
    ),
    Preset(
        "meta-24k", "Meta's 24,576 H100 on RoCE: racks of 16 GPUs, pods of 192 racks, 1:7 between pods", "three_tier",
        {"n_pods": "8", "racks_per_pod": "192", "hosts_per_rack": "16", "switches_per_pod": "16", "n_cores": "16",
         "pod_oversubscription": "7.0"},
        (Rate("bandwidth", "400Gbps", None, "400 Gb/s per GPU: Gangidi et al., SIGCOMM 2024"),),
        (
            "Gangidi et al., SIGCOMM 2024: pods of 3072 GPUs, 192 racks of two hosts, 1:7 above the pod",
            "16 switches per pod and above are assumed, so that each link up from a rack is one of 400 Gb/s",
        ),
        host="dgx-h100",
    ),
)  # fmt: skip

PRESETS = (*NVIDIA, *CLOUDS, *FABRICS)
