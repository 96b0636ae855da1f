"""A job that computes and communicates in turn, as training does; the computing is sleep, and takes no core."""

from __future__ import annotations

import time

import numpy as np

from commsim.backends.execute import Execution
from commsim.backends.measure import measured, usable_elements
from commsim.backends.pattern import fill
from commsim.backends.transport import Transport
from commsim.core.result import Result
from commsim.core.schedule import Schedule


def measure_training(
    transport: Transport,
    schedule: Schedule,
    size: float,
    begin: float,
    compute: float,
    period: float,
    iterations: int,
) -> Result:
    """Sleep, then execute the schedule, again and again; every rank calls this.

    Parameters
    ----------
    transport : Transport
        With as many ranks as the schedule has participants.
    schedule : Schedule
        What is executed.
    size : float, bytes
        As nccl-tests counts it.
    begin : float, s
        When the first computing starts, on the clock that all processes of this machine share.
    compute, period : float, s
        Before each execution, and from one beginning to the next; an iteration that takes longer delays the next.
    iterations : int
        How often.

    Returns
    -------
    Result
        Its samples are the times of the slowest rank, from the end of its computing to the end of its communication.
    """
    n_elements = usable_elements(schedule, size)
    execution = Execution(transport, schedule, n_elements)
    values = fill(transport.rank, 0, n_elements, "float32")
    execution.load(values)
    samples = np.empty(iterations)
    for i in range(iterations):
        execution.load(values)
        time.sleep(max(0.0, begin + i * period + compute - time.monotonic()))
        transport.barrier()
        began = time.perf_counter()
        execution.run()
        samples[i] = time.perf_counter() - began
    samples = transport.max_over_ranks(samples)
    n_bytes = values.nbytes
    return measured(transport, schedule.name, schedule.operation, n_bytes, samples, {}, schedule.n_ranks)
