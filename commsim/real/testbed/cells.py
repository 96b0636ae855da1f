"""Cells that the ranks of a testbed measure themselves: sparse collectives, and jobs that compute in turn.

Sparse collectives reduce drawn gradients, exactly those that the prediction has counted. A job computes and
communicates in turn, as training does; the computing is sleep, and takes no core.
"""

from __future__ import annotations

import time

import numpy as np

from collectives import COLLECTIVES
from commsim.core.errors import BackendError
from commsim.core.result import Result
from commsim.core.schedule import Schedule
from commsim.real.exact_numbers import fill
from commsim.real.execute import Execution
from commsim.real.measure import measured, most_wrong, timed, usable_elements
from commsim.real.mpi import MPITransport
from commsim.real.sparse_execute import SparseExecution
from commsim.real.transport import RankTransport


def measure_sparse(
    transport: RankTransport, schedule: Schedule, path: str, block: int, *, warmup: int, iterations: int
) -> Result:
    """Reduce the gradients of a file again and again, and check the last sum; every rank calls this.

    Parameters
    ----------
    transport : RankTransport
        Transport over MPI, whose messages may be of unknown size.
    schedule : Schedule
        A lossless sparse collective of the registry.
    path : str
        File of float[n_ranks, n_elements], whole numbers, so that sums are exact.
    block : int
        Elements of a block.
    warmup, iterations : int
        Runs that are not timed, and those that are.

    Raises
    ------
    BackendError
        If the transport is not MPI.
    """
    if not isinstance(transport, MPITransport):
        raise BackendError(f"sparse collectives run over mpi, got {transport.name}")
    gradients = np.load(path, allow_pickle=False)
    form, rank = COLLECTIVES[schedule.name].metadata["sparse"], transport.rank
    execution = SparseExecution(transport, schedule, form, gradients.shape[1], str(gradients.dtype), block=block)
    own = gradients[min(rank, schedule.n_ranks - 1)]
    samples = timed(transport, execution.run, lambda: execution.load(own), warmup, iterations)
    taking_part = rank < schedule.n_ranks
    got, wanted = (execution.result().to_dense(), gradients.sum(axis=0)) if taking_part else (own[:0], own[:0])
    counters = {"wrong": most_wrong(transport, got, wanted)}
    n_bytes = gradients[0].nbytes
    return measured(transport, schedule.name, "all_reduce", n_bytes, samples, counters, schedule.n_ranks)


def measure_training(
    transport: RankTransport,
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
    transport : RankTransport
        Transport with as many ranks as the schedule has participants.
    schedule : Schedule
        What is executed.
    size : float, bytes
        Size as nccl-tests counts it.
    begin : float, s
        Time at which the first computing starts, on the clock that all processes of this machine share.
    compute, period : float, s
        Time before each execution, and from one beginning to the next; an iteration that takes longer delays the next.
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
