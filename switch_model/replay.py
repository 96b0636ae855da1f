"""The value pass of the packet engine: sum what the log of the timing pass says, and nothing else.

The timing pass knows no values. It writes a log, in the order of time, of what happened to registers. Here the log is
carried out on whole blocks, and each received result is compared with a sum that is made without the log. So a run is
exact because its operations were, not because it is said to be.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from switch_model.bfloat16 import BFLOAT16_ROUNDING
from switch_model.payload import Payload
from switch_model.slot_sequence import LOG_ROW, REASONS
from switch_model.system import System

# A worker: where its values are, where its job's bounds of chunks start in a table of all and how many chunks there
# are, the workers of its job, and where its receipts start in a table of all.
_FIELDS = ("base", "offset", "span", "bounds", "n_chunks", "first", "end", "receipts")
WORKER_ROW = np.dtype([(name, np.int64) for name in _FIELDS])
NEVER = -1  # in the table of receipts, which else says how many elements of a received chunk were wrong


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """What came of the values.

    Parameters
    ----------
    exact : bool
        Whether every worker received every chunk of its job, and what it received last is the exact sum.
    wrong_elements : int
        Elements of received results that differ from the exact sum, over all workers.
    missing_elements : int
        Elements of results that a worker never received.
    wrong_of_worker, missing_of_worker : int64[n_workers]
        The same for each worker, so that jobs can be distinguished.
    elements_added : int
        Elements that contributions put into registers or added to them.
    messages_held : int
        Messages that were kept at once, at most.
    cpu_s : float, s
        Processor time.
    """

    exact: bool
    wrong_elements: int
    missing_elements: int
    wrong_of_worker: NDArray[np.int64]
    missing_of_worker: NDArray[np.int64]
    elements_added: int
    messages_held: int
    cpu_s: float


def replay(log: NDArray[Any], payload: Payload, system: System, n_registers: int, n_messages: int) -> Replay:
    """Carry out a log on values.

    Integers must be equal to the exact sum: modulo 2**32 where registers wrap, else really. Floats that hold small
    integers must be equal too; others lie within (P-1) eps sum|x|, and for bfloat16 within one more rounding of 2**-8
    for each message on the way.

    Parameters
    ----------
    log : LOG_ROW[n]
        What happened, in order.
    payload : Payload
        Tensors.
    system : System
        Elements of a packet, and the arithmetic of the registers.
    n_registers, n_messages : int
        Counts of the whole run.

    Raises
    ------
    InputError
        If a row makes no sense, such as reading a message before it is made; the message names it.
    """
    from switch_model.replay_kernel import COMPARED, Memory, Tensors, replay_log, scan_log

    if log.dtype != LOG_ROW:
        raise InputError(f"a log has rows of LOG_ROW, got {log.dtype}")
    workers, bounds = _tables(payload, system.elements)
    readers = np.zeros(n_messages, np.int32)
    row, reason, held, depth = scan_log(log, workers, n_registers, n_messages, readers)
    if reason:
        raise InputError(f"row {row} of the log, {log[row]}, {REASONS[reason]}")
    half = system.arithmetic == "float" and system.element_bytes == 2
    slack = 0.0 if payload.integral else _slack(workers, depth * half)
    sums = {"wrap": np.int32, "saturate": np.int64, "float": np.float64}[system.arithmetic]
    dtype, k, held = payload.values.dtype, system.elements, max(1, int(held))
    registers = np.zeros((n_registers, k), dtype)  # pages that no operation touches are never mapped
    buffers = np.zeros((held, k), dtype)
    receipts: NDArray[Any] = np.full(int(workers["n_chunks"].sum()), NEVER, np.int16 if k < 2**15 else np.int32)
    tensors = Tensors(payload.values, workers, bounds, system.arithmetic == "saturate", half, slack)
    memory = Memory(registers, buffers, buffers.view(np.uint32), np.full(n_messages, -1, np.int32), readers,
                    np.zeros(held, COMPARED), np.zeros(k, sums), np.zeros(payload.n_workers, np.int64), receipts,
                    np.arange(held))  # fmt: skip
    replay_log(log[:0], tensors, memory)  # compiles, if that is still to be done, before the clock starts
    began = time.process_time()
    with np.errstate(over="ignore"):  # uncompiled, NumPy would warn of integers that wrap around
        added = replay_log(log, tensors, memory)
    elapsed = time.process_time() - began
    wrong, missing = _account(workers, bounds, receipts)
    n_wrong, n_missing = int(wrong.sum()), int(missing.sum())
    return Replay(not n_wrong and not n_missing, n_wrong, n_missing, wrong, missing, added, held, elapsed)


def _tables(payload: Payload, elements: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Rows of the workers, and the bounds of the chunks of all jobs one after the other."""
    rows, per_job = np.zeros(payload.n_workers, WORKER_ROW), np.diff(payload.first_worker)
    rows["base"], rows["offset"], rows["span"] = payload.base, payload.offset, payload.span
    bounds = [payload.bounds(job, elements) for job in range(len(per_job))]
    lengths = np.array([len(b) for b in bounds])
    rows["bounds"] = np.repeat(np.cumsum(lengths) - lengths, per_job)
    rows["n_chunks"] = np.repeat(lengths - 1, per_job)
    rows["first"] = np.repeat(payload.first_worker[:-1], per_job)
    rows["end"] = np.repeat(payload.first_worker[1:], per_job)
    rows["receipts"] = np.cumsum(rows["n_chunks"]) - rows["n_chunks"]
    return rows, np.concatenate(bounds)


def _slack(workers: NDArray[Any], roundings: int) -> float:
    most = int((workers["end"] - workers["first"]).max())
    of_sums = (most - 1) * float(np.finfo(np.float32).eps)
    return of_sums + ((1 + BFLOAT16_ROUNDING) ** roundings - 1) * (1 + of_sums)


def _account(
    workers: NDArray[Any], bounds: NDArray[np.int64], receipts: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Elements that are wrong and that are missing, of each worker."""
    wrong, missing = np.zeros(len(workers), np.int64), np.zeros(len(workers), np.int64)
    for w, row in enumerate(workers):
        received = receipts[row["receipts"] :][: row["n_chunks"]]
        lengths = np.diff(bounds[row["bounds"] :][: row["n_chunks"] + 1])
        wrong[w] = received[received > 0].sum(dtype=np.int64)
        missing[w] = lengths[received == NEVER].sum()
    return wrong, missing
