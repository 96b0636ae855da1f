"""How many channels NVLink SHARP takes, and how large its chunks are at most, by release, GPU and network.

References
----------
NCCL 2.17 to 2.30.7: ``src/transport/nvls.cc`` (NVLS_NCHANNELS, ncclNvlsTuning) and ``src/enqueue.cc`` (largest chunks).
"""

from __future__ import annotations

from typing import NamedTuple

from .call import KIB, NEWEST

OWN_CHUNK, MANY_NODES_CHUNK, MANY_NODES = 128 * KIB, 64 * KIB, 4
CHANNELS = {"hopper": 16, "blackwell": 32}
# Channels of Blackwell in one NVLink domain, and the first release with so few; since BY_NIC the NIC counts.
FEWER, FEWER_SINCE, BY_NIC = 24, (2, 27), (2, 30)
# Until the first of these trees have chunks of a buffer's step; until the second on any number of nodes. Nobody can set
# the chunk before the first, nor that of trees before the third (NCCL_NVLS_CHUNKSIZE, NCCL_NVLSTREE_MAX_CHUNKSIZE).
ONE_CHUNK, LESS_ON_MANY, TREE_SAID, STEP = (2, 21), (2, 19), (2, 20), 512 * KIB
# Rates of NICs that the rules tell apart, bytes/s: 400 and 800 Gb/s, as NCCL counts them.
NIC_400G, NIC_800G = 48e9, 96e9


class NvlsSizes(NamedTuple):
    """Channels of a call, and the largest chunk in bytes, with the switch of a node alone and with trees between nodes.

    Parameters
    ----------
    channels : int
        Number of channels.
    chunk, tree_chunk : int, bytes
        Largest chunk of ``nvls``, and of ``nvls_tree``.
    """

    channels: int
    chunk: int
    tree_chunk: int


def nvls_sizes(
    gpu: str, n_nodes: int, version: tuple[int, ...] = NEWEST, *, per_node: int = 0, nic: float = 0.0,
    near: bool = True, said: int = 0,
) -> NvlsSizes:  # fmt: skip
    """Return what NCCL takes.

    Parameters
    ----------
    gpu : str
        Generation.
    n_nodes, per_node : int
        Nodes, and ranks of each.
    version : tuple of int
        Release.
    nic : float, bytes/s
        Rate of a NIC; 0 where that is not known, which counts as slow.
    near : bool
        Whether only PCIe switches are between a GPU and its NIC.
    said : int, bytes
        Chunk that is set (``NCCL_NVLS_CHUNKSIZE`` and ``NCCL_NVLSTREE_MAX_CHUNKSIZE``); 0 for none.
    """
    channels = CHANNELS.get(gpu, CHANNELS["hopper"])
    if gpu == "blackwell" and n_nodes == 1 and version[:2] >= FEWER_SINCE:
        channels = FEWER
    chunk, tree = OWN_CHUNK, OWN_CHUNK if version[:2] >= ONE_CHUNK else STEP
    if n_nodes >= MANY_NODES and version[:2] >= LESS_ON_MANY:
        tree = MANY_NODES_CHUNK
    if gpu == "blackwell" and n_nodes > 1 and version[:2] >= BY_NIC:
        channels, chunk, tree = _by_nic(NvlsSizes(channels, chunk, tree), n_nodes, per_node, nic, near)
    return NvlsSizes(
        channels,
        said if said and version[:2] >= ONE_CHUNK else chunk,
        said if said and version[:2] >= TREE_SAID else tree,
    )


def _by_nic(usual: NvlsSizes, n_nodes: int, per_node: int, nic: float, near: bool) -> NvlsSizes:
    """Return what Blackwell takes over several nodes since 2.30 (ncclNvlsTreeSm100Tuning)."""
    if nic < NIC_400G:
        return usual
    if n_nodes == 2:
        if per_node <= 4:
            return NvlsSizes(32, 256 * KIB, 256 * KIB)
        is_short = per_node >= 16 or (per_node <= 8 and near and nic < NIC_800G)
        return NvlsSizes(32, OWN_CHUNK, 64 * KIB if is_short else OWN_CHUNK)
    if nic >= NIC_800G:
        if per_node <= 8:
            return NvlsSizes(24, 256 * KIB, 256 * KIB)
        return NvlsSizes(32, OWN_CHUNK, OWN_CHUNK if per_node < 32 else 64 * KIB)
    return NvlsSizes(24, OWN_CHUNK, 64 * KIB if near else OWN_CHUNK)
