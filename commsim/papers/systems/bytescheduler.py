"""ByteScheduler's tuner: the partition and the credit with which an iteration is fastest, with servers or all-reduce.

References
----------
Peng et al., "A generic communication scheduler for distributed DNN training acceleration", SOSP 2019, sections 4 and 5.
The paper searches by Bayesian optimisation because it must measure each trial; here all powers of two are tried.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from commsim.core.cost import LogGP
from commsim.core.errors import InputError
from commsim.core.units import Bandwidth, Seconds
from commsim.training.backward_trace import FORWARD_SHARE, BackwardTrace
from commsim.training.tensor_queue import BYTE_SCHEDULER, WAIT_FREE, Discipline, run_iteration

from . import Answer, training_system

PARTITIONS = tuple(2.0**i for i in range(16, 28))  # 64 KiB to 128 MiB
CREDITS = (1, 2, 4, 8, 16)  # partitions under way
# VGG16's blocks of convolutions and its three dense layers, in float32; times are in proportion to multiplications.
VGG16_MB = (0.155, 0.886, 5.9, 23.6, 28.3, 411.0, 67.1, 16.4)
VGG16_MS = (27.0, 39.0, 65.0, 65.0, 19.4, 1.4, 0.24, 0.06)


@training_system("Peng et al., SOSP 2019")
def bytescheduler(
    *,
    weights_mb: tuple[float, ...] = VGG16_MB,
    backward_ms: tuple[float, ...] = VGG16_MS,
    n_workers: int = 8,
    n_servers: int = 0,
    bandwidth: Bandwidth = 1.25e9,
    overhead: Seconds = 300e-6,
    alpha: Seconds = 10e-6,
) -> Answer:
    """ByteScheduler: partition and credit tuned for a model, with parameter servers or a ring all-reduce.

    Parameters
    ----------
    weights_mb, backward_ms : tuple of float
        Megabytes (1e6) and milliseconds of the backward pass of each layer, the front one first; VGG16 by default. The
        forward pass takes half as long.
    n_workers, n_servers : int
        Workers, and servers on hosts of their own among which partitions are divided evenly; 0 is a ring all-reduce.
    bandwidth : float, bytes/s
        Bandwidth of a worker and of a server, one way.
    overhead, alpha : float, s
        Overhead of a partition, and time of each step of the ring, in which nothing else is sent; a message to or from
        a server takes alpha longer beside others.

    Returns
    -------
    dict
        Seconds of an iteration with whole tensors in the order of the backward pass, with the defaults of the code, and
        tuned; the partition and credit found; and the best credit of every partition.

    Raises
    ------
    InputError
        If lists differ in length, a count or a rate is out of range.
    """
    if len(weights_mb) != len(backward_ms):
        raise InputError(
            f"weights_mb and backward_ms must be of the same layers, got {len(weights_mb)} and {len(backward_ms)}"
        )
    if n_workers < 2 or n_servers < 0 or not (bandwidth > 0 and overhead >= 0 and alpha >= 0):
        raise InputError(
            f"workers must be at least 2, servers 0 or more and costs not negative, got {n_workers}, {n_servers}, "
            f"{bandwidth}, {overhead} and {alpha}"
        )
    backward = np.array(backward_ms[::-1]) * 1e-3
    trace = BackwardTrace(np.array(weights_mb[::-1]) * 1e6, np.cumsum(backward), FORWARD_SHARE * backward)

    def seconds(discipline: Discipline) -> float:
        message = min(discipline.partition, float(trace.n_bytes.max()))
        link = connection(message, n_workers, n_servers, bandwidth, overhead, alpha)
        return run_iteration(trace, link, discipline).time

    tried = []
    for partition in PARTITIONS:
        rules = [replace(BYTE_SCHEDULER, partition=partition, credit=credit * partition) for credit in CREDITS]
        times = [seconds(rule) for rule in rules]
        best = int(np.argmin(times))
        tried.append({"partition_B": partition, "credit_B": rules[best].credit, "iteration_s": times[best]})
    tuned = min(tried, key=lambda row: row["iteration_s"])
    whole = seconds(WAIT_FREE)
    return {
        "whole_tensors_s": whole,
        "default_s": seconds(BYTE_SCHEDULER),
        "tuned_s": tuned["iteration_s"],
        "speed_up": whole / tuned["iteration_s"],
        "partition_B": tuned["partition_B"],
        "credit_B": tuned["credit_B"],
        "tried": tried,
    }


def connection(
    message: float, n_workers: int, n_servers: int, bandwidth: float, overhead: float, alpha: float
) -> LogGP:
    """Return the cost of a message: 2(p-1) steps of a ring, or a push and then a pull beside the next message's push.

    Servers carry all workers' messages, so that a worker gets at most servers / workers of their rate.

    Parameters
    ----------
    message : float, bytes
        The largest one, whose pull follows its push.
    """
    if n_servers == 0:
        steps = 2 * (n_workers - 1)
        return LogGP(o=overhead + steps * alpha, B=bandwidth * n_workers / steps)
    rate = bandwidth * min(1.0, n_servers / n_workers)
    return LogGP(L=2 * alpha + message / rate, o=overhead, B=rate)
