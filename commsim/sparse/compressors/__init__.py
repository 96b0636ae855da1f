"""What is made of a gradient before it is sent: one module per compressor, which changes bytes and values, no schedule.

To add one, write ``commsim/sparse/compressors/NAME.py`` with a function decorated by :func:`compressor`, and its test.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, ParamSpec

from commsim.core.registry import Registry
from commsim.core.spec import check_arguments, read_arguments, split_spec

if TYPE_CHECKING:
    from .message import Compressor

P = ParamSpec("P")
COMPRESSORS: Registry[Compressor] = Registry("compressor", __name__)


def compressor(build: Callable[P, Compressor]) -> Callable[P, Compressor]:
    """Register a compressor under its own name."""

    @functools.wraps(build)
    def checked(*args: P.args, **kwargs: P.kwargs) -> Compressor:
        check_arguments(build, inspect.signature(build).bind(*args, **kwargs).arguments)
        return build(*args, **kwargs)

    COMPRESSORS.add(checked)
    return checked


def compressor_of(text: str) -> Compressor:
    """Build what ``name:key=value,...`` names, such as ``top_k:density=0.01``.

    Raises
    ------
    InputError
        If the name is unknown, or a parameter is wrong.
    """
    name, raw = split_spec(text)
    build = COMPRESSORS[name].build
    return build(**read_arguments(build, raw))
