"""Functional collectives of torch (``_c10d_functional``), which reach no process group where tensors have no data."""

from __future__ import annotations

from typing import Any

from torch.distributed import distributed_c10d
from torch.utils._pytree import tree_leaves

from .host import Host, refused

LIBRARIES = ("_c10d_functional", "_c10d_functional_autograd")
# Operation of each operator, and how many times its tensor a whole array is.
OPERATIONS = {
    "all_reduce": "all_reduce", "all_gather_into_tensor": "all_gather", "reduce_scatter_tensor": "reduce_scatter",
    "all_to_all_single": "all_to_all", "broadcast": "broadcast",
}  # fmt: skip


class FunctionalCollectives:
    """Puts functional collectives on the streams of their groups.

    Parameters
    ----------
    host : Host
        Emulated rank.
    """

    def __init__(self, host: Host) -> None:
        self._host = host

    def takes(self, func: Any) -> bool:
        """Whether an operator is a functional collective."""
        return func.namespace in LIBRARIES

    def call(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run one on shapes, and put its time on the stream of its group."""
        name = func.overloadpacket.__name__
        if name in ("wait_tensor", "_wrap_tensor_autograd"):
            return func(*args, **kwargs)  # what it touches has been waited for
        plain = name.removesuffix("_").removesuffix("_out").removesuffix("_coalesced")
        if plain not in OPERATIONS:
            raise refused(f"{func}", self._host.site(), "is not emulated for ranks that are alike")
        out = func(*args, **kwargs)
        group = distributed_c10d._resolve_process_group(_group_name(func, args, kwargs))
        ranks = tuple(distributed_c10d.get_process_group_ranks(group))
        leaves = tree_leaves(out)
        sent = [leaf for leaf in tree_leaves(args[0]) if hasattr(leaf, "shape")]
        larger = leaves if plain == "all_gather_into_tensor" else sent
        size = float(sum(one.numel() * one.element_size() for one in larger))
        self._host.collective(OPERATIONS[plain], size, ranks, leaves)
        return out


def _group_name(func: Any, args: Any, kwargs: Any) -> str:
    names = [argument.name for argument in func._schema.arguments]
    return str((dict(zip(names, args, strict=False)) | dict(kwargs))["group_name"])
