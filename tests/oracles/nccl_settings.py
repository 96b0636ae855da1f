"""Communicators on regular machines, and NCCL's table for them by name."""

from commsim.nccl.nccl_setting import Channels, NcclSetting
from commsim.nccl.tuning_table import cells


def setting(n_ranks=128, n_nodes=16, gpu="hopper", cpu="intel", n=8, intra=40e9, nvls=None, **more):
    one = Channels(
        n, intra, intra if n_nodes > 1 else 0.0, **{k: more.pop(k) for k in list(more) if k in Channels.__slots__}
    )
    channels = {"ring": one, "tree": one} | ({"nvls": nvls} if nvls else {})
    return NcclSetting(n_ranks, n_nodes, gpu, cpu, channels, **more)


def table(where, operation="all_reduce"):
    return {cell.name: cell for cell in cells(where, operation)}
