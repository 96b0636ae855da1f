"""Host types: one function per kind of machine, returning its inside as a Network of GPUs, switches, CPUs and NICs.

To add one, write ``topologies/hosts/NAME.py`` with a function decorated by :func:`host_type`, and its test. Any host
type may precede any fabric: ``pcie_host:n_gpus=4,n_nics=1@leaf_spine:n_leaves=4,...``.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, overload

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.registry import Registry
from commsim.core.spec import check_arguments, write_spec

P = ParamSpec("P")
HOST_TYPES: Registry[Network] = Registry("host type", __name__)

MAX_DEVICES = 4096
# Rates of links of a machine of which nothing else is known, bytes/s one way, those of an H100's: all NVLinks of a GPU,
# PCIe 5.0 x16, from CPU to CPU, and a CPU's memory. Machines with a name have those of presets.toml.
NVLINK, PCIE, INTER_CPU, MEMORY = 450e9, 63e9, 22e9, 307.2e9


@overload
def host_type(build: Callable[P, Network]) -> Callable[P, Network]: ...
@overload
def host_type(*, up_to_n_gpus: tuple[str, ...]) -> Callable[[Callable[P, Network]], Callable[P, Network]]: ...
def host_type(
    build: Callable[P, Network] | None = None, *, up_to_n_gpus: tuple[str, ...] = ()
) -> Callable[P, Network] | Callable[[Callable[P, Network]], Callable[P, Network]]:
    """Register a host type under its own name; the machine that it returns records the arguments in its name.

    Parameters
    ----------
    build : callable
        The function; without parentheses, ``@host_type``, each default is the one in its signature.
    up_to_n_gpus : tuple of str
        Parameters whose default is the number of GPUs, if that is smaller than the default in the signature:
        ``n_gpus=4`` without others has 4 NICs too.

    Raises
    ------
    InputError
        When the registered function is called with a whole number or a quantity that is none, or a count that is
        negative or beyond ``MAX_DEVICES``.
    """
    if build is None:
        return functools.partial(_register, up_to_n_gpus=up_to_n_gpus)
    return _register(build)


def _register(build: Callable[P, Network], up_to_n_gpus: tuple[str, ...] = ()) -> Callable[P, Network]:
    signature = inspect.signature(build)

    @functools.wraps(build)
    def named(*args: P.args, **kwargs: P.kwargs) -> Network:
        bound = signature.bind(*args, **kwargs)
        names = set(bound.arguments)
        bound.apply_defaults()
        check_arguments(build, bound.arguments)
        for key, value in bound.arguments.items():
            if key.startswith("n_") and not 0 <= value <= MAX_DEVICES:
                raise InputError(f"{build.__name__} needs {key} of 0..{MAX_DEVICES}, got {key}={value}")
        for key in set(up_to_n_gpus) - names:
            bound.arguments[key] = min(bound.arguments[key], bound.arguments["n_gpus"])
        return dataclasses.replace(build(*bound.args, **bound.kwargs), name=write_spec(build, bound.arguments))

    HOST_TYPES.add(named)
    return named
