"""Read htsim's trees: two or three tiers, each described by its radix, the rate of its cables down, and latencies.

References
----------
htsim, ``sim/datacenter/fat_tree_topology.cpp`` and ``topologies/``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.files.whole_files import read_text
from commsim.core.network import HOST, SWITCH, Network, both_ways
from commsim.core.remark import Remark

MAX_BYTES, MAX_NODES = 2**20, 2**22
_NAMES = ("tor", "agg", "core")
_QUEUES = Remark("network-file", "queues of switches are left out: --buffer gives one to all", needed=True)
_NUMBER = re.compile(r"\d{1,12}(?:\.\d{1,6})?", re.ASCII)
_TOP = {"nodes": 0, "tiers": 3, "podsize": 0}
_OF_TIER = {
    "downlink_speed_gbps": 0, "radix_down": 0, "radix_up": 0, "downlink_latency_ns": 0, "switch_latency_ns": 0,
    "bundle": 1, "oversubscribed": 1, "queue_up": 0, "queue_down": 0,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Tree:
    """Numbers of a file: of the whole, and of each tier from below."""

    top: dict[str, float]
    tiers: list[dict[str, float]]

    def whole(self, tier: int, key: str) -> int:
        return int(self.tiers[tier][key])


def is_htsim(head: str) -> bool:
    """Whether the first lines of a file are of such a topology."""
    return bool(re.search(r"^[ \t]*Nodes\s+\d+\s*$", head, re.MULTILINE | re.IGNORECASE)) and bool(
        re.search(r"^[ \t]*(?:Tiers|Podsize)\s+\d+\s*$", head, re.MULTILINE | re.IGNORECASE)
    )


def read_htsim(path: str | Path) -> Network:
    """Read a network: hosts ``h0 …``, then switches ``tor0 …``, ``agg0 …`` and ``core0 …``.

    A switch's latency is a part of each link that leads to it.

    Raises
    ------
    InputError
        Naming the line that is wrong, or the numbers that contradict each other.
    """
    tree = _read(path)
    n_hosts, n_tiers = int(tree.top["nodes"]), len(tree.tiers)
    n_pods = n_hosts // int(tree.top["podsize"] or n_hosts) if n_tiers == 3 else 1
    counts = _counts(path, tree, n_hosts, n_pods)
    ends = _cables(tree, counts, n_pods)
    starts = np.cumsum([0, *counts])
    names = [f"h{i}" for i in range(n_hosts)]
    names += [f"{_NAMES[tier]}{i}" for tier in range(n_tiers) for i in range(counts[tier + 1])]
    below, above, rates, latency, there = [], [], [], [], []
    for tier, (low, high) in enumerate(ends):
        below.append(starts[tier] + low)
        above.append(starts[tier + 1] + high)
        said = tree.tiers[tier]
        rates.append(np.full(len(low), said["downlink_speed_gbps"] * 1e9 / 8))
        there.append(np.full(len(low), (said["downlink_latency_ns"] + said["switch_latency_ns"]) / 1e9))
        own = tree.tiers[tier - 1]["switch_latency_ns"] if tier else 0.0
        latency.append(np.full(len(low), (said["downlink_latency_ns"] + own) / 1e9))
    src, dst = both_ways(np.concatenate(below), np.concatenate(above))
    kind = np.where(np.arange(len(names)) < n_hosts, HOST, SWITCH)
    queues = any(tier[key] for tier in tree.tiers for key in ("queue_up", "queue_down"))
    return Network(
        Path(path).stem, names, kind, src, dst, np.tile(np.concatenate(rates), 2),
        np.concatenate((*there, *latency)), told=(_QUEUES,) if queues else (),
    )  # fmt: skip


def _read(path: str | Path) -> _Tree:
    top, tiers = dict(_TOP), list[dict[str, float]]()
    for number, line in enumerate(read_text(path, MAX_BYTES).splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        key = words[0].lower()
        is_known = key in top or (key == "tier") or (tiers and key in tiers[-1])
        if len(words) != 2 or not is_known or not _NUMBER.fullmatch(words[1]):
            raise InputError(f"{path}, line {number}: htsim's topologies have lines such as 'Nodes 128', 'Tier 0' and "
                             f"'Radix_Down 16', got {line.strip()!r}")  # fmt: skip
        value = float(words[1])
        if key == "tier":
            if value != len(tiers):
                raise InputError(f"{path}, line {number}: expected Tier {len(tiers)}, got {value:g}")
            tiers.append(dict(_OF_TIER))
        elif tiers and key in tiers[-1]:
            tiers[-1][key] = value
        else:
            top[key] = int(value)
    if top["tiers"] not in (2, 3) or len(tiers) != top["tiers"]:
        raise InputError(f"{path}: 2 or 3 tiers are read, each with its block 'Tier 0' and on; Tiers says "
                         f"{top['tiers']}, and {len(tiers)} are described")  # fmt: skip
    return _Tree({**top}, tiers)


def _counts(path: str | Path, tree: _Tree, n_hosts: int, n_pods: int) -> list[int]:
    """Nodes of each tier, hosts first.

    Raises
    ------
    InputError
        If cables up and cables down of two tiers are not equally many.
    """
    counts = [n_hosts]
    for tier in range(len(tree.tiers)):
        up = counts[-1] * (tree.whole(tier - 1, "radix_up") if tier else 1)
        down = tree.whole(tier, "radix_down")
        if not down or not tree.tiers[tier]["downlink_speed_gbps"] or up % down or not up:
            raise InputError(f"{path}: tier {tier} has {down} cables down a switch (Radix_Down) for {up} cables from "
                             "below, which must be a multiple, and a Downlink_speed_Gbps")  # fmt: skip
        counts.append(up // down)
    if sum(counts) > MAX_NODES or n_hosts % n_pods or any(n % n_pods for n in counts[:-1]):
        raise InputError(f"{path}: {counts} nodes by tier are no whole pods of {tree.top['podsize']:g} hosts, or more "
                         f"than {MAX_NODES}")  # fmt: skip
    last = len(counts) - 1
    for tier in range(1, last):
        pairs = counts[tier + 1] // (n_pods if tier + 1 < last else 1)
        bundle = tree.whole(tier, "bundle")
        per_switch = tree.whole(tier - 1, "radix_up")
        if (tier + 1 < last or last == 2) and pairs * bundle != per_switch:
            raise InputError(f"{path}: {per_switch} cables up of each {_NAMES[tier - 1]} switch are not {bundle} to "
                             f"each of {pairs} {_NAMES[tier]} switches (Bundle)")  # fmt: skip
    return counts


def _cables(tree: _Tree, counts: list[int], n_pods: int) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Lower and upper end of each cable, by tier, numbered within their tiers."""
    hosts = np.arange(counts[0])
    ends = [(hosts, hosts // tree.whole(0, "radix_down"))]
    for tier in range(1, len(tree.tiers)):
        n_low, n_high = counts[tier], counts[tier + 1]
        up = tree.whole(tier - 1, "radix_up")
        bundle = tree.whole(tier, "bundle")
        low = np.repeat(np.arange(n_low), up)
        port = np.tile(np.arange(up), n_low) // bundle
        if tier + 1 < len(tree.tiers) or len(tree.tiers) == 2:  # within a pod every pair is joined
            high = low // (n_low // n_pods) * (n_high // n_pods) + port
        else:  # a switch of a pod reaches cores of its own number
            high = low % (n_low // n_pods) * (up // bundle) + port
        ends.append((low, high % n_high))
    return ends
