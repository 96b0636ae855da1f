"""All-reduce through aggregating switches, packet by packet: first the times, then the values.

The timing pass moves packets that carry no values and writes what switches did to their registers to a log. The value
pass replays that log on real tensors and compares what every worker received with the exact sum. So `exact` says that
the rules, with the losses of this run, sum every element exactly once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.result import Result
from commsim.engine.packet.aggregated.packet_job import AggregationJob
from commsim.engine.packet.aggregated.traffic_state import Jobs
from commsim.engine.packet.links.link_tables import COUNTERS
from commsim.engine.packet.packet_state import Row
from switch_model.slot_kernel import READ
from switch_model.slot_sequence import LOG_ROW, RECEIVE

if TYPE_CHECKING:
    from switch_model.payload import Payload
    from switch_model.replay import Replay


class Ran(NamedTuple):
    """What is left of a run that is over.

    Parameters
    ----------
    state : Row
        Counters, of all that was sent.
    jobs : Jobs
        Tables of the jobs.
    link_bytes : list of float64[n_links], bytes
        Bytes that each job put on links.
    peak : float, bytes
        Most that was in a queue.
    """

    state: Row
    jobs: Jobs
    link_bytes: list[NDArray[np.float64]]
    peak: float


def aggregation_results(
    ran: Ran, jobs: Sequence[AggregationJob], cpu: float, payload: Payload | None = None, seed: int | None = 0
) -> tuple[Result, ...]:
    """Return the results of a run that is over; real tensors are summed unless `seed` is None."""
    sums: list[dict[str, float]] = [{}] * len(jobs) if seed is None else _sums(ran, jobs, payload, seed)
    return tuple(_result(ran, job, j, cpu, sums[j]) for j, job in enumerate(jobs))


def packets_at_once(tables: Jobs, jobs: Sequence[AggregationJob]) -> int:
    """Packets that one event of an aggregation may need at most."""
    widest = max((int(r["down_end"] - r["down"]) for r in tables.aggregator), default=0)
    return widest + 4 + max(job.window * job.system.packets_per_message for job in jobs)


def _sums(ran: Ran, jobs: Sequence[AggregationJob], payload: Payload | None, seed: int) -> list[dict[str, float]]:
    """Replay the log on the jobs' tensors; return the counters of each job's values.

    Jobs whose packets or sums are of one kind are replayed together, as they may share slots.
    """
    kinds: dict[Any, list[int]] = defaultdict(list)
    for j, job in enumerate(jobs):
        kinds[job.system.elements, job.system.arithmetic, job.system.element_bytes, job.rounds is None].append(j)
    if payload is not None and len(kinds) > 1:
        raise InputError("jobs whose packets or sums differ cannot share tensors that are given")
    counted: list[dict[str, float]] = [{}] * len(jobs)
    for numbers in kinds.values():
        these = [jobs[j] for j in numbers]
        sums = _sum(ran, these, _log_of(ran, jobs, numbers), payload, seed)
        first = 0
        for j in numbers:
            counted[j] = _counted(sums, slice(first, first + len(jobs[j].workers)))
            first += len(jobs[j].workers)
    return counted


def _log_of(ran: Ran, jobs: Sequence[AggregationJob], numbers: list[int]) -> NDArray[Any]:
    """Return what some jobs did, with their workers numbered from 0; the registers keep their numbers."""
    log: NDArray[Any] = ran.jobs.log[: ran.state["n_log"]]
    if len(numbers) == len(jobs):
        return log
    tables = ran.jobs
    ours = np.zeros(_n_registers(tables), np.bool_)
    for row in tables.aggregator:
        if row["job"] in numbers:
            system = jobs[row["job"]].system
            ours[row["slots"] :][: system.pool_size if system.shared else system.versions * system.window] = True
    for row in tables.server:
        if row["job"] in numbers:
            ours[row["register"] :][: row["n_registers"]] = True
    is_mine = np.isin(tables.worker["job"], numbers)
    renumbered = np.where(is_mine, np.cumsum(is_mine) - 1, -1)
    kept = np.where(log["worker"] >= 0, is_mine[log["worker"]], ours[log["register"]])
    mine: NDArray[Any] = log[kept].copy()
    mine["worker"] = np.where(mine["worker"] >= 0, renumbered[mine["worker"]], -1)
    return mine


def _n_registers(tables: Jobs) -> int:
    return len(tables.slot) + int(tables.server["n_registers"].sum())


def _sum(ran: Ran, jobs: Sequence[AggregationJob], log: NDArray[Any], payload: Payload | None, seed: int) -> Replay:
    """Replay the log of jobs of one kind on their tensors."""
    from switch_model.payload import drawn_payload
    from switch_model.replay import replay

    system, n_registers, n_messages = jobs[0].system, _n_registers(ran.jobs), int(ran.state["n_messages"])
    if any(job.rounds is not None for job in jobs):
        payload = _sparse_payload(jobs, seed) if payload is None else payload
        log = _with_implied_zeros(log, jobs, n_registers, n_messages)
        return replay(log, payload, system, n_registers + 1, n_messages + 1)
    if payload is None:
        payload = drawn_payload([(len(j.workers), j.n_elements) for j in jobs], system, seed)
    return replay(log, payload, system, n_registers, n_messages)


def _sparse_payload(jobs: Sequence[AggregationJob], seed: int) -> Payload:
    """Draw a tensor for each worker that has exactly the non-zero blocks that its job says.

    Raises
    ------
    InputError
        If a job skips nothing: its tensors would be of another kind.
    """
    from commsim.sparse.generate import drawn_gradients
    from switch_model.payload import given_payload

    tensors = []
    for number, job in enumerate(jobs):
        if job.rounds is None:
            raise InputError("jobs that skip blocks of zeros and jobs that do not cannot be summed in one run")
        tensors.append([drawn_gradients(job.rounds.occupancy, seed=seed + number, dtype=np.int32)])
    return given_payload(tensors, jobs[0].system)


def _with_implied_zeros(
    log: NDArray[np.void], jobs: Sequence[AggregationJob], n_registers: int, n_messages: int
) -> NDArray[Any]:
    """Return the log with one more message, read from a register that is never written: a skipped block.

    Every worker receives it for every block that its job skips. So the replay compares zeros with the exact sum, and a
    block that was skipped although a worker has it comes out wrong.

    Parameters
    ----------
    log : LOG_ROW[n]
        What happened.
    jobs : sequence of AggregationJob
        Jobs in the order of their workers.
    n_registers, n_messages : int
        Counts of the log; its replay needs one more of each.
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


def _counted(sums: Replay, workers: slice) -> dict[str, float]:
    """Counters of one job's values."""
    wrong, missing = sums.wrong_of_worker[workers].sum(), sums.missing_of_worker[workers].sum()
    return {
        "exact": not wrong and not missing,
        "wrong_elements": wrong,
        "missing_elements": missing,
        "elements_added": sums.elements_added,
        "values_cpu_s": sums.cpu_s,
    }


def _result(ran: Ran, job: AggregationJob, j: int, cpu: float, sums: dict[str, float]) -> Result:
    state, row = ran.state, ran.jobs.job[j]
    workers = ran.jobs.worker[row["worker"] : row["worker"] + row["n_workers"]]
    counters = {
        "retransmissions": workers["n_resent"].sum(),
        "drops": state["drops_loss"] + state["drops_full"],
        **{name: state[name] for name in (*COUNTERS, "collisions", "events", "packet_hops")},
        "peak_queue_bytes": ran.peak,
        "cpu_s": cpu,
    }
    return job.result("packet", workers["finished"], ran.link_bytes[j], counters | sums)
