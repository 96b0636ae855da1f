"""Whole networks that have been described in public."""

from __future__ import annotations

from . import Preset, Rate

PRESETS = (
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
