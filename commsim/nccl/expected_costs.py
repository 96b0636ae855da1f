"""The bandwidth and the latency that NCCL expects of an algorithm with a protocol.

References
----------
NCCL, ``src/graph/tuning.cc``, whose rules these are, in our words; what differs between releases is in
:mod:`commsim.nccl.model_versions`.
"""

from __future__ import annotations

from .model_versions import NcclModel, model_of, row_of
from .nccl_setting import SINCE_HOPPER, Channels, NcclSetting

NVLS_EFFICIENCY = {"volta": 0.0, "ampere": 0.0, "hopper": 0.85, "blackwell": 0.74}
NET_OVERHEAD_US = {"intel": 1.0, "amd": 2.0, "other": 1.0}
# Share of their rate that trees keep which go up and down by the same NIC, and the first release with it.
ONE_NIC_TREE, ONE_NIC_TREE_SINCE = 0.85, (2, 26)
# Operations that are half of an all-reduce.
HALVES = ("all_gather", "reduce_scatter")


def ring_steps(setting: NcclSetting, operation: str) -> int:
    """How often a ring passes something on."""
    if operation == "all_reduce":
        return 2 * (setting.n_ranks - 1)
    return setting.n_ranks - 1 if operation in HALVES else setting.n_ranks


def algorithm_bandwidth(setting: NcclSetting, operation: str, algorithm: str, p: int, channels: Channels) -> float:
    """Return the bandwidth of an algorithm: what its channels carry, less what it loses, over how often a byte is sent.

    Parameters
    ----------
    setting : NcclSetting
        Communicator on its hardware.
    operation, algorithm : str
        What, and how.
    p : int
        The protocol, by its place in ``PROTOCOLS``.
    channels : Channels
        Channels of the algorithm's pattern.

    Returns
    -------
    float, bytes/s
        Size over time of an endless message.
    """
    column, gpu, model = setting.nodes_column, setting.gpu, model_of(setting.version)
    collnet = algorithm.startswith("collnet")
    if algorithm == "nvls" and model.nvls == "ring":  # without a search of its own
        channels = setting.channels["ring"]
    each = channels.intra if setting.n_nodes <= 2 or collnet else channels.inter
    if algorithm.startswith("nvls") and model.nvls != "ring":
        each = _nvls_channel(setting, operation, algorithm, channels)
    bus = min(channels.n * each, model.bus_gbs.get(gpu, float("inf")) * 1e9)
    row = gpu if setting.n_nodes == 1 else ("ampere" if setting.cpu == "amd" else "volta")
    largest_ll = row_of(model.ll_gbs, row)[column] * 1e9
    if algorithm == "ring" and p == 0:
        whole = setting.n_nodes > 1 or operation in ("all_reduce", "reduce")
        bus = min(largest_ll, bus * model.ring_ll[0 if whole else 1])
    elif algorithm == "ring" and p == 1:
        part = model.lone_ll128 if setting.per_node < 2 else 0.92
        bus = min(part * bus, channels.n * row_of(model.ring_ll128_gbs, gpu)[column] * 1e9)
    elif algorithm == "tree":
        bus = _tree_bus(setting, p, bus, channels.n, largest_ll)
    elif algorithm == "pat":
        bus *= 0.75
    elif algorithm == "collnet_direct":
        bus = _collnet_bus(setting, operation, bus, channels)
    if operation in HALVES and algorithm != "ring" and not (algorithm == "nvls" and model.halves_shared):
        return bus
    if algorithm in ("nvls", "nvls_tree") and model.nvls != "efficiency":
        return bus * model.nvls_share
    if algorithm in ("ring", "nvls", "nvls_tree"):
        return bus * setting.n_ranks / ring_steps(setting, operation)
    return bus / 2


def _tree_bus(setting: NcclSetting, p: int, bus: float, n: int, largest_ll: float) -> float:
    column, gpu, model = setting.nodes_column, setting.gpu, model_of(setting.version)
    bus = min(0.92 * bus, n * row_of(model.tree_gbs, gpu)[column] * 1e9)
    if p == 0:
        bus = min(bus / 3.8, largest_ll)
    elif p == 1:
        lost = 7 / 9 if setting.n_nodes == 1 else 120 / 128
        bus = min(bus * lost, n * row_of(model.tree_ll128_gbs, gpu)[column] * 1e9)
    return bus * ONE_NIC_TREE if setting.one_nic_tree and setting.version >= ONE_NIC_TREE_SINCE else bus


def _nvls_channel(setting: NcclSetting, operation: str, algorithm: str, channels: Channels) -> float:
    """Rate of one channel of NVLink SHARP, as bus bandwidth; an all-reduce overlaps its two halves."""
    model, half = model_of(setting.version), (setting.per_node - 1) / setting.per_node
    if model.nvls == "search":
        return _searched_channel(setting, operation, algorithm, channels, model)
    inside = channels.intra * NVLS_EFFICIENCY[setting.gpu] * (channels.n - 1) / channels.n
    inside *= 2 if operation == "all_reduce" else half
    if setting.n_nodes == 1:  # the search leaves the rate between nodes where it began, and it counts nevertheless
        return min(inside, channels.inter or inside)
    outside = channels.inter * (2 if setting.n_nodes == 2 and algorithm == "nvls_tree" else 1)
    cap = row_of(model.nvls_tree_gbs, setting.gpu)[setting.nodes_column] * 1e9
    return min(inside, outside, cap if algorithm == "nvls_tree" else float("inf"))


def _searched_channel(
    setting: NcclSetting, operation: str, algorithm: str, channels: Channels, model: NcclModel
) -> float:
    """Rate of one channel of NVLink SHARP before 2.28: the slower of what the search found inside and outside."""
    outside = channels.inter or channels.intra
    if algorithm == "nvls_tree":
        return min(channels.intra, outside if setting.n_nodes <= 2 else outside / 2)
    if operation == "all_reduce" or model.halves_shared:
        return min(channels.intra, outside)
    return min(channels.intra * (setting.per_node - 1) / setting.per_node, 0.9 * outside)


def _collnet_bus(setting: NcclSetting, operation: str, bus: float, channels: Channels) -> float:
    """Of CollNet direct: it wants a NIC for each GPU."""
    if operation in HALVES:
        return setting.per_node * min(channels.intra, 0.9 * channels.inter)
    gpus_per_channel = setting.per_node / channels.n
    bus /= (gpus_per_channel + 1) / 2
    return bus * 0.85 if setting.gpu in SINCE_HOPPER else bus


def latency(setting: NcclSetting, operation: str, algorithm: str, p: int, channels: Channels) -> float:
    """Return the latency: what starting costs, and what each hop inside a node and between nodes adds.

    Parameters
    ----------
    setting, operation, algorithm, p, channels
        Same as in :func:`commsim.nccl.expected_costs.algorithm_bandwidth`.

    Returns
    -------
    float, s
        What the smallest message takes.
    """
    n, nodes, model = setting.n_ranks, setting.n_nodes, model_of(setting.version)
    inside = "nvlink" if channels.path_intra == "NVL" else "pci"
    intra = model.hop_us[inside][algorithm][p] * (model.ll_hop if nodes > 1 and p == 0 else 1.0)
    lone = setting.per_node == 1 and model.lone_tree_hop
    inter = model.hop_us["net"]["tree" if lone else algorithm][p]
    plugin = channels.latency * 1e6
    if model.plugin_replaces:
        inter = plugin or inter
    else:
        inter += plugin * (2 if p == 2 else 1)  # with Simple, a flush as well
    base = model.base_us[algorithm][p]
    depth = nodes.bit_length() - 1
    others = n // nodes - 1
    if algorithm == "ring" and operation in ("broadcast", "reduce"):
        hardware = inside if nodes == 1 else "net"
        if channels.same:
            total = base + model.hop_us[hardware]["ring"][p]
        else:  # with Simple a whole chunk has to arrive before it is passed on, as in a tree
            total = base + n * model.hop_us[hardware]["tree" if p == 2 else "ring"][p]
    elif algorithm == "ring":
        overhead = NET_OVERHEAD_US[setting.cpu] * (3 if p == 2 else 1) if nodes > 1 and model.posts else 0.0
        crossing = (2 * (nodes - 1) + (model.crossings if nodes > 1 else 0)) if operation == "all_reduce" else nodes - 1
        total = base + (ring_steps(setting, operation) - crossing) * max(intra, overhead) + crossing * inter
    elif algorithm == "tree":
        total = base + 2 * (others * intra + depth * inter)
    elif algorithm == "collnet_direct":
        total = base + 2 * (min(1, others) * intra + others * 0.4) + inter
    elif algorithm == "collnet_chain":
        total = base + 2 * others * intra + inter
    elif algorithm == "nvls":
        total = base + intra + (inter if nodes > 1 else 0.0)
    elif algorithm == "nvls_tree":
        total = base + intra + 2 * depth * inter
    else:
        total = base + depth * inter / 3.5 + n * 2.8
    return total * 1e-6
