"""The value pass when blocks of zeros are skipped: tensors that have them, and what skipped blocks become."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.sparse.generate import drawn_gradients
from switch_model.payload import Payload, given_payload
from switch_model.slot_kernel import READ
from switch_model.slot_sequence import LOG_ROW, RECEIVE

from .packet_job import AggregationJob


def sparse_payload(jobs: Sequence[AggregationJob], seed: int) -> Payload:
    """Draw a tensor for each worker that has exactly the non-zero blocks that its job says.

    Raises
    ------
    InputError
        If a job skips nothing: its tensors would be of another kind.
    """
    tensors = []
    for number, job in enumerate(jobs):
        if job.rounds is None:
            raise InputError("jobs that skip blocks of zeros and jobs that do not cannot be summed in one run")
        tensors.append([drawn_gradients(job.rounds.occupancy, seed=seed + number, dtype=np.int32)])
    return given_payload(tensors, jobs[0].system)


def with_implied_zeros(
    log: NDArray[np.void], jobs: Sequence[AggregationJob], n_registers: int, n_messages: int
) -> NDArray[Any]:
    """Return the log with one more message, read from a register that nobody writes, as what a skipped block becomes.

    Every worker receives it for every block that its job skips. So the replay compares zeros with the exact sum, and a
    block that was skipped although a worker has it comes out wrong.

    Parameters
    ----------
    log : LOG_ROW[n]
        What happened.
    jobs : sequence of AggregationJob
        In the order of their workers.
    n_registers, n_messages : int
        Of the log; its replay needs one more of each.
    """
    received, first_worker = [np.zeros(0, LOG_ROW)], 0
    for job in jobs:
        n = len(job.workers)
        if job.rounds is not None:
            skipped = job.rounds.skipped()
            rows = np.zeros(n * len(skipped), LOG_ROW)
            rows["action"], rows["register"], rows["in_message"], rows["out_message"] = RECEIVE, -1, n_messages, -1
            rows["chunk"] = np.repeat(skipped, n)
            rows["worker"] = first_worker + np.tile(np.arange(n), len(skipped))
            received.append(rows)
        first_worker += n
    zero = np.zeros(1, LOG_ROW)
    zero["action"], zero["register"], zero["out_message"] = READ, n_registers, n_messages
    zero["worker"] = zero["in_message"] = -1
    return np.concatenate((log, zero, *received))
