"""One rank of a profile: its computation, its calls with the time at which each was issued, and its process groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.spec import is_whole

MAX_RANKS = 2**20
# What gloo does in place of an operation, and calls it.
DONE_AS = {"reduce_scatter": "all_reduce"}


@dataclass(frozen=True, slots=True)
class ProcessGroup:
    """A process group, as one rank knows it.

    Parameters
    ----------
    name, description : str
        What the program and its libraries call it.
    ranks : tuple of int
        Its members; empty where the profile does not list them.
    size : int
        Number of members; 0 where it is not known.
    """

    name: str
    description: str = ""
    ranks: tuple[int, ...] = ()
    size: int = 0

    @property
    def label(self) -> str:
        """Name for tables: the description, if there is one."""
        return self.description or self.name or "world"


@dataclass(frozen=True, slots=True)
class TracedCall:
    """One exchange of a rank.

    Parameters
    ----------
    operation : str
        One of ``commsim.core.operations``.
    size : float or None, bytes
        Size as nccl-tests counts it; None where nothing says it.
    group : str
        Name of its process group.
    stream : str
        Stream or thread on which it ran; those of one stream run one after the other.
    issued, start, end : float, s
        When the program had done what the call waits for, and when it ran, on the clock of the rank.
    returned : float, s
        When the operator that issued it returned; 0 where none is recorded.
    kernel : str
        Name of its kernel, if that is no call of a library.
    peers : tuple of int
        Sender and receiver of a message.
    waited : float or None, s
        When computation began that the program made wait for it; None where no event says so.
    """

    operation: str
    size: float | None
    group: str
    stream: str
    issued: float
    start: float
    end: float
    returned: float = 0.0
    kernel: str = ""
    peers: tuple[int, ...] = ()
    waited: float | None = None


@dataclass(frozen=True, slots=True)
class TracedRank:
    """What one rank did.

    Parameters
    ----------
    source : str
        File, for messages.
    rank, world : int or None
        Rank, and number of all ranks, where the profile says.
    groups : mapping of str to ProcessGroup
        Process groups by name.
    busy : float64[n, 2], s
        Spans in which it computed, ascending, without overlap.
    calls : tuple of TracedCall
        Calls in the order in which they were issued.
    steps : tuple of float, s
        Starts of marked steps.
    updates : tuple of float, s
        Starts of the optimiser.
    on_gpu : bool
        Whether computation is that of kernels on a GPU.
    """

    source: str
    rank: int | None
    world: int | None
    groups: Mapping[str, ProcessGroup]
    busy: NDArray[np.float64]
    calls: tuple[TracedCall, ...]
    steps: tuple[float, ...] = ()
    updates: tuple[float, ...] = ()
    on_gpu: bool = False
    notes: tuple[str, ...] = field(default=(), compare=False)


def groups_of(configured: object) -> dict[str, ProcessGroup]:
    """Read process groups, of Kineto's list or the flight recorder's table; what is odd is left out."""
    rows: list[tuple[str, Any]] = []
    if isinstance(configured, list):
        rows = [(str(one.get("pg_name", "")), one) for one in configured if isinstance(one, dict)]
    elif isinstance(configured, dict):
        rows = [(str(name), one) for name, one in configured.items() if isinstance(one, dict)]
    groups = {}
    for name, one in rows:
        text = one.get("pg_desc", one.get("desc", ""))
        ranks = ranks_of(one.get("ranks"))
        size = one.get("pg_size", len(ranks))
        size = size if isinstance(size, int) and 0 < size <= MAX_RANKS else len(ranks)
        groups[name] = ProcessGroup(
            name, text if isinstance(text, str) else "", ranks if len(ranks) == size else (), size
        )
    return groups


def ranks_of(value: object) -> tuple[int, ...]:
    """Read a list of ranks, which may be written as text; empty where it is not whole: profilers cut long lists."""
    if isinstance(value, str):
        inside = value.strip().removeprefix("[").removesuffix("]")
        parts: Sequence[object] = [one.strip() for one in inside.split(",")] if len(inside) < 2**24 else []
        value = [int(part) for part in parts if isinstance(part, str) and is_whole(part)]
        if len(value) != len(parts):
            return ()
    if not isinstance(value, list) or len(value) > MAX_RANKS:
        return ()
    whole = all(type(one) is int and 0 <= one < MAX_RANKS for one in value)
    return tuple(value) if whole and len(set(value)) == len(value) else ()


def union_of(spans: NDArray[np.float64]) -> NDArray[np.float64]:
    """Unite spans that overlap or touch.

    Parameters
    ----------
    spans : float64[n, 2], s
        Spans in any order.

    Returns
    -------
    float64[m, 2], s
    """
    if not len(spans):
        return spans
    ordered = spans[np.argsort(spans[:, 0], kind="stable")]
    reach = np.maximum.accumulate(ordered[:, 1])
    opens = np.append(True, ordered[1:, 0] > reach[:-1])
    first = np.flatnonzero(opens)
    return np.column_stack((ordered[first, 0], reach[np.append(first[1:] - 1, len(ordered) - 1)]))


def require_calls(calls: Sequence[object], source: str, notes: Sequence[str]) -> None:
    """Refuse a profile without an exchange.

    Raises
    ------
    InputError
        With the last of the notes, which may say why.
    """
    if not calls:
        raise InputError(f"{source}: has no collective calls" + (f" ({notes[-1]})" if notes else ""))
