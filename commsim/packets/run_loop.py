"""The loop of a packet run: kernels, what they stop for, room that grows, and why a run never ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import process_time
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError, PhysicsError
from commsim.core.jit import compile_all, is_interpreted
from commsim.core.network import Network
from commsim.packets import packet_rows as rows_of
from commsim.packets.aggregated.traffic_state import AggregationState
from commsim.packets.codes import CHANGE, DONE, FULL, TOO_LATE
from commsim.packets.event_rows import LAST_TIME, NEVER, PS
from commsim.packets.hosts.host_kernel import MARGIN, begin_run
from commsim.packets.hosts.host_kernel import run as run_kernel
from commsim.packets.hosts.work import PacketLayout
from commsim.packets.links.deadlock import cycle_text, deadlocked
from commsim.packets.links.equal_cost_links import EqualCostWays
from commsim.packets.links.link_tables import more_records, with_packets
from commsim.packets.links.wheel_kernel import schedule
from commsim.packets.packet_rows import RunState
from commsim.packets.tables import Tables, with_more_packets

MAX_PACKETS = 1 << 25  # at once, 2 GiB of them
MAX_COPIES = 1 << 21  # at once, where most of what is on its way may be sent again: 128 MiB
LOOK_EVERY = 10 * 10**9  # ps between two looks for deadlock
NO_WORKERS = np.zeros(0, np.int64)


class Stop(Protocol):
    """What is done at times at which the kernels stop."""

    @property
    def next(self) -> float:
        """When it is due, in seconds; infinity for never again."""

    def begin(self, fabric: RunState) -> None:
        """Prepare, before anything is sent."""

    def make(self, fabric: RunState) -> RunState:
        """Do what is due."""


def run_fabric(
    laid: PacketLayout,
    tables: Tables,
    stops: Sequence[Stop] = (),
    worker_starts: NDArray[np.int64] = NO_WORKERS,
    read_log: Callable[[Tables], None] | None = None,
) -> tuple[Tables, float]:
    """Run to the end; tables that are full grow.

    Parameters
    ----------
    laid, tables : PacketLayout, Tables
        What is sent, and the tables that :func:`build` made of it.
    stops : sequence of Stop
        What the run stops for; what is due at the same time is done in this order.
    worker_starts : int64[n_workers], ps
        Time at which each worker of a job that switches aggregate begins.
    read_log : callable, optional
        Is called when the log is full, which is empty afterwards, and at the end.

    Returns
    -------
    tables : Tables
        All state at the end.
    cpu : float, s
        Taken, without compilation and without reading the log.

    Raises
    ------
    InputError
        If links wait for each other, packets were dropped that are never sent again, or the run is too long.
    PhysicsError
        If nothing can happen any more for another reason. This is a bug in commsim.
    """
    if not is_interpreted(run_kernel):
        compile_all()
    fabric, jobs = tables
    state = fabric.state
    unfinished, state["n_unfinished"] = int(state["n_unfinished"]), 0
    run_kernel(fabric, jobs)  # compiles, or loads, before the clock starts
    state["n_unfinished"] = unfinished
    began = process_time()
    for stop in stops:
        stop.begin(fabric)
    _set_stop(fabric, stops)
    begin_run(fabric, jobs, worker_starts)
    pauses = bool(fabric.link["xoff"].any())
    state["look_at"] = LOOK_EVERY if pauses else NEVER
    while (why := run_kernel(fabric, jobs)) in (FULL, CHANGE):
        if why == CHANGE:
            now = min(stop.next for stop in stops)
            for stop in stops:
                if stop.next <= now:
                    fabric = stop.make(fabric)
            _set_stop(fabric, stops)
            continue
        if pauses and deadlocked(fabric):
            break
        state["look_at"] = state["now"] + LOOK_EVERY if pauses else NEVER
        fabric, jobs = _with_room(fabric, jobs)
        if state["n_log"] + MARGIN > len(jobs.log):
            began += _seconds_of_reading(Tables(fabric, jobs), read_log)
    if why == TOO_LATE:
        raise InputError(
            f"packets are simulated for up to {LAST_TIME / PS / 86400:.0f} days, and have not all arrived by then: use "
            "the flow engine, or shorter latencies"
        )
    took, tables = process_time() - began, Tables(fabric, jobs)
    if why != DONE:
        _refuse(tables, laid.network, laid.ways)
    _seconds_of_reading(tables, read_log)
    return tables, took


def _seconds_of_reading(tables: Tables, read_log: Callable[[Tables], None] | None) -> float:
    """Have the log read, empty it, and return how much processor time that took."""
    began = process_time()
    if read_log is not None:
        read_log(tables)
    tables.fabric.state["n_log"] = 0
    return process_time() - began


def _refuse(tables: Tables, network: Network, ways: EqualCostWays) -> None:
    """Raise an error that says why flows or workers never finished.

    Raises
    ------
    InputError
        If links wait for each other, or packets were dropped that are never sent again.
    PhysicsError
        If nothing can happen any more for another reason. This is a bug in commsim.
    """
    state = tables.fabric.state
    left = f"{state['n_unfinished']} messages or workers never finished"
    if state["drops_full"] and (tables.jobs.job["rto"] == 0).any():
        raise InputError(
            f"{left}: a switch system never repeats a packet, and {state['drops_full']} were dropped at full queues of "
            f"{network.name}; give larger buffers"
        )
    if cycle := deadlocked(tables.fabric):
        raise InputError(
            f"{left}: links that are paused (PFC) wait for each other in a cycle, "
            f"{cycle_text(ways.links[cycle].tolist(), network)}; pause later, or route without cycles"
        )
    raise PhysicsError(f"deadlock: {left}")


def _with_room(fabric: RunState, jobs: AggregationState) -> Tables:
    """Double what is nearly full."""
    state = fabric.state
    if state["n_free"] < state["most_needed"]:
        n = len(fabric.packet)
        if n > MAX_PACKETS // 2 or (n >= MAX_COPIES and state["retransmissions"] > n // 2):
            raise InputError(
                f"{n} packets are on their way at once: they are repeated (rto) faster than links can send them, or "
                "windows are too large"
            )
        fabric = with_more_packets(fabric)
        jobs = with_packets(jobs, len(fabric.packet) - n)
    width = rows_of.N_COUNTED + 2 * len(fabric.watched)
    fabric = fabric._replace(
        sample=more_records("sample", fabric.sample, state["n_samples"] * width, width, state["now"])
    )
    fabric = fabric._replace(tap=more_records("tap", fabric.tap, state["n_tapped"], MARGIN, state["now"]))
    return Tables(fabric, jobs)


def _set_stop(fabric: RunState, stops: Sequence[Stop]) -> None:
    """Let the run stop when something is due next, unless that is later than the run may last."""
    when = min((stop.next for stop in stops), default=np.inf) * PS
    if when < LAST_TIME:
        queue = fabric.events
        schedule(queue, len(queue.event) - 1, round(when))
