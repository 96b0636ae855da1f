"""Over what: one function per topology, returning one immutable Network.

To add one, write ``topologies/NAME.py`` with a function decorated by :func:`topology`, and its test.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, ParamSpec, overload

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.registry import Registry
from commsim.core.spec import check_arguments, write_spec

P = ParamSpec("P")
TOPOLOGIES: Registry[Network] = Registry("topology", __name__, listed="commsim topo list")

# Default bandwidth of a link, bytes/s: 100 Gb/s.
LINK_BANDWIDTH = 12.5e9

# Default latency of a link, s: some metres of cable and half of the switches at its two ends.
LINK_LATENCY = 500e-9

MAX_NODES, MAX_LINKS = 2**22, 2**25
_LARGEST: ContextVar[tuple[int, int]] = ContextVar("largest network", default=(MAX_NODES, MAX_LINKS))


@overload
def topology(build: Callable[P, Network]) -> Callable[P, Network]: ...
@overload
def topology(
    *, sized_by: tuple[str, ...], holds_machines: bool = ...
) -> Callable[[Callable[P, Network]], Callable[P, Network]]: ...
def topology(
    build: Callable[P, Network] | None = None, *, sized_by: tuple[str, ...] = ("n_hosts",), holds_machines: bool = False
) -> Callable[P, Network] | Callable[[Callable[P, Network]], Callable[P, Network]]:
    """Register a topology under its own name, the network's family; its arguments are recorded in the network's name.

    Parameters
    ----------
    build : callable
        The function; without parentheses, ``@topology``, it is sized by ``n_hosts``.
    sized_by : tuple of str
        Parameters that its number of hosts grows with; ``machines=N`` sets the first that is not given.
    holds_machines : bool
        Whether its hosts are machines with their inside, so that it counts these and not their NICs.

    Raises
    ------
    InputError
        When the registered function is called with a whole number or a quantity that is none.
    """
    if build is None:
        return functools.partial(_register, sized_by=sized_by, holds_machines=holds_machines)
    return _register(build, sized_by=sized_by, holds_machines=holds_machines)


def _register(build: Callable[P, Network], **metadata: Any) -> Callable[P, Network]:
    signature = inspect.signature(build)

    @functools.wraps(build)
    def named(*args: P.args, **kwargs: P.kwargs) -> Network:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        check_arguments(build, bound.arguments)
        network: object = build(*args, **kwargs)
        if not isinstance(network, Network):
            raise InputError(f"{build.__name__} must return a Network, got {type(network).__name__}")
        return dataclasses.replace(network, name=write_spec(build, bound.arguments), family=build.__name__)

    TOPOLOGIES.add(named, **metadata)
    return named


def largest() -> tuple[int, int]:
    """Return the most nodes and links of a network that are built here: see :func:`at_most`."""
    return _LARGEST.get()


def require_buildable(name: str, n_nodes: int, n_links: int) -> None:
    """Refuse a network that no memory holds, before it is allocated.

    Parameters
    ----------
    name : str
        Name of the topology.
    n_nodes, n_links : int
        What it would have.

    Raises
    ------
    InputError
        If there would be more than ``MAX_NODES`` nodes or ``MAX_LINKS`` directed links, or more than
        :func:`at_most` allows.
    """
    most_nodes, most_links = _LARGEST.get()
    if n_nodes > most_nodes or n_links > most_links:
        raise InputError(
            f"{name} would have {n_nodes} nodes and {n_links} links; at most {most_nodes} and {most_links} are built"
        )


@contextlib.contextmanager
def at_most(n_nodes: int, n_links: int) -> Iterator[None]:
    """Build no network inside that has more nodes or directed links, as for a request of another program."""
    token = _LARGEST.set((n_nodes, n_links))
    try:
        yield
    finally:
        _LARGEST.reset(token)


def bounded_power(name: str, base: int, exponent: int) -> int:
    """Raise `base` to `exponent` for a count of nodes, without computing what no memory holds.

    Parameters
    ----------
    name : str
        Name of the topology.
    base, exponent : int
        Base and exponent of the power.

    Raises
    ------
    InputError
        If the result is above ``MAX_NODES``.
    """
    power = 1
    for _ in range(exponent if base > 1 else 0):
        power *= base
        if power > MAX_NODES:
            raise InputError(f"{name} would have at least {base}^{exponent} nodes; at most {MAX_NODES} are built")
    return power


def require_at_least(name: str, minimum: int, **counts: int) -> None:
    """Refuse a count that is too small, by the name of its parameter.

    Raises
    ------
    InputError
        If one of `counts` is below `minimum`.
    """
    for key, count in counts.items():
        if count < minimum:
            raise InputError(f"{name} needs {key} of at least {minimum}, got {key}={count}")
