"""Carry out a log of operations on registers, block by block."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel, njit_norefcount
from switch_model.arithmetic_kernel import Numbers, Sums, add, add_blocks, add_saturating, overwrite, round_to_bfloat16
from switch_model.slot_kernel import ADD, OVERWRITE, READ, Rows
from switch_model.slot_sequence import ACTION, CHUNK, RECEIVE, REGISTER, REMADE, SOURCE, UNMADE

TAKE = OVERWRITE | ADD

# The chunk's place in `bounds` that a buffer was last compared with, or -1, and how many elements differed.
COMPARED = np.dtype([("chunk", np.int64), ("n_wrong", np.int64)])


@kernel
def scan_log(
    log: Rows, workers: Rows, n_registers: int, n_messages: int, readers: NDArray[np.int32]
) -> tuple[int, int, int, int]:
    """Check every row, and count the readers of each message.

    Parameters
    ----------
    log : LOG_ROW[n]
        What happened.
    workers : WORKER_ROW[n_workers]
        Chunks that each worker has.
    n_registers, n_messages : int
        Counts of the whole run.
    readers : int32[n_messages]
        Receives how often each message is added or received; zeros before.

    Returns
    -------
    row, reason : int
        The first row that makes no sense and why, or -1 and 0.
    held : int
        Messages that wait for a reader at once, at most.
    depth : int
        Messages on the longest way from a worker's values to a message.
    """
    made = np.zeros(n_messages, np.bool_)
    for i in range(len(log)):
        reason = _fault(log[i], workers, n_registers, n_messages, made)
        if reason:
            return i, reason, 0, 0
        if log[i]["action"] & READ:
            made[log[i]["out_message"]] = True
        if log[i]["in_message"] >= 0:
            readers[log[i]["in_message"]] += 1
    left = readers.copy()
    depth_of, depth_in = np.zeros(n_messages, np.int32), np.zeros(n_registers, np.int32)
    held, peak, depth = 0, 0, 0
    for i in range(len(log)):
        row = log[i]
        source, at = row["in_message"], row["register"]
        if row["action"] & TAKE:
            below = depth_of[source] if source >= 0 else 0
            depth_in[at] = below if row["action"] & OVERWRITE else max(depth_in[at], below)
        if source >= 0:
            left[source] -= 1
            held -= left[source] == 0
        if row["action"] & READ:
            depth_of[row["out_message"]] = depth_in[at] + 1
            depth = max(depth, depth_in[at] + 1)
            held += left[row["out_message"]] > 0
            peak = max(peak, held)
    return -1, 0, peak, depth


class Tensors(NamedTuple):
    """What the workers contribute, and how exact sums of it are.

    Parameters
    ----------
    values : int32[m] or float32[m]
        The workers' tensors.
    workers : WORKER_ROW[n_workers]
        Position of each worker's tensor.
    bounds : int64[...]
        Bounds of the chunks of all jobs, one after the other.
    saturating, half : bool
        Whether sums saturate; whether messages are rounded to bfloat16.
    slack : float
        Largest error of an element over the sum of magnitudes.
    """

    values: Numbers
    workers: Rows
    bounds: NDArray[np.int64]
    saturating: bool
    half: bool
    slack: float


class Memory(NamedTuple):
    """Registers, messages under way and what became of them; all of it is changed in place.

    Parameters
    ----------
    registers : int32[n_registers, k] or float32[n_registers, k]
        Sums.
    buffers, bits : same type[held, k], uint32[held, k]
        Messages that wait for a reader, and the same memory as bits.
    place : int32[n_messages]
        Buffer of each message.
    readers : int32[n_messages]
        Counted down.
    compared : COMPARED[held]
        Chunk that each buffer was last compared with, and how many elements differed.
    expected : int32[k], int64[k] or float64[k]
        Work space, of the type of exact sums.
    starts : int64[n_workers]
        Work space.
    receipts : int16[sum of n_chunks over workers]
        Receives how many elements were wrong, for each chunk that a worker received.
    free : int64[held]
        Numbers of the free buffers: all of them at first, in any order.
    """

    registers: Numbers
    buffers: Numbers
    bits: NDArray[np.uint32]
    place: NDArray[np.int32]
    readers: NDArray[np.int32]
    compared: Rows
    expected: Sums
    starts: NDArray[np.int64]
    receipts: NDArray[np.int16] | NDArray[np.int32]
    free: NDArray[np.int64]


@njit_norefcount
def replay_log(log: Rows, tensors: Tensors, memory: Memory) -> int:
    """Carry out a log that :func:`scan_log` found sound.

    Parameters
    ----------
    log : LOG_ROW[n]
        What happened.
    tensors : Tensors
        What is added.
    memory : Memory
        Memory of the replay; changed in place.

    Returns
    -------
    int
        Elements contributed.
    """
    values, workers, bounds, saturating, half = (
        tensors.values,
        tensors.workers,
        tensors.bounds,
        tensors.saturating,
        tensors.half,
    )
    registers, buffers, bits, place = memory.registers, memory.buffers, memory.bits, memory.place
    readers, compared, receipts, free = memory.readers, memory.compared, memory.receipts, memory.free
    n_free = len(free)
    added = 0
    for i in range(len(log)):
        row = log[i]
        action, source = row["action"], row["in_message"]
        if action & TAKE:
            register = registers[row["register"]]
            if source >= 0:
                block = buffers[place[source]]
            else:
                worker = workers[row["worker"]]
                at = worker["bounds"] + row["chunk"]
                begin = worker["base"] + (worker["offset"] + bounds[at]) % worker["span"]
                block = values[begin : begin + bounds[at + 1] - bounds[at]]
            if action & OVERWRITE:
                overwrite(register, block)
            elif saturating:
                add_saturating(register, block)
            else:
                add(register, block)
            added += len(block)
        elif action & RECEIVE:
            worker, buffer = workers[row["worker"]], place[source]
            at = worker["bounds"] + row["chunk"]
            if compared[buffer]["chunk"] != at:
                compared[buffer]["chunk"] = at
                compared[buffer]["n_wrong"] = _compare(buffers[buffer], tensors, memory, worker, at)
            receipts[worker["receipts"] + row["chunk"]] = compared[buffer]["n_wrong"]
        if source >= 0:
            readers[source] -= 1
            if readers[source] == 0:
                free[n_free] = place[source]
                n_free += 1
        if action & READ and readers[row["out_message"]] > 0:
            n_free -= 1
            buffer = free[n_free]
            place[row["out_message"]] = buffer
            compared[buffer]["chunk"] = -1
            overwrite(buffers[buffer], registers[row["register"]])
            if half:
                round_to_bfloat16(bits[buffer])
    return added


@njit_norefcount
def _compare(message: Numbers, tensors: Tensors, memory: Memory, receiver: np.void, at: int) -> int:
    """Count elements of a message that differ from the sum of a chunk over all workers of the receiver's job."""
    values, workers, bounds, slack = tensors.values, tensors.workers, tensors.bounds, tensors.slack
    expected, starts = memory.expected, memory.starts
    first, n_workers = receiver["first"], receiver["end"] - receiver["first"]
    length = bounds[at + 1] - bounds[at]
    for w in range(n_workers):
        worker = workers[first + w]
        starts[w] = worker["base"] + (worker["offset"] + bounds[at]) % worker["span"]
    expected[:length] = 0
    add_blocks(expected, values, starts[:n_workers], length)
    wrong = 0
    if slack == 0:
        for i in range(length):
            wrong += message[i] != expected[i]
        return wrong
    for i in range(length):
        magnitude = 0.0
        for w in range(n_workers):
            magnitude += abs(values[starts[w] + i])
        wrong += not abs(message[i] - expected[i]) <= slack * magnitude  # a NaN is wrong too
    return wrong


@kernel
def _fault(row: np.void, workers: Rows, n_registers: int, n_messages: int, made: NDArray[np.bool_]) -> int:
    """Return why a row makes no sense, or 0."""
    action, source, worker, chunk = row["action"], row["in_message"], row["worker"], row["chunk"]
    takes = action & TAKE
    if action != RECEIVE and (action <= 0 or action > (TAKE | READ) or takes == TAKE):
        return ACTION
    if action != RECEIVE and not 0 <= row["register"] < n_registers:
        return REGISTER
    if (takes and (worker >= 0) == (source >= 0)) or (action == RECEIVE and (worker < 0 or source < 0)):
        return SOURCE
    if action == READ and source >= 0:
        return SOURCE
    if worker >= 0 and action != READ:
        if worker >= len(workers):
            return CHUNK
        if not 0 <= chunk < workers[worker]["n_chunks"]:
            return CHUNK
    if source >= 0 and (source >= n_messages or not made[source]):
        return UNMADE
    if action != RECEIVE and action & READ:
        out = row["out_message"]
        if not 0 <= out < n_messages or made[out]:
            return REMADE
    return 0
