"""Operations and bytes of one operator of torch, and its time by the roofline of a GPU.

An operator takes as long as its operations need at the rate of its precision, or its bytes at the rate of the memory,
whichever is longer. Bytes are those of the tensors that it reads and writes, each once.

References
----------
Williams, Waterman and Patterson, "Roofline: an insightful visual performance model", CACM 52(4), 2009.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from commsim.training.gpus import Gpu

# What an operator only writes, though its schema says that it changes it.
OVERWRITE = ("copy_", "fill_", "zero_", "_foreach_copy_", "_foreach_zero_", "normal_", "uniform_", "random_")
# Operators that read of their first tensor no more than they write.
GATHERING = ("embedding", "index_select", "gather", "index")
ATTENTION = "_scaled_dot_product"
NO_WORK = (
    "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "resize_", "set_", "record_stream",
    "_unsafe_view", "_reshape_alias",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class OperatorCost:
    """What one call of an operator takes.

    Parameters
    ----------
    seconds : float, s
        Time.
    bound : str
        What it is bound by: ``operations``, ``memory``, ``none``, or ``file`` where a trace has the time.
    operations, moved : float
        Floating-point operations, and bytes read and written.
    """

    seconds: float
    bound: str
    operations: float = 0.0
    moved: float = 0.0


def roofline(gpu: Gpu, func: Any, args: Any, kwargs: Mapping[str, Any], out: Any) -> OperatorCost:
    """Return the time of an operator on a GPU.

    Parameters
    ----------
    gpu : Gpu
        Accelerator, with the shares of its peaks that operators reach.
    func : torch.OpOverload
        Operator that was dispatched.
    args, kwargs, out
        What it was called with, and what it returned.
    """
    name = func.overloadpacket.__name__
    if is_free(func, name):
        return OperatorCost(0.0, "none")
    operations = _operations(func, name, args, kwargs, out)
    moved = _moved(func, name, args, kwargs, out)
    by_memory = moved / (gpu.memory * gpu.usual("memory"))
    by_operations = operations / _rate(gpu, name, args) if operations else 0.0
    bound = "operations" if by_operations > by_memory else "memory"
    return OperatorCost(max(by_operations, by_memory), bound, operations, moved)


def is_free(func: Any, name: str) -> bool:
    """Whether an operator launches nothing: it returns a view, or memory that nobody has written."""
    if name in NO_WORK or func.namespace == "prim":
        return True
    returned = func._schema.returns
    return bool(returned) and all(r.alias_info is not None and not r.alias_info.is_write for r in returned)


def _tensors(values: Iterable[Any]) -> list[Any]:
    import torch

    tensors: list[Any] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            tensors.append(value)
        elif isinstance(value, (list, tuple)):
            tensors += _tensors(value)
    return tensors


def _bytes(tensor: Any) -> float:
    """Bytes of a tensor; what is expanded lies in memory once."""
    elements = 1
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        elements *= size if stride else 1
    return float(elements * tensor.element_size())


def _moved(func: Any, name: str, args: Any, kwargs: Mapping[str, Any], out: Any) -> float:
    given = {argument.name: argument for argument in func._schema.arguments}
    named = dict(zip(given, args, strict=False)) | dict(kwargs)
    read, written = 0.0, 0.0
    for key, value in named.items():
        size = sum(map(_bytes, _tensors([value])))
        alias = given[key].alias_info if key in given else None
        writes = alias is not None and alias.is_write
        written += size if writes else 0.0
        read += 0.0 if writes and (name in OVERWRITE or key == "out") else size
    changes = any(one.alias_info is not None and one.alias_info.is_write for one in given.values())
    new = 0.0 if changes else sum(map(_bytes, _tensors([out])))
    return 2 * new if name in GATHERING else read + written + new


def _operations(func: Any, name: str, args: Any, kwargs: Mapping[str, Any], out: Any) -> float:
    from torch.utils.flop_counter import flop_registry, sdpa_backward_flop_count, sdpa_flop_count

    if name.startswith(ATTENTION):
        tensors = [arg for arg in args if hasattr(arg, "shape")]
        whole = (
            sdpa_backward_flop_count(*(t.shape for t in tensors[:4]))
            if name.endswith("_backward")
            else sdpa_flop_count(*(t.shape for t in tensors[:3]))
        )
        return float(whole) / (2 if _is_causal(func, args, kwargs) else 1)
    count = flop_registry.get(func.overloadpacket)
    return float(count(*args, **kwargs, out_val=out)) if count is not None else 0.0


def _is_causal(func: Any, args: Any, kwargs: Mapping[str, Any]) -> bool:
    names = [argument.name for argument in func._schema.arguments]
    return bool((dict(zip(names, args, strict=False)) | dict(kwargs)).get("is_causal"))


def _rate(gpu: Gpu, name: str, args: Any) -> float:
    """Operations a second of the precision of an operator's first tensor."""
    import torch

    dtype = _tensors(args)[0].dtype
    if dtype in (torch.bfloat16, torch.float16):
        precision = "bf16"
    elif dtype.itemsize == 1:
        precision = "fp8"
    else:
        precision = "tf32" if torch.backends.cuda.matmul.allow_tf32 and "tf32" in gpu.peaks else "fp32"
    precision = precision if precision in gpu.peaks else "bf16"
    if name.startswith(ATTENTION):
        kind = "attention_backward" if name.endswith("_backward") else "attention"
        return gpu.peak(precision) * gpu.usual(kind)
    return gpu.peak(precision) * gpu.usual(precision)
