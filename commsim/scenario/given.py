"""What callers may give, as the values that the other packages take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias, Union

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.placement import Placement
from commsim.core.schedule import Schedule
from commsim.core.units import parse_size, parse_time
from commsim.scenario.inputs import load_network

if TYPE_CHECKING:
    from commsim.scenario.network_builder import NetworkBuilder

NetworkLike: TypeAlias = Union[str, Network, "NetworkBuilder"]
PlacementLike: TypeAlias = str | Placement | Sequence[int] | Sequence[str] | NDArray[np.integer]
SizeLike: TypeAlias = float | str
CollectiveLike: TypeAlias = str | Schedule | Callable[[int], Schedule]


def network_of(given: NetworkLike) -> Network:
    """Return a network, by whatever it was given.

    Raises
    ------
    InputError
        If a name is unknown, or what was built is no network.
    """
    if isinstance(given, str):
        return load_network(given)
    return given if isinstance(given, Network) else given.build()


def size_of(given: SizeLike, name: str = "size") -> float:
    """Return bytes of a number, or of text such as ``64MiB``.

    Raises
    ------
    InputError
        If it is neither.
    """
    if isinstance(given, str):
        return float(parse_size(given, name))
    try:
        return float(given)
    except TypeError:
        raise InputError(
            f"{name} is one number of bytes, or text such as '64MiB', got {given!r}; for several, call it for each, "
            "or cs.rank or cs.run_sweep once"
        ) from None


def sizes_of(given: SizeLike | Sequence[SizeLike], name: str = "sizes") -> list[float]:
    """Return bytes of one size or of several.

    Raises
    ------
    InputError
        If one is no size, or none is given.
    """
    every = [given] if isinstance(given, (int, float, str)) else list(given)
    if not every:
        raise InputError(f"{name} must name at least one size, such as '64MiB'")
    return [size_of(size, name) for size in every]


def seconds_of(given: float | str, name: str) -> float:
    """Return seconds of a number, or of text such as ``10us``."""
    return parse_time(given, name) if isinstance(given, str) else float(given)


def placement_of(
    given: PlacementLike | None, network: Network, n_ranks: int | None
) -> tuple[str | Placement | None, int | None]:
    """Return a placement, and the number of ranks where a list says it.

    Raises
    ------
    InputError
        If a node is none of the network's, or the list has another length than there are ranks.
    """
    if given is None or isinstance(given, (str, Placement)):
        return given, n_ranks
    nodes = [_node(node, network) for node in given]
    if n_ranks is not None and len(nodes) != n_ranks:
        raise InputError(f"placement must name a node for each of n_ranks={n_ranks}, got {len(nodes)} nodes")
    placement = Placement(np.array(nodes, np.int32))
    placement.check(network, len(nodes))
    return placement, len(nodes)


def collective_of(given: CollectiveLike, n_ranks: int) -> str | Schedule:
    """Return a collective that :func:`commsim.scenario.prepare` takes; a function's schedule is built and proved.

    Raises
    ------
    InputError
        If a function makes no schedule, or one that does not do what it promises.
    """
    if isinstance(given, (str, Schedule)):
        return given
    schedule = given(n_ranks)
    if not isinstance(schedule, Schedule):
        raise InputError(f"{_name(given)}({n_ranks}) must return a Schedule, got {type(schedule).__name__}")
    from commsim.core.checking.check_compact import check_builder  # numba's kernels, for own functions only

    check_builder(given, n_ranks)
    return schedule


def _node(given: int | str | np.integer, network: Network) -> int:
    if not isinstance(given, str):
        return int(given)
    if given not in network.nodes:
        raise InputError(f"placement: {network.name} has no node {given!r}; its first is {network.nodes[0]!r}")
    return network.nodes.index(given)


def _name(function: Callable[..., object]) -> str:
    return getattr(function, "__name__", "the function")
