"""A job of the flow engine: what runs and how it shares the network, and how its times become a result.

Sizes and starts are checked before, what links carried after, in every way of computing.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.errors import InputError, PhysicsError
from commsim.core.network import Network
from commsim.core.operations import OPERATIONS
from commsim.core.placement import Placement
from commsim.core.result import Result, Trace
from commsim.core.schedule import Schedule

# Relative slack of every check against physics.
SLACK = 1e-9
# Part of a resource that may be asked for at once; what is above 1 is rounding.
FULL = 1.0 + 1e-11


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


def not_negative(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return `values` as floats; the kernels trust that none is negative or not finite.

    Raises
    ------
    InputError
        If one is.
    """
    array = np.asarray(values, np.float64)
    good = (array >= 0) & np.isfinite(array)
    if not good.all():
        raise InputError(f"{name} must be 0 or more and finite, got {array[~good][0]}")
    return array


def chunk_bytes(job: FlowJob, size: float) -> float:
    """Bytes of one chunk of a job's data.

    Raises
    ------
    InputError
        If the size is not positive and finite; 0 is legal for what carries no bytes.
    """
    operation = job.schedule.operation
    may_be_empty = operation != "custom" and OPERATIONS[operation].signals
    if not (size > 0 or (size == 0 and may_be_empty)) or not np.isfinite(size):
        raise InputError(f"size must be positive and finite, got {size}")
    return size / job.schedule.n_chunks


def put_together(
    schedule: Schedule,
    engine: str,
    size: float,
    entered: NDArray[np.float64],
    end: float,
    carried: tuple[NDArray[np.float64], float],
    counters: Mapping[str, float],
    trace: Trace | None,
) -> Result:
    """Return the result of a job.

    Parameters
    ----------
    schedule, size, carried, counters, trace
        Same as in :func:`one_job_result`.
    engine : str
        Engine that found the times.
    entered : float64[n_ranks], s
        Time at which each rank began.
    end : float, s
        Time at which the last rank was done.
    """
    took = float(end - entered.min()), float(end - entered.max())
    counters = {**counters, "transfers": float(schedule.n_transfers)}
    name, operation, n_ranks = schedule.name, schedule.operation, schedule.n_ranks
    return Result(name, operation, engine, n_ranks, size, *took, *carried, counters=counters, trace=trace)


def one_job_result(
    network: Network,
    schedule: Schedule,
    size: float,
    *,
    entered: NDArray[np.float64],
    last: float,
    begin: float = 0.0,
    carried: tuple[NDArray[np.float64], float],
    counters: Mapping[str, float],
    trace: Trace | None = None,
) -> Result:
    """Check the links, and put the result together.

    Parameters
    ----------
    network : Network
        Network that the job ran on.
    schedule, size
        What ran, and on how many bytes.
    entered : float64[n_participants], s
        Time at which each participant began.
    last, begin : float, s
        Time at which the last transfer was complete, and the time before which none used a link.
    carried : (float64[n_links], float), bytes
        What each link carried, headers included, and the sum of all messages that used one.
    counters : mapping of str to float
        Counters beside the number of transfers.
    trace : Trace, optional
        Times of every transfer.

    Raises
    ------
    PhysicsError
        If a link carried more than it can. This is a bug in commsim.
    """
    ranks = entered[: schedule.n_ranks]
    end = max(last, float(ranks.max()))
    check_links(network, carried[0], end - begin, SLACK * (end - begin))
    return put_together(schedule, "flow", size, ranks, end, carried, counters, trace)


def check_links(network: Network, carried: NDArray[np.float64], seconds: float, slack: float) -> None:
    """Raise if a link carried more bytes than it can in this time: what every way of computing ends with.

    Raises
    ------
    PhysicsError
        Naming the link.
    """
    used = np.flatnonzero(carried)  # of millions of links few are
    busy = carried[used] / network.bandwidth[used]
    if busy.max(initial=0.0) > seconds + slack:
        worst = int(busy.argmax())
        raise PhysicsError(
            f"link {network.link_name(int(used[worst]))} carried {busy[worst]} s of bytes in {seconds} s"
        )
