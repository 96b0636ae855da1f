"""Cross-mesh resharding: one piece of a tensor from a mesh that has it to all hosts of another that need it.

T = S/B is the piece once over one port. From one sender to A receivers:

- ``send_recv``: A messages that leave one port: A T.
- ``all_gather``: a part of the piece to each receiver, and an all-gather among them: T, and (A-1)/A S over what joins
  the receivers.
- ``broadcast``: a chain through all receivers, in K chunks: T (1 + (A-1)/K).

References
----------
Zhuang et al., "On optimizing the communication of model parallelism", MLSys 2023, sections 3.1 and 3.2.
"""

from __future__ import annotations

import numpy as np

from collectives.broadcast import chain_broadcast
from commsim.core.errors import InputError
from commsim.core.program import Program
from commsim.core.schedule import Schedule

MOST_RECEIVERS = 1024
STRATEGIES = ("send_recv", "all_gather", "broadcast")


def resharding_time(
    strategy: str,
    size: float,
    bandwidth: float,
    n_receivers: int,
    *,
    n_chunks: int = 64,
    local_bandwidth: float | None = None,
) -> float:
    """Evaluate the closed form, without latencies.

    Parameters
    ----------
    strategy : {"send_recv", "all_gather", "broadcast"}
        How.
    size : float, bytes
        Of the piece, S.
    bandwidth : float, bytes/s
        Of each host, each way.
    n_receivers : int
        A.
    n_chunks : int
        K.
    local_bandwidth : float, bytes/s, optional
        Between the receivers, when that is not the same network.

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


def resharding_schedule(strategy: str, n_receivers: int, n_chunks: int = 64) -> Schedule:
    """Schedule of one piece: rank 0 has it, and the others need it. Each is a broadcast, and can be checked as one.

    Parameters
    ----------
    strategy, n_receivers, n_chunks
        As in :func:`resharding_time`; chunks are of ``broadcast``.

    Raises
    ------
    InputError
        If the strategy is unknown or a number is not positive.
    """
    _require(strategy, n_receivers, n_chunks)
    if n_receivers > MOST_RECEIVERS:
        raise InputError(f"a schedule is made for at most {MOST_RECEIVERS} receivers, got {n_receivers}")
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
        raise InputError(f"unknown resharding strategy {strategy!r}; known: {', '.join(STRATEGIES)}")
    if n_receivers < 1 or n_chunks < 1:
        raise InputError(f"resharding needs at least 1 receiver and 1 chunk, got {n_receivers} and {n_chunks}")
