"""What runs where nobody names an algorithm: the library of who makes the GPUs, else the textbook's ring."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from collectives import COLLECTIVES
from commsim.core.errors import InputError
from commsim.core.machines.hardware import maker_of
from commsim.core.network import Network
from commsim.core.operations import operation as known_operation

if TYPE_CHECKING:
    pass

# By who makes the GPUs, what their library and its collectives are called.
LIBRARIES = {"nvidia": "nccl", "amd": "rccl"}
OPERATION = "all_reduce"
TEXTBOOK = "ring_all_reduce"
RINGS = {
    "all_reduce": "ring_all_reduce", "all_gather": "ring_all_gather", "reduce_scatter": "ring_reduce_scatter",
    "broadcast": "chain_broadcast", "reduce": "chain_reduce", "all_to_all": "pairwise_all_to_all",
}  # fmt: skip


def usual_collective(network: Network, operation: str = OPERATION, *, textbook: bool = False) -> tuple[str, str]:
    """Return what runs on a network unless an algorithm is named, and what to say of it; empty if it is a plain ring.

    Parameters
    ----------
    network : Network
        Network that it runs on.
    operation : str
        Name of the operation.
    textbook : bool
        Whether the library of the GPUs is left aside: groups at once, compressed gradients and known errors are of
        textbook algorithms.

    Raises
    ------
    InputError
        If the operation has no usual algorithm.
    """
    known_operation(operation)
    library = "" if textbook else LIBRARIES.get(maker_of(network.hardware), "")
    spec = f"{library}_{operation}"
    if library and spec in COLLECTIVES:
        return spec, f"{spec}: what {library.upper()} runs on these GPUs; --collective names another algorithm"
    if operation not in RINGS:
        raise InputError(f"{operation} has no usual algorithm here; name one with --collective")
    ring = RINGS[operation]
    told = f"{ring}: {library.upper()} is not modelled for {operation}, a ring is taken" if library else ""
    return ring, told


def spelled_out(spec: str, operation: str | None) -> str:
    """Return a collective with the alias of a library, as in ``nccl:version=2.27``, spelled out by the operation.

    Parameters
    ----------
    spec : str
        ``name:key=value,...``; any that is no alias is returned as it is.
    operation : str or None
        Name of the operation; all-reduce by default.

    Raises
    ------
    InputError
        If the library has no such operation.
    """
    name, colon, rest = spec.partition(":")
    if name.strip() not in LIBRARIES.values():
        return spec
    library, named = name.strip(), f"{name.strip()}_{operation or OPERATION}"
    if named not in COLLECTIVES:
        known = ", ".join(found.removeprefix(f"{library}_") for found in COLLECTIVES if found.startswith(f"{library}_"))
        raise InputError(f"{library.upper()} has no {operation}; it has {known}")
    return f"{named}{colon}{rest}"


def runs_here(metadata: Mapping[str, Any], name: str, network: Network) -> bool:
    """Whether a collective may run on a network's GPUs: that of a library only on those of who makes it."""
    if "nccl" not in metadata["needs"]:
        return True
    return LIBRARIES.get(maker_of(network.hardware), "") == name.partition("_")[0]
