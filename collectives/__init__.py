"""What is sent: one function per algorithm, returning one immutable Schedule.

To add one, write ``collectives/{dense,sparse,servers,in_network,experts}/NAME.py`` with a function decorated by
:func:`collective`, and its test.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec

from commsim.core.errors import InputError
from commsim.core.program import UNNAMED
from commsim.core.registry import Registry
from commsim.core.schedule import Schedule
from commsim.core.spec import check_arguments

if TYPE_CHECKING:
    from commsim.sparse.form import SparseForm

P = ParamSpec("P")
COLLECTIVES: Registry[Schedule] = Registry("collective", __name__, recursive=True, listed="commsim schedule list")

# Every collective takes it: with true, each step waits for the one before at both of its ends, as in a loop of
# MPI_Sendrecv, and as many simulators do.
BLOCKING = "blocking"

MAX_RANKS, MAX_CHUNKS = 2**20, 2**22

# What a builder may ask of network and placement, and the parameter that takes it.
NEEDS = {
    "groups": "groups",  # ranks of each unit of the innermost level of the network that splits them
    "dims": "dims",  # extents of the levels, outermost first, where ranks form a full grid and none are given
    "machines": "machines",  # ranks of each machine, where some machine has several
    "memories": "n_switches",  # first helpers on the memories of machines, where this parameter is not 0
    "rails": "n_channels",  # NICs of a machine, where ranks are in several machines and none are given
    "servers": "n_servers",  # a host for each rank, as far as hosts are free, where none are given
    "aggregators": "n_aggregators",  # the same
    "nccl": "machines",  # ranks of each machine, and what NCCL would choose at the size that is run
    "tree": "tree",  # parent of each participant in the tree of aggregating switches
}
# Parameters that only network and placement give; the user may not.
FOUND = ("groups", "machines", "tree")


def collective(
    operation: str,
    *,
    cost: Callable[..., float] | None = None,
    bounds: Callable[..., tuple[float, float]] | None = None,
    needs: tuple[str, ...] = (),
    systems: tuple[str, ...] = (),
    sparse: SparseForm | None = None,
    pieces: Callable[[int, float], int] | None = None,
) -> Callable[[Callable[P, Schedule]], Callable[P, Schedule]]:
    """Register a collective under its own name.

    Parameters
    ----------
    operation : str
        What it implements; decides the post-condition and the bus-bandwidth factor.
    cost : callable, optional
        ``cost(n_ranks, size, link, **parameters)``: the docstring's closed form, in seconds, on a star without other
        traffic.
    bounds : callable, optional
        The same for a lower and an upper bound, without a closed form.
    needs : tuple of str
        What its builder takes from network and placement, some of ``NEEDS``.
    systems : tuple of str
        Switch systems that send such packets, the usual one first, when its helpers are aggregators on switches. Then
        it needs a ``tree``, too. Other helpers sit on the network's next free hosts.
    sparse : SparseForm, optional
        What its messages take when the data is sparse.
    pieces : callable, optional
        ``pieces(n_ranks, size)``: its ``n_chunks`` where the size is known and the user gives none.
    """
    needs = (*needs, "tree") if systems else needs

    def decorate(build: Callable[P, Schedule]) -> Callable[P, Schedule]:
        _check_needs(build, needs)

        @functools.wraps(build)
        def named(*args: P.args, **kwargs: P.kwargs) -> Schedule:
            blocking = kwargs.pop(BLOCKING, False) if takes_blocking else False
            if not isinstance(blocking, bool):
                raise InputError(f"{build.__name__}: {BLOCKING} must be true or false, got {blocking!r}")
            bound = inspect.signature(build).bind(*args, **kwargs)
            bound.apply_defaults()
            check_arguments(build, bound.arguments)
            _check_ranges(build.__name__, bound.arguments)
            root = bound.arguments.get("root", 0)
            try:
                schedule: object = build(*args, **kwargs)
            except InputError as error:  # a program is named only after it is built
                if str(error).startswith(f"{UNNAMED}: "):
                    error.args = (f"{build.__name__}{str(error).removeprefix(UNNAMED)}",)
                raise
            if not isinstance(schedule, Schedule):
                raise InputError(f"{build.__name__} must return a Schedule, got {type(schedule).__name__}")
            schedule = dataclasses.replace(schedule, name=build.__name__, operation=operation, root=root)
            return schedule.fenced() if blocking else schedule

        takes_blocking = BLOCKING not in inspect.signature(build).parameters
        if takes_blocking:
            _add_blocking(named)
        COLLECTIVES.add(
            named, operation=operation, cost=cost, bounds=bounds, needs=needs, systems=systems, sparse=sparse,
            pieces=pieces,
        )  # fmt: skip
        return named

    return decorate


def _add_blocking(named: Callable[..., Schedule]) -> None:
    """Give a collective the parameter that all have, so that every reader of its signature knows it."""
    signature = inspect.signature(named)
    own = inspect.Parameter(BLOCKING, inspect.Parameter.KEYWORD_ONLY, default=False, annotation="bool")
    named.__signature__ = signature.replace(parameters=[*signature.parameters.values(), own])  # type: ignore[attr-defined]
    named.__annotations__ = {**named.__annotations__, BLOCKING: bool}


def found_parameters(needs: tuple[str, ...]) -> tuple[str, ...]:
    """Parameters of a builder with these needs that the user may not give."""
    return ("n_ranks", *(NEEDS[need] for need in needs if NEEDS[need] in FOUND))


def _check_needs(build: Callable[..., Any], needs: tuple[str, ...]) -> None:
    """Refuse needs that are unknown or that the builder cannot take, and parameters whose need is not declared."""
    parameters = inspect.signature(build).parameters
    for need in needs:
        if need not in NEEDS:
            raise InputError(f"{build.__name__}: unknown need {need!r}; known: {', '.join(NEEDS)}")
        if NEEDS[need] not in parameters:
            raise InputError(f"{build.__name__} needs {need}, and takes no {NEEDS[need]}")
    for name in FOUND:
        if name in parameters and name not in (NEEDS[need] for need in needs):
            raise InputError(f"{build.__name__} takes {name}: declare needs=({name!r},) in @collective")


def _check_ranges(name: str, arguments: dict[str, Any]) -> None:
    """Refuse what no collective can take, before a builder trips over it."""
    n_ranks = arguments["n_ranks"]
    if n_ranks < 1:
        raise InputError(f"{name} needs at least 1 rank, got n_ranks={n_ranks}")
    if n_ranks > MAX_RANKS:
        raise InputError(f"{name} is built for at most {MAX_RANKS} ranks, got n_ranks={n_ranks}")
    if not 0 <= arguments.get("root", 0) < n_ranks:
        raise InputError(f"{name}: root must be a rank 0..{n_ranks - 1}, got {arguments['root']}")
    n_chunks = arguments.get("n_chunks")
    if n_chunks is not None and n_chunks < 1:
        raise InputError(f"{name} needs at least 1 chunk, got n_chunks={n_chunks}")
    if n_chunks is not None and n_chunks > MAX_CHUNKS:
        raise InputError(f"{name} is built for at most {MAX_CHUNKS} chunks, got n_chunks={n_chunks}")
