"""A job of the flow engine: one schedule, where it runs, and how it shares the network with others."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from commsim.core.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from commsim.core.network import Network
    from commsim.core.placement import Placement
    from commsim.core.schedule import Schedule


@dataclass(frozen=True, slots=True, eq=False)
class FlowJob:
    """One schedule, where it runs, and how it shares the network with others.

    Parameters
    ----------
    schedule : Schedule
        What is sent.
    placement : Placement
        Node of each participant.
    weight : float
        Share of a full link relative to other jobs' messages.
    priority : int
        0 goes first: a class gets what the classes before it leave over.
    rate_cap : float, bytes/s
        Most that one message may get.
    messages : callable, optional
        Function from the size to the payload of each transfer, float64[n_transfers]; equal chunks by default.
    network : Network, optional
        Network as the job's messages see it, beside others that see another one: latencies, overheads of 0 or the
        network's, and rates of links that it reaches. Default: the network that the jobs share.
    number : int, optional
        Number that ECMP hashes beside each channel, so that jobs take paths of their own. Default: the job's position.

    Attributes
    ----------
    is_regular : bool
        Whether only the routing decides what a message gets: no route is pinned, and no channel gets more.
    """

    schedule: Schedule
    placement: Placement
    weight: float = 1.0
    priority: int = 0
    rate_cap: float = float("inf")
    messages: Callable[[float], NDArray[np.float64]] | None = None
    network: Network | None = None
    number: int | None = None

    is_regular: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_regular", self.placement.routes is None and self.schedule.shares_equally)
        if not 0 < self.weight < float("inf") or not self.rate_cap > 0:
            raise InputError(f"a job needs weight > 0 and rate_cap > 0, got {self.weight} and {self.rate_cap}")


def number_of(name: str) -> int:
    """Return the number of a job with this name: the same wherever the job stands among others."""
    return zlib.crc32(name.encode())
