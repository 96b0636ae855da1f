"""Host types: one function per kind of machine, returning its inside as a Network of GPUs, switches, CPUs and NICs.

To add one, write ``topologies/hosts/NAME.py`` with a function decorated by :func:`host_type`, and its test. Any host
type may stand in front of any fabric: ``pcie_host:n_gpus=4,n_nics=1@leaf_spine:n_leaves=4,...``.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.registry import Registry
from commsim.core.spec import check_arguments, write_spec

P = ParamSpec("P")
HOST_TYPES: Registry[Network] = Registry("host type", __name__)

MAX_DEVICES = 4096


def host_type(build: Callable[P, Network]) -> Callable[P, Network]:
    """Register a host type under its own name; the machine that it returns records the arguments in its name.

    Raises
    ------
    InputError
        When the registered function is called with a whole number or a quantity that is none, or a count that is
        negative or beyond ``MAX_DEVICES``.
    """
    signature = inspect.signature(build)

    @functools.wraps(build)
    def named(*args: P.args, **kwargs: P.kwargs) -> Network:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        check_arguments(build, bound.arguments)
        for key, value in bound.arguments.items():
            if key.startswith("n_") and not 0 <= value <= MAX_DEVICES:
                raise InputError(f"{build.__name__} needs {key} of 0..{MAX_DEVICES}, got {key}={value}")
        return dataclasses.replace(build(*args, **kwargs), name=write_spec(build, bound.arguments))

    HOST_TYPES.add(named)
    return named
