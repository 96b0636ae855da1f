"""Tensors as arrays that travel between ranks, what fills tensors with arrays, and where a program calls."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from commsim.core.errors import InputError

# Folders of what is no program of the user's.
_OWN = tuple(f"{folder}{os.sep}" for folder in (Path(__file__).resolve().parents[2], Path(torch.__file__).parent))


def bytes_of(tensor: Any) -> int:
    """Return the bytes of a tensor."""
    return int(tensor.numel() * tensor.element_size())


def numbers_of(tensor: Any) -> Any:
    """Return a copy of the values that can be reduced, in one dimension."""
    if tensor.dtype is torch.bfloat16:
        raise InputError(f"{site_of_call()}: bfloat16 is not reduced with data here; reduce in float32")
    return tensor.detach().reshape(-1).numpy().copy()


def raw_of(tensor: Any) -> Any:
    """Return a copy of the bytes of a tensor of any type."""
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().copy()


def filling(tensor: Any) -> Callable[[Any], None]:
    """Return what fills a tensor with the bytes of another one."""

    def fill(raw: Any) -> None:
        values = torch.from_numpy(np.array(raw)).view(tensor.dtype)
        tensor.copy_(values.view(tensor.shape))

    return fill


def filling_each(tensors: list[Any]) -> Callable[[Any], None]:
    """Return what fills each tensor with the bytes of one."""
    fills = [filling(tensor) for tensor in tensors]

    def fill(parts: Any) -> None:
        for fill, raw in zip(fills, parts, strict=True):
            fill(raw)

    return fill


def nothing(_: Any) -> None:
    """Fill nothing."""


def site_of_call() -> str:
    """Line of the program that called: the innermost that is neither ours nor torch's."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith((*_OWN, "<")):
            return f"{Path(path).name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
