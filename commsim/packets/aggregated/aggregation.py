"""All-reduce through aggregating switches, packet by packet: first the times, then the values.

The timing pass moves packets that carry no values and writes what switches did to their registers to a log. Whenever
that is full, the value pass replays it on real tensors and compares what every worker received with the exact sum. So
`exact` says that the rules, with the losses of this run, sum every element exactly once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.jit import Records
from commsim.core.result import Result
from commsim.packets.aggregated import traffic_state as m
from commsim.packets.aggregated.packet_job import AggregationJob
from commsim.packets.aggregated.traffic_state import AggregationState
from commsim.packets.codes import CONTRIBUTION
from commsim.packets.event_rows import Row
from commsim.packets.links.link_tables import COUNTERS
from commsim.packets.links.posting_kernel import mark_free
from commsim.packets.packet_rows import RunState
from switch_model.slot_kernel import READ
from switch_model.slot_sequence import LOG_ROW, RECEIVE

if TYPE_CHECKING:
    from commsim.packets.tables import Tables
    from switch_model.payload import Payload
    from switch_model.replay import Replay, ValuePass


class Ran(NamedTuple):
    """What is left of a run that is over.

    Parameters
    ----------
    state : Row
        Counters, of all that was sent.
    jobs : AggregationState
        Tables of the jobs.
    link_bytes : list of float64[n_links], bytes
        Bytes that each job put on links.
    peak : float, bytes
        Most that was in a queue.
    """

    state: Row
    jobs: AggregationState
    link_bytes: list[NDArray[np.float64]]
    peak: float


def aggregation_results(
    ran: Ran, jobs: Sequence[AggregationJob], cpu: float, values: ValuePasses | None = None
) -> tuple[Result, ...]:
    """Return the results of a run that is over, with what came of its values where these were summed."""
    sums: list[dict[str, float]] = [{}] * len(jobs) if values is None else values.counted()
    return tuple(_result(ran, job, j, cpu, sums[j]) for j, job in enumerate(jobs))


def packets_at_once(tables: AggregationState, jobs: Sequence[AggregationJob]) -> int:
    """Packets that one event of an aggregation may need at most."""
    widest = max((int(r["down_end"] - r["down"]) for r in tables.aggregator), default=0)
    return widest + 4 + max(job.window * job.system.packets_per_message for job in jobs)


class ValuePasses:
    """The value passes of a run: jobs whose packets or sums are of one kind have one, as they may share slots.

    Parameters
    ----------
    tables : AggregationState
        Tables of the jobs.
    jobs : sequence of AggregationJob
        The jobs.
    payload : Payload, optional
        Their tensors; drawn by default.
    seed : int
        Seed of tensors that are drawn.

    Raises
    ------
    InputError
        If tensors are given for jobs of several kinds, or jobs cannot be summed.
    """

    def __init__(
        self, tables: AggregationState, jobs: Sequence[AggregationJob], payload: Payload | None, seed: int
    ) -> None:
        kinds: dict[Any, list[int]] = defaultdict(list)
        for j, job in enumerate(jobs):
            kinds[job.system.elements, job.system.arithmetic, job.system.element_bytes, job.rounds is None].append(j)
        if payload is not None and len(kinds) > 1:
            raise InputError("jobs whose packets or sums differ cannot share tensors that are given")
        self._jobs, self._kinds = jobs, list(kinds.values())
        self._n_messages, self._n_registers = 0, _n_registers(tables)
        self._passes = [_pass([jobs[j] for j in these], self._n_registers, payload, seed) for these in self._kinds]

    def take(self, tables: Tables) -> None:
        """Carry out what the log has; the kernels may overwrite it then."""
        fabric, self._n_messages = tables.fabric, int(tables.fabric.state["n_messages"])
        held = _under_way(fabric)
        for numbers, values in zip(self._kinds, self._passes, strict=True):
            values.carry_out(_log_of(tables, self._jobs, numbers), self._n_messages, held)

    def counted(self) -> list[dict[str, float]]:
        """Return the counters of each job's values, after the whole run."""
        counted: list[dict[str, float]] = [{}] * len(self._jobs)
        for numbers, values in zip(self._kinds, self._passes, strict=True):
            these = [self._jobs[j] for j in numbers]
            if these[0].rounds is not None:
                _receive_zeros(values, these, self._n_registers, self._n_messages)
            outcome, first = values.outcome(), 0
            for j in numbers:
                counted[j] = _counters(outcome, slice(first, first + len(self._jobs[j].workers)))
                first += len(self._jobs[j].workers)
        return counted


def _under_way(fabric: RunState) -> NDArray[np.int32]:
    """Messages whose values packets carry, in rising order."""
    free = np.zeros(len(fabric.packet), np.bool_)
    mark_free(fabric.packet, int(fabric.state["first_free"]), free)
    of_jobs = ~free & (fabric.packet["kind"] >= CONTRIBUTION)
    message = fabric.packet["message"][of_jobs]
    return np.unique(message[message >= 0])


def _log_of(tables: Tables, jobs: Sequence[AggregationJob], numbers: list[int]) -> Records:
    """Return what some jobs did, with their workers numbered from 0; the registers keep their numbers."""
    rows = tables.jobs
    log: Records = rows.log[: tables.fabric.state["n_log"]]
    if len(numbers) == len(jobs):
        return log
    ours = np.zeros(_n_registers(rows), np.bool_)
    for row in rows.aggregator:
        if row["job"] in numbers:
            system = jobs[row["job"]].system
            ours[row["slots"] :][: system.pool_size if system.shared else system.versions * system.window] = True
    for row in rows.server:
        if row["job"] in numbers:
            ours[row["register"] :][: row["n_registers"]] = True
    is_mine = np.isin(rows.worker["job"], numbers)
    renumbered = np.where(is_mine, np.cumsum(is_mine) - 1, -1)
    kept = np.where(log["worker"] >= 0, is_mine[log["worker"]], ours[log["register"]])
    mine: Records = log[kept].copy()
    mine["worker"] = np.where(mine["worker"] >= 0, renumbered[mine["worker"]], -1)
    return mine


def _n_registers(tables: AggregationState) -> int:
    return len(tables.slot) + int(tables.server["n_registers"].sum())


def _pass(jobs: Sequence[AggregationJob], n_registers: int, payload: Payload | None, seed: int) -> ValuePass:
    """Return the value pass of jobs of one kind; where they skip blocks of zeros, a register more stays zero."""
    from switch_model.payload import drawn_payload
    from switch_model.replay import ValuePass

    skips = any(job.rounds is not None for job in jobs)
    if payload is None and skips:
        payload = _sparse_payload(jobs, seed)
    elif payload is None:
        payload = drawn_payload([(len(j.workers), j.n_elements) for j in jobs], jobs[0].system, seed)
    return ValuePass(payload, jobs[0].system, n_registers + skips)


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


def _receive_zeros(values: ValuePass, jobs: Sequence[AggregationJob], n_registers: int, n_messages: int) -> None:
    """Let workers receive one more message for each block that their job skips, read from a register of zeros.

    So the pass compares zeros with the exact sum, and a block that was skipped although a worker has it comes out
    wrong.

    Parameters
    ----------
    values : ValuePass
        Pass that has carried out the whole log.
    jobs : sequence of AggregationJob
        Its jobs in the order of their workers.
    n_registers, n_messages : int
        Counts of the log.
    """
    zero, message, first_worker = np.full(1, -1, LOG_ROW), np.array([n_messages], np.int32), 0
    zero["action"], zero["register"], zero["out_message"] = READ, n_registers, n_messages
    values.carry_out(zero, n_messages + 1, message)
    for job in jobs:
        n = len(job.workers)
        if job.rounds is not None:
            skipped, at_once = job.rounds.skipped(), m.LOG_RECORDS // n + 1
            for at in range(0, len(skipped), at_once):
                chunks = skipped[at : at + at_once]
                rows = np.full(n * len(chunks), -1, LOG_ROW)
                rows["action"], rows["in_message"] = RECEIVE, n_messages
                rows["chunk"] = np.repeat(chunks, n)
                rows["worker"] = first_worker + np.tile(np.arange(n), len(chunks))
                values.carry_out(rows, n_messages + 1, message)
        first_worker += n


def _counters(sums: Replay, workers: slice) -> dict[str, float]:
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
