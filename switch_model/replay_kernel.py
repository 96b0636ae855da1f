"""Carry out a log of operations on registers, block by block."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel, long_loops, njit_norefcount
from switch_model.arithmetic_kernel import Numbers, Sums, add, add_blocks, add_saturating, overwrite, round_to_bfloat16
from switch_model.slot_kernel import ADD, OVERWRITE, READ, Rows
from switch_model.slot_sequence import ACTION, CHUNK, RECEIVE, REGISTER, REMADE, SOURCE, UNMADE

TAKE = OVERWRITE | ADD


@kernel
def check_log(log: Rows, workers: Rows, n_registers: int, first: int, message: Rows) -> tuple[int, int]:
    """Check every row, and count the readers of each message.

    Parameters
    ----------
    log : LOG_ROW[n]
        What happened.
    workers : WORKER_ROW[n_workers]
        Chunks that each worker has.
    n_registers : int
        Count of the whole run.
    first : int
        Number of the message that has the first row of:
    message : MESSAGE_ROW[n]
        Messages; receives which are made, and how often each is added or received.

    Returns
    -------
    row, reason : int
        The first row that makes no sense and why, or -1 and 0.
    """
    for i in range(len(log)):
        reason = _fault(log[i], workers, n_registers, first, message)
        if reason:
            return i, reason
        if log[i]["action"] & READ:
            message[log[i]["out_message"] - first]["made"] = True
        if log[i]["in_message"] >= 0:
            message[log[i]["in_message"] - first]["readers"] += 1
    return -1, 0


@kernel
def count_held(log: Rows, first: int, message: Rows, depth_in: NDArray[np.int32]) -> tuple[int, int]:
    """Count what the log needs room for.

    Parameters
    ----------
    log, first, message
        Same as in :func:`check_log`, which has counted the readers; depths are written.
    depth_in : int32[n_registers]
        Depth of what each register holds; changed in place.

    Returns
    -------
    held : int
        Messages that wait for a reader at once, at most.
    depth : int
        Messages on the longest way from a worker's values to a message.
    """
    left = np.empty(len(message), np.int32)
    held, depth = 0, 0
    for m in range(len(message)):
        left[m] = message[m]["readers"]
        held += message[m]["place"] >= 0
    peak = held
    for i in range(len(log)):
        row = log[i]
        source, at = row["in_message"], row["register"]
        if row["action"] & TAKE:
            below = message[source - first]["depth"] if source >= 0 else 0
            depth_in[at] = below if row["action"] & OVERWRITE else max(depth_in[at], below)
        if source >= 0:
            left[source - first] -= 1
            held -= left[source - first] == 0
        if row["action"] & READ:
            out = row["out_message"] - first
            message[out]["depth"] = depth_in[at] + 1
            depth = max(depth, depth_in[at] + 1)
            held += left[out] > 0
            peak = max(peak, held)
    return peak, depth


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


class SwitchMemory(NamedTuple):
    """Registers, messages under way and what became of them; all of it is changed in place.

    Parameters
    ----------
    registers : int32[n_registers, k] or float32[n_registers, k]
        Sums.
    buffers, bits : same type[held, k], uint32[held, k]
        Messages that wait for a reader, and the same memory as bits.
    message : MESSAGE_ROW[n_messages]
        Messages of this piece of the log, and those that are held from before; readers are counted down.
    compared : COMPARED[held]
        Chunk that each buffer was last compared with, and how many elements differed.
    expected : int32[k], int64[k] or float64[k]
        Work space, of the type of exact sums.
    starts : int64[n_workers]
        Work space.
    receipts : int16[sum of n_chunks over workers]
        Receives how many elements were wrong, for each chunk that a worker received.
    free : int64[held]
        Numbers of the free buffers, in any order.
    """

    registers: Numbers
    buffers: Numbers
    bits: NDArray[np.uint32]
    message: Rows
    compared: Rows
    expected: Sums
    starts: NDArray[np.int64]
    receipts: NDArray[np.int16] | NDArray[np.int32]
    free: NDArray[np.int64]


@long_loops
@njit_norefcount
def replay_log(log: Rows, tensors: Tensors, memory: SwitchMemory, first: int, n_free: int) -> tuple[int, int]:
    """Carry out a log that :func:`check_log` found sound.

    Parameters
    ----------
    log : LOG_ROW[n]
        What happened.
    tensors : Tensors
        What is added.
    memory : SwitchMemory
        Memory of the replay; changed in place.
    first : int
        Number of the message that has the first row of ``memory.message``.
    n_free : int
        Free buffers.

    Returns
    -------
    added, n_free : int
        Elements contributed, and the buffers that are free afterwards.
    """
    values, workers, bounds, saturating, half = (
        tensors.values,
        tensors.workers,
        tensors.bounds,
        tensors.saturating,
        tensors.half,
    )
    registers, buffers, bits, message = memory.registers, memory.buffers, memory.bits, memory.message
    compared, receipts, free = memory.compared, memory.receipts, memory.free
    added = 0
    for i in range(len(log)):
        row = log[i]
        action, source = row["action"], row["in_message"]
        if action & TAKE:
            register = registers[row["register"]]
            if source >= 0:
                block = buffers[message[source - first]["place"]]
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
            worker, buffer = workers[row["worker"]], message[source - first]["place"]
            at = worker["bounds"] + row["chunk"]
            if compared[buffer]["chunk"] != at:
                compared[buffer]["chunk"] = at
                compared[buffer]["n_wrong"] = _compare(buffers[buffer], tensors, memory, worker, at)
            receipts[worker["receipts"] + row["chunk"]] = compared[buffer]["n_wrong"]
        if source >= 0:
            slot = message[source - first]
            slot["readers"] -= 1
            if slot["readers"] == 0:
                free[n_free] = slot["place"]
                n_free += 1
                slot["place"] = -1
        if action & READ and message[row["out_message"] - first]["readers"] > 0:
            n_free -= 1
            buffer = free[n_free]
            message[row["out_message"] - first]["place"] = buffer
            compared[buffer]["chunk"] = -1
            overwrite(buffers[buffer], registers[row["register"]])
            if half:
                round_to_bfloat16(bits[buffer])
    return added, n_free


@njit_norefcount
def _compare(message: Numbers, tensors: Tensors, memory: SwitchMemory, receiver: np.void, at: int) -> int:
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
def _fault(row: np.void, workers: Rows, n_registers: int, first: int, message: Rows) -> int:
    """Return why a row makes no sense, or 0."""
    last = first + len(message)
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
    if source >= 0 and not (first <= source < last and message[source - first]["made"]):
        return UNMADE
    if action != RECEIVE and action & READ:
        out = row["out_message"]
        if not first <= out < last or message[out - first]["made"]:
            return REMADE
    return 0
