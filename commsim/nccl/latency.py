"""The latency that NCCL expects of an algorithm with a protocol.

References
----------
NCCL 2.30, ``src/graph/tuning.cc``, whose rules these are, in our words.
"""

from __future__ import annotations

from .constants import BASE_US, HOP_US, NET_OVERHEAD_US
from .ring_steps import ring_steps
from .setting import Channels, Setting


def latency(setting: Setting, operation: str, algorithm: str, p: int, channels: Channels) -> float:
    """Return the latency: what starting costs, and what each hop inside a node and between nodes adds.

    Parameters
    ----------
    setting, operation, algorithm, p, channels
        As in :func:`commsim.nccl.bandwidth.algorithm_bandwidth`.

    Returns
    -------
    float, s
        What the smallest message takes.
    """
    n, nodes = setting.n_ranks, setting.n_nodes
    inside = "nvlink" if channels.path_intra == "NVL" else "pci"
    intra = HOP_US[inside][algorithm][p]
    inter = HOP_US["net"]["tree" if setting.per_node == 1 else algorithm][p]
    inter += channels.latency * 1e6 * (2 if p == 2 else 1)  # with Simple, a flush as well
    base = BASE_US[algorithm][p]
    depth = nodes.bit_length() - 1
    others = n // nodes - 1
    if algorithm == "ring" and operation in ("broadcast", "reduce"):
        hardware = inside if nodes == 1 else "net"
        if channels.same:
            total = base + HOP_US[hardware]["ring"][p]
        else:  # with Simple a whole chunk has to arrive before it is passed on, as in a tree
            total = base + n * HOP_US[hardware]["tree" if p == 2 else "ring"][p]
    elif algorithm == "ring":
        overhead = NET_OVERHEAD_US[setting.cpu] * (3 if p == 2 else 1) if nodes > 1 else 0.0
        crossing = (2 if operation == "all_reduce" else 1) * (nodes - 1)
        total = base + (ring_steps(setting, operation) - crossing) * max(intra, overhead) + crossing * inter
    elif algorithm == "tree":
        total = base + 2 * (others * intra + depth * inter)
    elif algorithm == "collnet_direct":
        total = base + 2 * (min(1, others) * intra + others * 0.4) + inter
    elif algorithm == "collnet_chain":
        total = base + 2 * others * intra + inter
    elif algorithm == "nvls":
        total = intra + (inter if nodes > 1 else 0.0)
    elif algorithm == "nvls_tree":
        total = base + intra + 2 * depth * inter
    else:
        total = base + depth * inter / 3.5 + n * 2.8
    return total * 1e-6
