"""Tensors without data: operators see shapes only, and each call takes the time of the emulated GPU.

Whole numbers stay real as long as they are few, since programs count, draw samples and make groups with them, and so
do floating-point scalars that the program makes itself; all other tensors have no data. Devices are mapped to one: what
the program puts on ``cuda`` is a tensor of the CPU here, on which all operators are known.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from commsim.core.errors import InputError

from .functional import FunctionalCollectives
from .host import Host

# Whole numbers that keep their values.
MAX_REAL = 2**20
GPU = "cuda"
UNKNOWN = float("nan")


class WithoutData(TorchDispatchMode):
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
        given = [one for one in tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor)]
        if func is torch.ops.aten._local_scalar_dense.default and isinstance(given[0], FakeTensor):
            return self._value(given[0])
        if not any(isinstance(one, FakeTensor) for one in given) and self._keeps_values(func, args, kwargs, given):
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
        made = [one for one in tree_leaves(out) if isinstance(one, torch.Tensor)]
        if given and all(one.is_complex() or one.is_floating_point() for one in made) and all(map(_is_small, given)):
            return all(one.numel() <= max(map(torch.Tensor.numel, given)) for one in made)
        return all(map(_is_small, made))

    def _value(self, tensor: Any) -> Any:
        """Wait for a value that nobody knows: time passes, and the number is none."""
        self._host.gpu.synchronize(self._host.gpu.record())
        site = self._host.site()
        if tensor.dtype is torch.bool:
            raise InputError(
                f"{site}: the program decides by the value of a tensor, and tensors of --compute {self._host.compute.text} "
                "have no data; leave this decision out, or emulate few ranks with --compute measured"
            )
        self._host.told.setdefault("value", f"{site}: tensors have no data; values read from them are nan")
        return UNKNOWN


_PLAIN = {torch.Tensor, torch.nn.Parameter, FakeTensor}


def _is_small(tensor: Any) -> bool:
    if tensor.is_floating_point() or tensor.is_complex():
        return bool(tensor.dim() == 0)
    return bool(tensor.numel() <= MAX_REAL)


class OnOneDevice(TorchFunctionMode):
    """Takes ``cuda`` as the one device that there is."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function of torch with its devices replaced."""
        kwargs = kwargs or {}
        if func is torch.device:  # what the program says of devices stays as it is
            return func(*args, **kwargs)
        if func is torch.Tensor.cuda or func is torch.Tensor.pin_memory:
            return args[0]
        if func is torch.rms_norm:  # one kernel on GPUs, and six operators on the CPU
            return torch.ops.aten._fused_rms_norm(*args, **kwargs)[0]
        if "device" in kwargs:
            kwargs = {**kwargs, "device": here(kwargs["device"])}
        if kwargs.get("pin_memory"):
            kwargs = {**kwargs, "pin_memory": False}
        if any(isinstance(one, (str, torch.device)) for one in args):
            args = tuple(map(here, args))
        return func(*args, **kwargs)


def here(device: Any) -> Any:
    """Return the device that stands for another one; what is no device stays."""
    if isinstance(device, torch.device) and device.type == GPU:
        return torch.device("cpu")
    if isinstance(device, str) and (device == GPU or device.startswith(f"{GPU}:")):
        return "cpu"
    return device


def plain_numbers(values: Any) -> Any:
    """Return values in which tensors are replaced by their shapes, for messages."""
    return tree_map_only(torch.Tensor, lambda one: tuple(one.shape), values)


def frames() -> Iterator[Any]:
    """Frames of the caller, the innermost first."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


Patch = Callable[..., Any]
