"""The program that every rank of a testbed runs: it measures what the launching process asks for, one cell at a time.

Rank 0 reads a line with a cell from its input, tells the others, and prints a line before and after, so that the
launching process can look at the network's counters while nothing is under way.

A job that computes and communicates in turn, as training does; the computing is sleep, and takes no core.

Sparse collectives in a testbed: drawn gradients, exactly those that the prediction has counted.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from collectives import COLLECTIVES
from commsim.backends.connect import session
from commsim.backends.execute import Execution
from commsim.backends.measure import (
    fill,
    measure_native,
    measure_schedule,
    measured,
    most_wrong,
    timed,
    usable_elements,
)
from commsim.backends.mpi import MPITransport
from commsim.backends.sparse_execute import SparseExecution
from commsim.backends.transport import Transport
from commsim.core.errors import BackendError
from commsim.core.result import Result
from commsim.core.schedule import Schedule
from commsim.files.store import read_schedule


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


# Begins the lines that are meant for the launching process: launchers and libraries print others.
ANSWER = "commsim: "
LONGEST_CELL = 1024


def main(backend: str) -> None:
    """Measure until rank 0's input ends."""
    with session(backend) as transport:
        schedules: dict[str, Schedule] = {}
        _say(transport, {"ready": transport.size})
        for cell in _cells(transport):
            _say(transport, _measured(transport, cell, schedules))


def _measured(transport: Transport, cell: dict[str, Any], schedules: dict[str, Schedule]) -> dict[str, Any]:
    """Prepare, wait for the word to go, and measure."""
    options: dict[str, Any] = {"warmup": cell["warmup"], "iterations": cell["iterations"]}
    path = cell.get("schedule", "")
    if path and path not in schedules:
        schedules[path] = read_schedule(path)
    _say(transport, {"prepared": True})
    if transport.rank == 0:
        sys.stdin.readline()
    transport.barrier()
    if "gradients" in cell:
        result = measure_sparse(transport, schedules[path], cell["gradients"], cell["block"], **options)
    elif "begin" in cell:
        result = measure_training(
            transport, schedules[path], cell["size"], cell["begin"], cell["compute"], cell["period"], cell["iterations"]
        )
    elif path:
        result = measure_schedule(transport, schedules[path], cell["size"], **options)
    else:
        result = measure_native(transport, cell["operation"], cell["size"] // 4, root=cell.get("root", 0), **options)
    return {"samples": result.samples.tolist(), "size": result.size, "wrong": result.counters.get("wrong", 0.0)}


def _cells(transport: Transport) -> Iterator[dict[str, Any]]:
    """Give every rank the cells that rank 0 reads."""
    while True:
        text = sys.stdin.readline() if transport.rank == 0 else ""
        line = np.zeros(LONGEST_CELL)
        told = np.frombuffer(text.encode(), np.uint8)
        if len(told) > LONGEST_CELL:
            raise BackendError(f"a cell takes at most {LONGEST_CELL} bytes, got {len(told)}")
        line[: len(told)] = told
        heard = transport.max_over_ranks(line).astype(np.uint8).tobytes().rstrip(b"\0").decode()
        if not heard.strip():
            return
        yield json.loads(heard)


def _say(transport: Transport, what: dict[str, Any]) -> None:
    if transport.rank == 0:
        print(ANSWER + json.dumps(what), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
