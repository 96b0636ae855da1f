"""Networks for htsim: trees of two or three tiers, each described by a few numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.files.whole_files import replacing
from commsim.core.network import Network
from commsim.core.network_queries import tiers


def write_htsim(network: Network, path: str | Path) -> None:
    """Write a leaf-spine or a three-tier tree; the file appears whole or not at all.

    Raises
    ------
    InputError
        If the network is none, its hosts are not numbered leaf by leaf, or a number is not whole.
    """
    text = _text(network)
    with replacing(path) as out:
        out.write(text.encode())


def _text(network: Network) -> str:
    tier = tiers(network)
    n_tiers = int(tier.max())
    if n_tiers not in (2, 3) or (tier < 0).any():
        raise _no_tree(network, f"its switches are in {n_tiers} tiers, and must be in 2 or 3")
    if (np.abs(tier[network.src] - tier[network.dst]) != 1).any() or not network.is_cabled:
        raise _no_tree(network, "a link is within a tier, or not the same in both directions")
    if len(set(zip(network.src.tolist(), network.dst.tolist(), strict=True))) < network.n_links:
        raise _no_tree(network, "it has cables side by side")
    n_hosts = int((tier == 0).sum())
    blocks, speeds, radix = [], [], []
    for level in range(n_tiers):
        down = (tier[network.src] == level + 1) & (tier[network.dst] == level)
        speeds.append(_single_value(network, network.bandwidth[down] * 8 / 1e9, f"the rates below tier {level}"))
        delay = _single_value(network, network.latency[down] * 1e9, f"the latencies below tier {level}")
        downs, ups = (_degrees(network, tier, level + 1, level + step) for step in (0, 2))
        radix.append((_single_value(network, downs, f"the cables down of tier {level}"), ups))
        blocks.append(
            {
                "Downlink_speed_Gbps": _whole_value(network, speeds[-1], "Gb/s"),
                "Radix_Down": int(radix[-1][0]),
                **(
                    {"Radix_Up": int(_single_value(network, ups, f"the cables up of tier {level}"))}
                    if level < n_tiers - 1
                    else {}
                ),
                "Downlink_Latency_ns": _whole_value(network, delay, "ns"),
                "Switch_Latency_ns": 0,
                **({"Bundle": 1} if level else {}),
            }
        )
    for level in range(n_tiers - 1):
        block = blocks[level]
        ratio = block["Radix_Down"] * speeds[level] / (block["Radix_Up"] * speeds[level + 1])
        block["Oversubscribed"] = max(1, _whole_value(network, max(1.0, ratio), "times oversubscribed"))
    pod = _check_shape(network, tier, blocks, n_hosts)
    lines = [f"Nodes {n_hosts}", f"Tiers {n_tiers}", f"Podsize {pod}"]
    for level, block in enumerate(blocks):
        lines += ["", f"Tier {level}", *(f"{key} {value}" for key, value in block.items())]
    return "\n".join(lines) + "\n"


def _check_shape(network: Network, tier: NDArray[np.int32], blocks: list[dict[str, int]], n_hosts: int) -> int:
    """Raise unless hosts, leaves and pods follow each other in order; return the hosts of a pod."""
    hosts = np.flatnonzero(tier == 0)
    above = {int(s): int(d) for s, d in zip(network.src, network.dst, strict=True) if tier[s] == 0}
    if len(above) < n_hosts or sum(tier[network.src] == 0) > n_hosts:
        raise _no_tree(network, "a host has another number of cables than one")
    leaves = [above[int(h)] for h in hosts]
    per_leaf = blocks[0]["Radix_Down"]
    if any(leaves[i] != leaves[i - i % per_leaf] for i in range(n_hosts)):
        raise _no_tree(network, "its hosts are not numbered leaf by leaf")
    pod = n_hosts if len(blocks) == 2 else per_leaf * blocks[1]["Radix_Down"]
    order = list(dict.fromkeys(leaves))
    group = {leaf: i * per_leaf // pod for i, leaf in enumerate(order)}
    n_pods = n_hosts // pod
    up: dict[int, set[int]] = {}
    for s, d in zip(network.src.tolist(), network.dst.tolist(), strict=True):
        if tier[s] == 1 and tier[d] == 2:
            up.setdefault(d, set()).add(group[s])
    if n_hosts % pod or any(len(pods) != 1 for pods in up.values()):
        raise _no_tree(network, "a switch of the second tier is cabled to leaves of several pods")
    if len(blocks) == 3 and blocks[2]["Radix_Down"] % n_pods:
        raise _no_tree(network, f"a core switch has {blocks[2]['Radix_Down']} cables for {n_pods} pods")
    return pod


def _degrees(network: Network, tier: NDArray[np.int32], level: int, other: int) -> NDArray[np.float64]:
    """Cables of every switch of one tier to another one."""
    sources = network.src[(tier[network.src] == level) & (tier[network.dst] == other)]
    return np.asarray(np.bincount(sources, minlength=network.n_nodes)[tier == level], np.float64)


def _single_value(network: Network, values: NDArray[np.float64], what: str) -> float:
    if not values.size or not np.allclose(values, values[0], rtol=1e-12, atol=0):
        raise _no_tree(network, f"{what} differ")
    return float(values[0])


def _whole_value(network: Network, value: float, unit: str) -> int:
    if abs(value - round(value)) > 1e-6:
        raise InputError(f"{network.name}: htsim takes whole numbers, got {value:g} {unit}")
    return round(value)


def _no_tree(network: Network, why: str) -> InputError:
    return InputError(f"{network.name} is no leaf-spine and no three-tier tree: {why}")
