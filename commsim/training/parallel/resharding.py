"""Cross-mesh resharding: pieces of a tensor from the hosts of one mesh to those of another.

T = S/B is the piece once over one port. From one sender to A receivers:

- ``send_recv``: A messages that leave one port: A T.
- ``all_gather``: a part of the piece to each receiver, and an all-gather among them: T, and (A-1)/A S over what joins
  the receivers.
- ``broadcast``: a chain through all receivers, in K chunks: T (1 + (A-1)/K).

References
----------
Zhuang et al., "On optimizing the communication of model parallelism", MLSys 2023, sections 3.1 and 3.2.

Order of pieces in cross-mesh resharding: senders are balanced, then the order is searched.

A host takes part in one piece of work at a time: work starts when its sender and all its receivers are free.

References
----------
Zhuang et al., "On optimizing the communication of model parallelism", MLSys 2023, section 3.2.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from collectives.dense.broadcast import chain_broadcast
from commsim.core.errors import InputError, unknown_name
from commsim.core.network import Network
from commsim.core.placement import PACKED, Placement
from commsim.core.program import Program
from commsim.core.result import Result
from commsim.core.schedule import Schedule
from commsim.prediction.read import scenario_of
from commsim.prediction.solve import solve

MAX_RECEIVERS = 1024
CHUNKS = 64  # of a broadcast, by default
STRATEGIES = ("send_recv", "all_gather", "broadcast")


def resharding_time(
    strategy: str,
    size: float,
    bandwidth: float,
    n_receivers: int,
    *,
    n_chunks: int = CHUNKS,
    local_bandwidth: float | None = None,
) -> float:
    """Evaluate the closed form, without latencies.

    Parameters
    ----------
    strategy : {"send_recv", "all_gather", "broadcast"}
        How.
    size : float, bytes
        Size of the piece, S.
    bandwidth : float, bytes/s
        Bandwidth of each host, one way.
    n_receivers : int
        A.
    n_chunks : int
        K.
    local_bandwidth : float, bytes/s, optional
        Bandwidth between the receivers, when that is not the same network.

    Raises
    ------
    InputError
        If the strategy is unknown or a number is not positive.
    """
    _require(strategy, n_receivers, n_chunks)
    if not (size > 0 and bandwidth > 0 and (local_bandwidth or bandwidth) > 0):
        raise InputError(f"size and bandwidths must be positive, got {size}, {bandwidth} and {local_bandwidth}")
    once = size / bandwidth
    if strategy == "send_recv":
        return n_receivers * once
    if strategy == "all_gather":
        return once + (n_receivers - 1) / n_receivers * size / (local_bandwidth or bandwidth)
    return once * (1 + (n_receivers - 1) / n_chunks)


def resharding_schedule(strategy: str, n_receivers: int, n_chunks: int = CHUNKS) -> Schedule:
    """Schedule of one piece: rank 0 has it, and the others need it. Each is a broadcast, and can be checked as one.

    Parameters
    ----------
    strategy, n_receivers, n_chunks
        Same as in :func:`resharding_time`; chunks are of ``broadcast``.

    Raises
    ------
    InputError
        If the strategy is unknown or a number is not positive.
    """
    _require(strategy, n_receivers, n_chunks)
    if n_receivers > MAX_RECEIVERS:
        raise InputError(f"a schedule is made for at most {MAX_RECEIVERS} receivers, got {n_receivers}")
    if strategy == "broadcast":
        return chain_broadcast(n_receivers + 1, n_chunks)
    receiver = np.arange(n_receivers)
    p = Program(n_receivers + 1, n_chunks=1 if strategy == "send_recv" else n_receivers)
    if strategy == "send_recv":
        p.copy(0, src=0, dst=1 + receiver)
    else:
        p.copy(receiver, src=0, dst=1 + receiver)
        p.fence()
        for hop in range(n_receivers - 1):
            p.copy((receiver - hop) % n_receivers, src=1 + receiver, dst=1 + (receiver + 1) % n_receivers)
    return p.build(f"resharding_{strategy}", "broadcast")


def _require(strategy: str, n_receivers: int, n_chunks: int) -> None:
    if strategy not in STRATEGIES:
        raise unknown_name("resharding strategy", strategy, STRATEGIES)
    if n_receivers < 1 or n_chunks < 1:
        raise InputError(f"resharding needs at least 1 receiver and 1 chunk, got {n_receivers} and {n_chunks}")


def resharding_result(
    strategy: str, size: float, network: str | Network, n_receivers: int, *, n_chunks: int = CHUNKS,
    placement: str | Placement = PACKED, overhead: float | str | None = None, hashes: int | None = None,
) -> Result:  # fmt: skip
    """Simulate a piece on a network; the sender is the first that is placed.

    Parameters
    ----------
    strategy, size, n_receivers, n_chunks
        Same as in :func:`resharding_time`.
    network, placement, overhead, hashes
        Same as in :func:`commsim.prediction.read.scenario_of`.
    """
    schedule = resharding_schedule(strategy, n_receivers, n_chunks)
    scenario = scenario_of(schedule, network, placement=placement, overhead=overhead, hashes=hashes)
    return solve(scenario, [size]).results[0]


@dataclass(frozen=True, slots=True)
class ReshardingPiece:
    """One piece of the tensor, from any of its senders to all its receivers.

    Parameters
    ----------
    senders : tuple of int
        Hosts that have it; the first one sends it.
    receivers : tuple of int
        Hosts that need it.
    duration : float, s
        Time that it takes.
    """

    senders: tuple[int, ...]
    receivers: tuple[int, ...]
    duration: float

    def __post_init__(self) -> None:
        if not self.senders or not self.receivers or not 0 <= self.duration < float("inf"):
            raise InputError(f"work needs a sender, a receiver and a duration of 0 or more, got {self}")

    @property
    def hosts(self) -> frozenset[int]:
        """Hosts that it occupies."""
        return frozenset((self.senders[0], *self.receivers))


def finish_time(works: Sequence[ReshardingPiece]) -> float:
    """Seconds until all is done in this order: start(work) = max(ready of its sender and its receivers)."""
    free_at: dict[int, float] = defaultdict(float)
    for work in works:
        end = max(free_at[host] for host in work.hosts) + work.duration
        free_at.update(dict.fromkeys(work.hosts, end))
    return max(free_at.values(), default=0.0)


def least_time(works: Sequence[ReshardingPiece]) -> float:
    """Lower bound of any order: the work of the busiest host."""
    load: dict[int, float] = defaultdict(float)
    for work in works:
        for host in work.hosts:
            load[host] += work.duration
    return max(load.values(), default=0.0)


def balance_senders(works: Sequence[ReshardingPiece]) -> list[ReshardingPiece]:
    """Choose each work's sender: the longest work first, from the host that has least to do so far."""
    load: dict[int, float] = defaultdict(float)
    chosen = list(works)
    for i in sorted(range(len(works)), key=lambda i: (-works[i].duration, i)):
        sender = min(works[i].senders, key=lambda host: (load[host], host))
        chosen[i] = replace(works[i], senders=(sender, *(s for s in works[i].senders if s != sender)))
        for host in chosen[i].hosts:
            load[host] += works[i].duration
    return chosen


def greedy_order(works: Sequence[ReshardingPiece], *, n_rounds: int = 100, seed: int = 0) -> list[ReshardingPiece]:
    """Order works by rounds of as many as can run at once, the best of some random tries.

    Parameters
    ----------
    works : sequence of ReshardingPiece
        Works whose senders are chosen.
    n_rounds : int
        Tries. The first goes by length, the longest first; the others shuffle what they try next.
    seed : int
        Seed of the shuffles.

    Returns
    -------
    list of ReshardingPiece
        Never later than `works` as given.

    Raises
    ------
    InputError
        Without a try.
    """
    if n_rounds < 1:
        raise InputError(f"rounds must be at least 1, got {n_rounds}")
    generator = np.random.default_rng(seed)
    best, bound = list(works), least_time(works)
    for i in range(n_rounds):
        if finish_time(best) <= bound:
            break
        longest = sorted(works, key=lambda work: -work.duration)
        tried = longest if i == 0 else [works[j] for j in generator.permutation(len(works))]
        order = _in_rounds(tried)
        if finish_time(order) < finish_time(best):
            best = order
    return best


def _in_rounds(left: list[ReshardingPiece]) -> list[ReshardingPiece]:
    """Take from the list, again and again, what shares no host with what was taken in the same round."""
    order: list[ReshardingPiece] = []
    while left:
        busy: set[int] = set()
        later: list[ReshardingPiece] = []
        for work in left:
            if busy.isdisjoint(work.hosts):
                busy |= work.hosts
                order.append(work)
            else:
                later.append(work)
        left = later
    return order
