"""The value pass of the packet engine: sum what the log of the timing pass says, and nothing else.

The timing pass knows no values. It writes a log, in the order of time, of what happened to registers. Here the log is
carried out on whole blocks, piece by piece as it is written, and each received result is compared with a sum that is
made without the log. So a run is exact because its operations were, not because it is said to be.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.jit import Records
from switch_model.bfloat16 import BFLOAT16_ROUNDING
from switch_model.payload import Payload
from switch_model.slot_sequence import LOG_ROW, REASONS
from switch_model.system import System

# A worker: where its values are, where its job's bounds of chunks start in a table of all and how many chunks there
# are, the workers of its job, and where its receipts start in a table of all.
_FIELDS = ("base", "offset", "span", "bounds", "n_chunks", "first", "end", "receipts")
WORKER_ROW = np.dtype([(name, np.int64) for name in _FIELDS])
MESSAGE_ROW = np.dtype(
    [
        ("place", np.int32),  # its buffer, or -1
        ("readers", np.int32),  # how often it is still to be taken
        ("depth", np.int32),  # messages on the longest way from a worker's values to it, itself included
        ("made", np.bool_),
    ],
    align=True,
)
# The chunk's place in `bounds` that a buffer was last compared with, or -1, and how many elements differed.
COMPARED = np.dtype([("chunk", np.int64), ("n_wrong", np.int64)])
NOTHING = np.zeros(0, np.int32)
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


def compile_sums() -> None:
    """Compile what carries out a log: a second process does so while the first compiles the engine that writes it."""
    from switch_model.payload import drawn_payload
    from switch_model.systems import SYSTEMS, SystemSpec

    system = SystemSpec(SYSTEMS["switchml_rdma"], {}).at()
    ValuePass(drawn_payload([(2, [system.elements])], system), system, 1).carry_out(np.zeros(0, LOG_ROW), 0)


class ValuePass:
    """Registers of a run and its messages under way, as far as the log has been carried out.

    Integers must be equal to the exact sum: modulo 2**32 where registers wrap, else really. Floats that hold small
    integers must be equal too; others lie within (P-1) eps sum|x|, and for bfloat16 within one more rounding of 2**-8
    for each message on the way.

    Parameters
    ----------
    payload : Payload
        Tensors.
    system : System
        Elements of a packet, and the arithmetic of the registers.
    n_registers : int
        Count of the whole run.
    """

    def __init__(self, payload: Payload, system: System, n_registers: int) -> None:
        self._payload, self._arithmetic, k = payload, system.arithmetic, system.elements
        self._half = system.arithmetic == "float" and system.element_bytes == 2
        self._workers, self._bounds = _tables(payload, k)
        sums = {"wrap": np.int32, "saturate": np.int64, "float": np.float64}[system.arithmetic]
        self._registers = np.zeros((n_registers, k), payload.values.dtype)  # pages that nothing touches are not mapped
        self._depth_in = np.zeros(n_registers, np.int32)
        self._receipts: Records = np.full(
            int(self._workers["n_chunks"].sum()), NEVER, np.int16 if k < 2**15 else np.int32
        )
        self._expected, self._starts = np.zeros(k, sums), np.zeros(payload.n_workers, np.int64)
        self._first, self._message = 0, np.zeros(0, MESSAGE_ROW)
        self._buffers, self._compared = np.zeros((0, k), payload.values.dtype), np.zeros(0, COMPARED)
        self._free, self._n_free = np.zeros(0, np.int64), 0
        self._n_rows = self._added = self._depth = 0
        self._cpu_s = 0.0

    def carry_out(self, log: Records, n_messages: int, held: NDArray[np.int32] = NOTHING) -> None:
        """Carry out a piece of the log, which follows those before it.

        Parameters
        ----------
        log : LOG_ROW[n]
            What happened, in order.
        n_messages : int
            Messages that have been made by its end.
        held : int32[n]
            Those of them that later rows may take, in rising order; numbers that no row has made are left out.

        Raises
        ------
        InputError
            If a row makes no sense, such as reading a message before it is made; the message names it.
        """
        from switch_model.replay_kernel import SwitchMemory, Tensors, check_log, count_held, replay_log

        if log.dtype != LOG_ROW:
            raise InputError(f"a log has rows of LOG_ROW, got {log.dtype}")
        message = np.zeros(n_messages - self._first, MESSAGE_ROW)
        message["place"] = -1
        message[: len(self._message)] = self._message
        message["readers"] = 0
        row, reason = check_log(log, self._workers, len(self._registers), self._first, message)
        if reason:
            raise InputError(f"row {self._n_rows + row} of the log, {log[row]}, {REASONS[reason]}")
        kept = held[held >= self._first] - self._first
        kept = kept[message["made"][kept]]
        message["readers"][kept] += 1
        self._take_back(message)
        n_held, depth = count_held(log, self._first, message, self._depth_in)
        self._depth = max(self._depth, int(depth))
        self._make_room(int(n_held))
        slack = 0.0 if self._payload.integral else _slack(self._workers, self._depth * self._half)
        tensors = Tensors(
            self._payload.values, self._workers, self._bounds, self._arithmetic == "saturate", self._half, slack
        )
        memory = SwitchMemory(self._registers, self._buffers, self._buffers.view(np.uint32), message, self._compared,
                        self._expected, self._starts, self._receipts, self._free)  # fmt: skip
        replay_log(log[:0], tensors, memory, 0, 0)  # compiles, if that is still to be done, before the clock starts
        began = time.process_time()
        with np.errstate(over="ignore"):  # uncompiled, NumPy would warn of integers that wrap around
            added, self._n_free = replay_log(log, tensors, memory, self._first, self._n_free)
        self._cpu_s += time.process_time() - began
        self._added += added
        self._n_rows += len(log)
        gone = int(kept.min(initial=len(message)))
        self._first, self._message = self._first + gone, message[gone:].copy()

    def _take_back(self, message: Records) -> None:
        """Take back the buffers of messages that were held, and that no row will take."""
        unread = (message["place"] >= 0) & (message["readers"] == 0)
        n = int(unread.sum())
        self._free[self._n_free : self._n_free + n] = message["place"][unread]
        message["place"][unread] = -1
        self._n_free += n

    def _make_room(self, n_held: int) -> None:
        """Have buffers for so many messages at once."""
        n = len(self._buffers)
        if n_held > n:
            self._buffers, self._compared, self._free = (
                _longer(table, n_held) for table in (self._buffers, self._compared, self._free)
            )
            self._free[self._n_free : self._n_free + n_held - n] = np.arange(n, n_held)
            self._n_free += n_held - n

    def outcome(self) -> Replay:
        """Return what came of the values."""
        wrong, missing = _account(self._workers, self._bounds, self._receipts)
        n_wrong, n_missing = int(wrong.sum()), int(missing.sum())
        exact = not n_wrong and not n_missing
        return Replay(exact, n_wrong, n_missing, wrong, missing, self._added, len(self._buffers), self._cpu_s)


def _longer(table: Records, n: int) -> Records:
    longer = np.zeros((n, *table.shape[1:]), table.dtype)
    longer[: len(table)] = table
    return longer


def _tables(payload: Payload, elements: int) -> tuple[Records, NDArray[np.int64]]:
    """Rows of the workers, and the bounds of the chunks of all jobs one after the other."""
    rows: Records = np.zeros(payload.n_workers, WORKER_ROW)
    per_job = np.diff(payload.first_worker)
    rows["base"], rows["offset"], rows["span"] = payload.base, payload.offset, payload.span
    bounds = [payload.bounds(job, elements) for job in range(len(per_job))]
    lengths = np.array([len(b) for b in bounds])
    rows["bounds"] = np.repeat(np.cumsum(lengths) - lengths, per_job)
    rows["n_chunks"] = np.repeat(lengths - 1, per_job)
    rows["first"] = np.repeat(payload.first_worker[:-1], per_job)
    rows["end"] = np.repeat(payload.first_worker[1:], per_job)
    rows["receipts"] = np.cumsum(rows["n_chunks"]) - rows["n_chunks"]
    return rows, np.concatenate(bounds)


def _slack(workers: Records, roundings: int) -> float:
    most = int((workers["end"] - workers["first"]).max())
    of_sums = (most - 1) * float(np.finfo(np.float32).eps)
    return of_sums + ((1 + BFLOAT16_ROUNDING) ** roundings - 1) * (1 + of_sums)


def _account(
    workers: Records, bounds: NDArray[np.int64], receipts: Records
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Elements that are wrong and that are missing, of each worker."""
    wrong, missing = np.zeros(len(workers), np.int64), np.zeros(len(workers), np.int64)
    for w, row in enumerate(workers):
        received = receipts[row["receipts"] :][: row["n_chunks"]]
        lengths = np.diff(bounds[row["bounds"] :][: row["n_chunks"] + 1])
        wrong[w] = received[received > 0].sum(dtype=np.int64)
        missing[w] = lengths[received == NEVER].sum()
    return wrong, missing
