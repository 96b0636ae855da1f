"""Tensors without data: operators see shapes only, and each call takes the time of the emulated GPU.

Whole numbers stay real as long as they are few, since programs count, draw samples and make groups with them, and so
do floating-point scalars that the program makes itself; all other tensors have no data. Devices are mapped to one: what
the program puts on ``cuda`` is a tensor of the CPU here, on which all operators are known.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from commsim.core.errors import InputError

from .functional import FunctionalCollectives
from .host import Host

# Whole numbers that keep their values.
MAX_REAL = 2**20
GPU = "cuda"
# Chunks of one tensor from which they are one view.
MANY = 16
UNKNOWN = float("nan")
_CHUNKS = (torch.chunk, torch.Tensor.chunk)
_PLAIN = {torch.Tensor, torch.nn.Parameter, FakeTensor}


class WithoutData(TorchDispatchMode):  # type: ignore[misc,unused-ignore]
    """Runs each operator on shapes, and puts its time on the current stream.

    Parameters
    ----------
    host : Host
        Clock, groups and counters of the emulated rank.
    """

    def __init__(self, host: Host) -> None:
        super().__init__()
        self._host = host
        self._fake = FakeTensorMode(allow_non_fake_inputs=True)
        self._functional = FunctionalCollectives(host)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one operator."""
        kwargs = kwargs or {}
        if any(issubclass(one, torch.Tensor) and one not in _PLAIN for one in types):
            return NotImplemented  # tensors that consist of others, such as DTensor, call us again with those
        given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        if func is torch.ops.aten._local_scalar_dense.default and isinstance(given[0], FakeTensor):
            return self._value(given[0])
        if not any(isinstance(tensor, FakeTensor) for tensor in given) and self._keeps_values(
            func, args, kwargs, given
        ):
            return func(*args, **kwargs)
        self._host.await_pending(given)
        if self._functional.takes(func):
            with self._fake:
                return self._functional.call(func, args, kwargs)
        with self._fake:
            out = func(*args, **kwargs)
        self._host.count(func, args, kwargs, out)
        return out

    def _keeps_values(self, func: Any, args: Any, kwargs: Any, given: list[Any]) -> bool:
        """Whether the operator runs on real data: what it returns is a few whole numbers, or a scalar."""
        with self._fake:
            try:
                out = func(*args, **kwargs)
            except Exception:  # the shape depends on the data, or there is no rule for it: all that it reads is real
                return True
        tensors = [leaf for leaf in tree_leaves(out) if isinstance(leaf, torch.Tensor)]
        if (
            given
            and all(tensor.is_complex() or tensor.is_floating_point() for tensor in tensors)
            and all(map(_is_small, given))
        ):
            return all(tensor.numel() <= max(map(torch.Tensor.numel, given)) for tensor in tensors)
        return all(map(_is_small, tensors))

    def _value(self, tensor: Any) -> Any:
        """Wait for a value that nobody knows: time passes, and the number is none."""
        self._host.gpu.synchronize(self._host.gpu.record())
        site = self._host.site()
        if tensor.dtype is torch.bool:
            raise InputError(
                f"{site}: the program decides by the value of a tensor, and tensors of --compute "
                f"{self._host.compute.text} have no data; leave this decision out, or emulate few ranks with data"
            )
        self._host.remark_texts.setdefault("value", f"{site}: tensors have no data; values read from them are nan")
        return UNKNOWN


def _is_small(tensor: Any) -> bool:
    if tensor.is_floating_point() or tensor.is_complex():
        return bool(tensor.dim() == 0)
    return bool(tensor.numel() <= MAX_REAL)


class OnOneDevice(TorchFunctionMode):  # type: ignore[misc,unused-ignore]
    """Takes ``cuda`` as the one device that there is."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function of torch with its devices replaced."""
        kwargs = kwargs or {}
        if func is torch.device:  # what the program says of devices stays as it is
            return func(*args, **kwargs)
        if func is torch.Tensor.cuda or func is torch.Tensor.pin_memory:
            return args[0]
        if func in _CHUNKS and isinstance(args[0], FakeTensor):
            return alike_chunks(func, *args, **kwargs)
        if "device" in kwargs:
            kwargs = {**kwargs, "device": stand_in_device(kwargs["device"])}
        if kwargs.get("pin_memory"):
            kwargs = {**kwargs, "pin_memory": False}
        if any(isinstance(arg, (str, torch.device)) for arg in args):
            args = tuple(map(stand_in_device, args))
        return func(*args, **kwargs)


def alike_chunks(func: Any, tensor: Any, chunks: int, dim: int = 0) -> tuple[Any, ...]:
    """Return chunks of a tensor without data: all but the last are one view, since FSDP makes one for each rank."""
    length = tensor.shape[dim]
    size = -(-length // chunks)
    n = -(-length // size) if size else 0
    if n < MANY:
        return tuple(func(tensor, chunks, dim))
    first, last = tensor.narrow(dim, 0, size), tensor.narrow(dim, (n - 1) * size, length - (n - 1) * size)
    return (*(first,) * (n - 1), last)


def stand_in_device(device: Any) -> Any:
    """Return the device that stands for another one; what is no device stays."""
    if isinstance(device, torch.device) and device.type == GPU:
        return torch.device("cpu")
    if isinstance(device, str) and (device == GPU or device.startswith(f"{GPU}:")):
        return "cpu"
    return device
