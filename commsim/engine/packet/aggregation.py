"""All-reduce through aggregating switches, packet by packet: first the times, then the values.

The timing pass moves packets that carry no values and writes what switches did to their registers to a log. The value
pass replays that log on real tensors and compares what every worker received with the exact sum. So `exact` says that
the rules, as they were played with these losses, sum every element exactly once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError, PhysicsError
from commsim.core.network import Network
from commsim.core.result import Result

from . import packet_state as s
from .fabric import Fabric
from .packet_job import AggregationJob
from .packet_plan import packet_tables
from .simulate import play, watch

if TYPE_CHECKING:
    from switch_model.payload import Payload
    from switch_model.replay import Replay


@dataclass(frozen=True, slots=True, eq=False)
class PacketRun:
    """What happened.

    Parameters
    ----------
    results : tuple of Result
        One per job; counters say what the packets met with.
    series : SAMPLE_ROW[n]
        Busy slots and bytes in queues over time, when asked for.
    taps : TAP_ROW[n]
        Packets that left the tapped links, when asked for.
    tables : Tables
        All state at the end; its `log` is what the value pass replays.
    cpu : float, s
        Of the timing pass.
    """

    results: tuple[Result, ...]
    series: NDArray[np.void]
    taps: NDArray[np.void]
    tables: s.Tables
    cpu: float


def simulate_aggregation(
    network: Network,
    jobs: Sequence[AggregationJob],
    *,
    fabric: Fabric | None = None,
    seed: int = 0,
    values: bool = True,
    payload: Payload | None = None,
    sample_every: float = 0.0,
    tapped: Sequence[int] = (),
) -> PacketRun:
    """Simulate all jobs together.

    Parameters
    ----------
    network : Network
        Where.
    jobs : sequence of AggregationJob
        At least one.
    fabric : Fabric, optional
        Queues and losses; infinite queues and the network's own losses unless given.
    seed : int
        Of losses, marks and the tensors' values.
    values : bool
        Whether real tensors are summed, and `exact` is known.
    payload : Payload, optional
        The tensors; random integers unless given.
    sample_every : float, s
        Interval of the series; 0 for none.
    tapped : sequence of int
        Links whose packets are recorded.

    Raises
    ------
    InputError
        If a job does not fit.
    PhysicsError
        If the run cannot end: our bug.
    """
    tables = packet_tables(network, jobs, fabric or Fabric(), seed)
    watch(tables, tapped, sample_every)
    tables, cpu = _play(tables, jobs)
    sums = _sum(tables, jobs, payload, seed) if values else None
    results = tuple(_result(network, tables, jobs, j, cpu, sums) for j in range(len(jobs)))
    clock = tables.clock
    return PacketRun(results, tables.sample[: clock[s.N_SAMPLES]], tables.tap[: clock[s.N_TAPPED]], tables, cpu)


def _play(tables: s.Tables, jobs: Sequence[AggregationJob]) -> tuple[s.Tables, float]:
    """Run the timing pass to its end. Returns the tables and the CPU seconds taken."""
    from .run_kernel import start

    widest = max((int(r["down_end"] - r["down"]) for r in tables.aggregator), default=0)
    margin = widest + 4 + max(job.window * job.system.packets_per_message for job in jobs)
    starts = np.concatenate([job.starts_ps() for job in jobs])
    tables, finished, cpu = play(tables, margin, lambda t: start(t, starts))
    if not finished:
        raise PhysicsError(f"deadlock: {tables.clock[s.N_UNFINISHED]} workers never finished")
    return tables, cpu


def _sum(tables: s.Tables, jobs: Sequence[AggregationJob], payload: Payload | None, seed: int) -> Replay:
    """Replay the log on the jobs' tensors."""
    from switch_model.payload import drawn_payload
    from switch_model.replay import replay

    system = jobs[0].system
    if any((j.system.elements, j.system.arithmetic) != (system.elements, system.arithmetic) for j in jobs):
        raise InputError("jobs whose packets or sums differ cannot be summed in one run; ask for no values")
    n_registers = len(tables.slot) + int(tables.server["n_registers"].sum())
    log, n_messages = tables.log[: tables.clock[s.N_LOG]], int(tables.clock[s.N_MESSAGES])
    if any(job.rounds is not None for job in jobs):
        from .skipped_blocks import sparse_payload, with_implied_zeros

        payload = sparse_payload(jobs, seed) if payload is None else payload
        log = with_implied_zeros(log, jobs, n_registers, n_messages)
        return replay(log, payload, system, n_registers + 1, n_messages + 1)
    if payload is None:
        payload = drawn_payload([(len(j.workers), j.n_elements) for j in jobs], system, seed)
    return replay(log, payload, system, n_registers, n_messages)


def _counted(sums: Replay | None, workers: slice) -> dict[str, float]:
    """Counters of one job's values; none when none were summed."""
    if sums is None:
        return {}
    wrong, missing = sums.wrong_of_worker[workers].sum(), sums.missing_of_worker[workers].sum()
    return {
        "exact": not wrong and not missing,
        "wrong_elements": wrong,
        "missing_elements": missing,
        "elements_added": sums.elements_added,
        "values_cpu_s": sums.cpu_s,
    }


def _result(
    network: Network, tables: s.Tables, jobs: Sequence[AggregationJob], j: int, cpu: float, sums: Replay | None
) -> Result:
    job, clock, row = jobs[j], tables.clock, tables.job[j]
    mine = slice(row["worker"], row["worker"] + row["n_workers"])
    workers = tables.worker[mine]
    time_s, from_last = job.elapsed(workers["finished"])
    n_elements = sum(job.n_elements)
    link = tables.link[: network.n_links]
    counters = {
        "elements": n_elements,
        "elements_per_s": n_elements / time_s,
        "retransmissions": workers["n_resent"].sum(),
        "duplicates": clock[s.DUPLICATES],
        "drops": clock[s.DROPPED_LOSS] + clock[s.DROPPED_TAIL],
        "drops_loss": clock[s.DROPPED_LOSS],
        "drops_full": clock[s.DROPPED_TAIL],
        "marks": clock[s.MARKED],
        "out_of_order": clock[s.OUT_OF_ORDER],
        "collisions": clock[s.COLLISIONS],
        "timeouts": clock[s.N_TIMEOUTS],
        "events": clock[s.N_EVENTS],
        "packet_hops": clock[s.N_HOPS],
        "peak_queue_bytes": link["peak"].max(),
        "cpu_s": cpu,
    }
    return Result(
        job.system.name,
        "all_reduce",
        "packet",
        len(job.workers),
        float(n_elements * job.system.element_bytes),
        time_s,
        from_last,
        link["n_bytes"].astype(np.float64),
        float(link["n_bytes"].sum()),
        counters={k: float(v) for k, v in (counters | _counted(sums, mine)).items()},
    )
