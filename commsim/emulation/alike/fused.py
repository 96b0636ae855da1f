"""Kernels that GPUs have in one piece, and the CPU's operators have not."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from .host import Host
from .operator_cost import OperatorCost


def fused_rms_norm(host: Host, original: Callable[..., Any]) -> Callable[..., Any]:
    """Return what normalises in one kernel, which reads and writes each element once; its backward pass reads two."""

    def rms_norm(x: Any, shape: Any, weight: Any = None, eps: Any = None) -> Any:
        if host.compute.gpu is None or not isinstance(x, FakeTensor):
            return original(x, shape, weight, eps)
        return _RmsNorm.apply(x, weight, host)

    return rms_norm


class _RmsNorm(torch.autograd.Function):  # type: ignore[misc,unused-ignore]
    @staticmethod
    def forward(context: Any, x: Any, weight: Any, host: Host) -> Any:
        context.host, context.x, context.weight = host, x, weight
        _count(host, "rms_norm", x, 2)
        return torch.empty_like(x)

    @staticmethod
    def backward(context: Any, *_: Any) -> Any:
        _count(context.host, "rms_norm_backward", context.x, 3)
        weight = context.weight
        return torch.empty_like(context.x), None if weight is None else torch.empty_like(weight), None


def _count(host: Host, name: str, x: Any, times: int) -> None:
    moved = float(times * math.prod(x.shape) * x.element_size())
    gpu = host.compute.gpu
    if gpu is None:
        return
    cost = OperatorCost(moved / (gpu.memory * gpu.usual("memory")) * host.compute.factor, "memory", 0.0, moved)
    host.spent.add(name, cost)
    host.gpu.compute(cost.seconds, "computation")
