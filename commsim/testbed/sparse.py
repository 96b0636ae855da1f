"""Sparse collectives in a testbed: drawn gradients, exactly those that the prediction has counted."""

from __future__ import annotations

import numpy as np

from collectives import COLLECTIVES
from commsim.backends.measure import measured, most_wrong, timed
from commsim.backends.mpi import MPITransport
from commsim.backends.sparse_execute import SparseExecution
from commsim.backends.transport import Transport
from commsim.core.errors import BackendError
from commsim.core.result import Result
from commsim.core.schedule import Schedule


def measure_sparse(
    transport: Transport, schedule: Schedule, path: str, block: int, *, warmup: int, iterations: int
) -> Result:
    """Reduce the gradients of a file again and again, and check the last sum; every rank calls this.

    Parameters
    ----------
    transport : Transport
        Over MPI, whose messages may be of unknown size.
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
    form, rank = COLLECTIVES[schedule.name].facts["sparse"], transport.rank
    execution = SparseExecution(transport, schedule, form, gradients.shape[1], str(gradients.dtype), block=block)
    own = gradients[min(rank, schedule.n_ranks - 1)]
    samples = timed(transport, execution.run, lambda: execution.load(own), warmup, iterations)
    taking_part = rank < schedule.n_ranks
    got, wanted = (execution.result().to_dense(), gradients.sum(axis=0)) if taking_part else (own[:0], own[:0])
    counters = {"wrong": most_wrong(transport, got, wanted)}
    n_bytes = gradients[0].nbytes
    return measured(transport, schedule.name, "all_reduce", n_bytes, samples, counters, schedule.n_ranks)
