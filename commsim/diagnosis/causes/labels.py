"""The causes by label: how likely each is beforehand, and what shows it.

The likelihoods beforehand are coarse on purpose, three steps of two: common is what NVIDIA's troubleshooting page of
NCCL has a section on, and releases, which threads of NVIDIA/nccl name again and again (378, 409, 770, 1222); rare is
what needs parts or a fabric that few clusters have; usual is all else.

They were set by hand with 25 public cases in sight (``numa_or_affinity`` and ``version_regression`` are common by those
threads), so that what is reached on these cases is optimistic. What is known of the machines moves them
(:mod:`commsim.diagnosis.causes.beforehand`).

References
----------
NVIDIA, NCCL user guide, "Troubleshooting": GPU-to-GPU (ACS, virtual machines), GPU-to-NIC (GPUDirect RDMA), topology
detection, IP interfaces, InfiniBand, RoCE.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

COMMON, USUAL, RARE = 4.0, 2.0, 1.0
HEALTHY, NONE = "healthy_expectation_wrong", "none_of_those_tried"
# Part of all tables whose cause is none of those that are tried.
UNTRIED = 0.03
# Part of all tables, and part of those with a better reference beside them, that are as they should be. The first
# weighs false alarms against misses: with 0.5 14 % of the healthy public tables have another cause first, with 0.8
# 10.3 % and with 0.85 8.7 % (10 % are allowed); of 600 drawn faults 504, 497 and 495 are found.
HEALTHY_ALONE, HEALTHY_BESIDE_REFERENCE = 0.85, 0.1


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause.

    Parameters
    ----------
    prior : float
        How likely it is beforehand, relative to the other causes.
    check : str
        What shows whether it is so.
    """

    prior: float
    check: str


CAUSES: Mapping[str, Cause] = {
    "half_or_fewer_nics_used": Cause(USUAL, "NCCL_DEBUG=INFO lists the NICs after NET/IB : Using"),
    "nic_rate_degraded": Cause(USUAL, "ibstat or ethtool: rate and width of every port"),
    "gpudirect_rdma_off": Cause(COMMON, "NCCL_DEBUG=INFO: channels via NET/... end in /GDRDMA; nvidia-peermem"),
    "pcie_p2p_or_acs": Cause(COMMON, "lspci -vvv: ACSCtl SrcValid; IOMMU off; nvidia-smi topo -p2p r"),
    "pcie_gen_or_width": Cause(USUAL, "lspci -vv: LnkSta speed and width of GPUs, NICs and switches"),
    "numa_or_affinity": Cause(COMMON, "nvidia-smi topo -m: SYS between a GPU and its NIC; NPS; taskset"),
    "wrong_algorithm_or_protocol_forced": Cause(USUAL, "env | grep NCCL_; NCCL_DEBUG_SUBSYS=TUNING prints the choice"),
    "nvls_off_or_unavailable": Cause(USUAL, "NCCL_DEBUG=INFO: NVLS multicast; NCCL_NVLS_ENABLE; fabric manager"),
    "sharp_expected_but_off": Cause(RARE, "NCCL_DEBUG=INFO: CollNet; NCCL_COLLNET_ENABLE=1; sharp_am"),
    "ib_disabled_tcp_sockets": Cause(COMMON, "NCCL_DEBUG=INFO: Using network Socket; NCCL_IB_DISABLE; the plugin"),
    "wrong_interface_or_ethernet": Cause(RARE, "NCCL_DEBUG=INFO: port after NET/; NCCL_SOCKET_IFNAME; NCCL_IB_HCA"),
    "oversubscribed_or_hash_collisions": Cause(USUAL, "ib_write_bw on all pairs at once; counters of the uplinks"),
    "pfc_ecn_or_congestion": Cause(RARE, "counters of pauses, ECN marks and drops; the same run at another hour"),
    "rail_mismatch_or_cabling": Cause(RARE, "ibnetdiscover or LLDP: NIC k of every host on the same switch"),
    "straggler_host": Cause(USUAL, "the same run on other pairs of hosts; clocks and ECC of the GPUs"),
    "too_few_channels_or_qps": Cause(USUAL, "NCCL_DEBUG=INFO: coll channels; NCCL_MAX_NCHANNELS; QPs a connection"),
    "version_regression": Cause(COMMON, "the same run with another release of NCCL, all else left"),
    "virtualisation_or_topology_file_missing": Cause(RARE, "NCCL_TOPO_FILE; NCCL_TOPO_DUMP_FILE beside bare metal"),
    HEALTHY: Cause(0.0, "expected rate: commsim expect"),
    NONE: Cause(0.0, "the same run on each machine, on pairs of them, and with NCCL_DEBUG=INFO"),
}  # fmt: skip
