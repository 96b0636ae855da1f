"""What runs where nobody names an algorithm: the library of who makes the GPUs, else the textbook's ring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from collectives import COLLECTIVES

from ..core.errors import InputError
from ..core.hardware import maker_of
from ..core.network import Network
from ..core.operations import operation as known_operation

if TYPE_CHECKING:
    from . import Prepared

# By who makes the GPUs, what their library and its collectives are called.
LIBRARIES = {"nvidia": "nccl", "amd": "rccl"}
# The one of them whose primitives have known costs.
PREDICTED = "nccl"
OPERATION = "all_reduce"
TEXTBOOK = "ring_all_reduce"
RINGS = {
    "all_reduce": "ring_all_reduce", "all_gather": "ring_all_gather", "reduce_scatter": "ring_reduce_scatter",
    "broadcast": "chain_broadcast", "reduce": "chain_reduce", "all_to_all": "pairwise_all_to_all",
}  # fmt: skip


def usual_collective(network: Network, operation: str = OPERATION) -> tuple[str, str]:
    """Return what runs on a network unless an algorithm is named, and what to say of it; empty if it is a plain ring.

    Parameters
    ----------
    network : Network
        Where.
    operation : str
        By name.

    Raises
    ------
    InputError
        If the operation has no usual algorithm.
    """
    known_operation(operation)
    maker = maker_of(network.hardware)
    library = LIBRARIES.get(maker, "")
    spec = f"{library}_{operation}"
    if library and spec in COLLECTIVES:
        return spec, f"{spec}: what {library.upper()} runs on these GPUs; --collective names another algorithm"
    if operation not in RINGS:
        raise InputError(f"{operation} has no usual algorithm here; name one with --collective")
    ring = RINGS[operation]
    told = f"{ring}: {library.upper()} is not modelled for {operation}, a ring is taken" if library else ""
    return ring, told


def usual_engine(specs: Sequence[str]) -> str:
    """Return the engine that predicts collectives best: of NCCL the closed form of its primitives, else flow."""
    return "closed-form" if specs and all(spec.partition("_")[0] == PREDICTED for spec in specs) else "flow"


def known_engine(prepared: Prepared, size: float, engine: str) -> tuple[str, str]:
    """Return the engine where what it needs is known, else flow, and then why; for one that nobody named.

    Parameters
    ----------
    prepared : Prepared
        What is to be predicted.
    size : float, bytes
        Of a first prediction.
    engine : str
        The usual one.
    """
    if engine != "closed-form":
        return engine, ""
    try:
        prepared.predict(size, engine=engine)
    except InputError as error:
        return "flow", f"{error}: the flow engine is taken, in which only links cost time"
    return engine, ""


def spelled_out(spec: str, operation: str | None) -> str:
    """Return a collective with the alias of a library, as in ``nccl:version=2.27``, spelled out by the operation.

    Parameters
    ----------
    spec : str
        ``name:key=value,...``; any that is no alias is returned as it is.
    operation : str or None
        By name; all-reduce unless given.

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
