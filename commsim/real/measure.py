"""Measure collectives as nccl-tests and OSU do: warm-up, then each iteration from a barrier to the last rank's end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.operations import OPERATIONS
from commsim.core.result import Result
from commsim.core.schedule import Schedule

from .exact_numbers import expected, fill
from .execute import Execution
from .transport import Array, RankTransport

WARMUP, ITERATIONS = 5, 20


def usable_elements(schedule: Schedule, n_bytes: float, dtype: str = "float32") -> int:
    """Elements that `n_bytes` holds, rounded down so that blocks are equal where the operation wants that.

    As in nccl-tests, the size that is really run may so be a little smaller than the one asked for. There is at least
    one element, or one for each chunk.

    Parameters
    ----------
    schedule : Schedule
        What is run.
    n_bytes : float, bytes
        Asked for.
    dtype : str
        Type of an element.
    """
    n_elements = int(n_bytes // np.dtype(dtype).itemsize)
    whole = 1
    if schedule.n_scratch or not schedule.in_place:
        whole = schedule.n_chunks
    elif schedule.operation != "custom":
        whole = OPERATIONS[schedule.operation].least_chunks(schedule.n_ranks, schedule.layout)
    return max(1, n_elements // whole) * whole


def timed(
    transport: RankTransport, run: Callable[[], None], reset: Callable[[], None], warmup: int, iterations: int
) -> NDArray[np.float64]:
    """Time `run`, which all ranks call together.

    Parameters
    ----------
    transport : RankTransport
        Transport for the barrier before each iteration.
    run, reset : callable
        What is timed, and what restores the input before that, outside the clock.
    warmup, iterations : int
        Iterations that are not timed, and those that are.

    Returns
    -------
    float64[iterations], s
        Time of the slowest rank in each iteration, the same on every rank.
    """
    samples = np.empty(iterations)
    for i in range(-warmup, iterations):
        reset()
        transport.synchronize()
        transport.barrier()
        began = time.perf_counter()
        run()
        transport.synchronize()
        if i >= 0:
            samples[i] = time.perf_counter() - began
    return transport.max_over_ranks(samples)


def measure_schedule(
    transport: RankTransport,
    schedule: Schedule,
    n_bytes: float,
    *,
    dtype: str = "float32",
    warmup: int = WARMUP,
    iterations: int = ITERATIONS,
) -> Result:
    """Execute a schedule again and again, and check the last result exactly on whole numbers.

    Parameters
    ----------
    transport : RankTransport
        All of its ranks call this; those behind the schedule's ranks are its helpers.
    schedule : Schedule
        What is run.
    n_bytes : float, bytes
        Size as nccl-tests counts it; see :func:`usable_elements`.
    dtype : str
        Type of an element.
    warmup, iterations : int
        Same as in :func:`timed`.

    Returns
    -------
    Result
        Its time is the median; the counter ``wrong`` is the most elements that any rank has wrong.
    """
    n_elements = usable_elements(schedule, n_bytes, dtype)
    execution = Execution(transport, schedule, n_elements, dtype)
    values = fill(transport.rank, 0, n_elements, dtype)
    samples = timed(transport, execution.run, lambda: execution.load(values), warmup, iterations)
    counters = {}
    if schedule.operation != "custom" and transport.rank >= schedule.n_ranks:
        counters["wrong"] = most_wrong(transport, values[:0], values[:0])  # nothing is promised to a helper
    elif schedule.operation != "custom":
        part, promised = expected(
            schedule.operation,
            schedule.n_ranks,
            transport.rank,
            schedule.root,
            n_elements,
            dtype,
            schedule.layout,
        )
        counters["wrong"] = most_wrong(transport, execution.result()[part], promised)
    execution.release()
    n_bytes = n_elements * np.dtype(dtype).itemsize
    return measured(transport, schedule.name, schedule.operation, n_bytes, samples, counters, schedule.n_ranks)


def measure_native(
    transport: RankTransport,
    operation: str,
    n_elements: int,
    *,
    root: int = 0,
    dtype: str = "float32",
    warmup: int = WARMUP,
    iterations: int = ITERATIONS,
) -> Result:
    """Run the library's own collective as :func:`measure_schedule` runs ours.

    Parameters
    ----------
    transport, dtype, warmup, iterations
        Same as in :func:`measure_schedule`.
    operation : str
        A name of ``OPERATIONS``.
    n_elements, root : int
        Elements of the whole array, and the root of a rooted operation.

    Raises
    ------
    BackendError
        If the library has no such collective.
    """
    values = fill(transport.rank, 0, n_elements, dtype)
    part, promised = expected(operation, transport.size, transport.rank, root, n_elements, dtype)
    native = transport.native(operation, n_elements, root, dtype, values)
    # Repeating an in-place sum on its own result grows it beyond any type, so the input is put back where it was.
    samples = timed(transport, native.run, native.reset, warmup, iterations)
    got = transport.values(native.result)
    wrong = most_wrong(transport, got[part] if len(got) == n_elements else got[: len(promised)], promised)
    n_bytes = n_elements * np.dtype(dtype).itemsize
    return measured(transport, "native", operation, n_bytes, samples, {"wrong": wrong}, transport.size)


def most_wrong(transport: RankTransport, got: Array, promised: NDArray[Any]) -> float:
    """Return the most elements that any rank has wrong; every rank calls this."""
    wrong = float(np.count_nonzero(np.asarray(got) != promised))
    return float(transport.max_over_ranks(np.array([wrong]))[0])


def measured(
    transport: RankTransport,
    name: str,
    operation: str,
    n_bytes: float,
    samples: NDArray[np.float64],
    counters: Any,
    n_ranks: int,
) -> Result:
    """Return what was measured; its time is the median of the samples.

    Parameters
    ----------
    transport : RankTransport
        Gives the engine its name.
    name, operation : str
        Name and operation of the collective.
    n_bytes : float, bytes
        Size of the operation.
    samples : float64[n], s
        Times.
    counters : mapping of str to float
        What else was counted.
    n_ranks : int
        Ranks.
    """
    middle = float(np.median(samples))
    return Result(
        name, operation, transport.name, n_ranks, float(n_bytes), middle, middle,
        samples=samples, counters=counters,
    )  # fmt: skip
