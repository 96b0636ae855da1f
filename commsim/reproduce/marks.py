"""Measure of congestion marks: how many packets of jobs that share a link are marked, with DCQCN."""

from __future__ import annotations

import numpy as np

from .measures import GBPS, LATENCY, measure

FASTER = 10  # times that iterations are shortened: a phase still lasts some hundred of DCQCN's 55 us
ITERATIONS = 3


@measure
def marks_avoided(jobs: list[list[float]], shifts: list[float], rate: float, gbps: float = 50.0) -> float:
    """Percent of ECN marks that jobs no longer get with shifts, against starting together.

    Parameters
    ----------
    jobs : list of [period, start, length]
        Of each, milliseconds; a job sends from a host of its own to another one.
    shifts : list of float
        In milliseconds.
    rate : float
        Of each host, in Gb/s.
    gbps : float
        Of the link that all jobs share.
    """
    together, apart = (marks(jobs, at, rate, gbps) for at in ([0.0] * len(jobs), shifts))
    return 100 * (1 - apart / together)


def marks(jobs: list[list[float]], shifts: list[float], rate: float, gbps: float) -> int:
    """Packets marked in a few iterations of jobs; parameters as :func:`marks_avoided`."""
    from commsim.core.network import HOST, SWITCH, Network
    from commsim.engine.fabric.fabric_run import simulate
    from commsim.engine.fabric.spraying import Messages, Spraying

    n = len(jobs)
    hosts, near, far = np.arange(2 * n), 2 * n, 2 * n + 1
    switch = np.where(hosts < n, near, far)  # senders on one side of the link, receivers on the other
    here, there = np.append(hosts, near), np.append(switch, far)
    bandwidth = np.append(np.full(2 * n, rate), gbps) * GBPS
    network = Network(
        "one link", tuple(f"n{i}" for i in range(2 * n + 2)), [HOST] * (2 * n) + [SWITCH] * 2,
        np.append(here, there), np.append(there, here), np.tile(bandwidth, 2), LATENCY,
    )  # fmt: skip
    period, start, length = (np.array([job[i] for job in jobs]) * 1e-3 / FASTER for i in range(3))
    times = start + np.array(shifts) * 1e-3 / FASTER + np.arange(ITERATIONS)[:, None] * period
    size = np.tile((length * rate * GBPS).astype(np.int64), ITERATIONS)
    src, dst = (np.tile(side, ITERATIONS).astype(np.int32) for side in (hosts[:n], hosts[n:]))
    run = simulate(network, Messages(src, dst, size, times.ravel()), Spraying("dcqcn", balancing="ecmp"))
    return run.counters["n_marked"]
