"""The main loop: one event after the other, until all is done or a table is full."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import njit_norefcount

from .aggregator_kernel import on_contribution, on_result, on_server, on_unit
from .flow_kernel import arm, go_on, on_ack, on_added, on_data, on_flow_timer, on_left
from .link_kernel import arrive, leave, pause, queue_sent
from .packet_state import (
    ACK,
    CHANGE,
    CONTRIBUTION,
    DATA,
    DONE,
    FULL,
    STUCK,
    TO_AGGREGATOR,
    TO_SERVER,
    TO_UNIT,
    TO_WORKER,
    Links,
)
from .timed_kernel import settle
from .traffic_state import ADDED, GO, Flows, Jobs
from .wheel_kernel import next_event, schedule
from .worker_kernel import on_worker_result, on_worker_timer

AT_A_TIME = 1 << 24  # events; about 5 seconds


@njit_norefcount
def run(links: Links, jobs: Jobs, flows: Flows, margin: int) -> int:
    """Simulate until all workers and messages have finished.

    Parameters
    ----------
    links, jobs, flows : Links, Jobs, Flows
        All state; a run that returned FULL goes on when a table has grown, or stopped to hear of Ctrl-C and look for
        deadlock.
    margin : int
        Packets that one event may need at most; log records are at most 8.

    Returns
    -------
    int
        DONE, FULL, CHANGE when links are to change now, or STUCK when nothing is left that could happen.
    """
    state = links.state
    n_links, first_flow_timer = state["n_links"], state["first_flow_timer"]
    left = AT_A_TIME
    while state["n_unfinished"] > 0:
        left -= 1
        if (
            left < 0
            or state["n_free"] < margin
            or state["n_log"] + 8 > len(jobs.log)
            or state["n_tapped"] == len(links.tap)
            or state["n_samples"] == len(links.sample)
        ):
            return FULL
        number = next_event(links.events)
        if number < 0:
            return STUCK
        state["now"] = links.events.event[number]["when"]
        if state["now"] >= state["next_sample"]:
            _sample(links)
        flow = -1
        if number < n_links:
            p = leave(links, number)
            if p >= 0:
                flow = on_left(links, flows, p)
        elif number < 2 * n_links:
            p = arrive(links, number - n_links)
            if p >= 0:
                kind = links.packet[p]["kind"]
                if kind == DATA:
                    on_data(links, flows, p)
                elif kind == ACK:
                    flow = on_ack(links, flows, p)
                else:
                    _deliver(links, jobs, p)
        elif number < 3 * n_links:
            pause(links, number - 2 * n_links)
        elif number < first_flow_timer:
            on_worker_timer(links, jobs, number - state["first_worker_timer"])
        elif number == state["change_event"]:
            return CHANGE
        elif number >= first_flow_timer + ADDED * len(flows.flow):
            on_added(links, flows, number - first_flow_timer - ADDED * len(flows.flow))
        else:
            flow = on_flow_timer(links, flows, number - first_flow_timer)
            if state["now"] >= state["look_at"]:
                left = 0  # timers go on for ever where pauses do
        if flow >= 0:
            go_on(links, flows, flow)
        queue_sent(links)
    for number in range(n_links):
        if links.link[number]["timed"]:
            settle(links, links.link[number])
    return DONE


@njit_norefcount
def start_flows(links: Links, flows: Flows) -> None:
    """Let every flow look, when both its ends have entered the collective, whether a message may start."""
    for f in range(len(flows.flow)):
        arm(links, flows, f, GO, flows.flow[f]["ready"])


@njit_norefcount
def start_workers(links: Links, jobs: Jobs, starts: NDArray[np.int64]) -> None:
    """Set the time at which each worker begins, in picoseconds."""
    for number in range(len(starts)):
        jobs.worker[number]["timer_pending"] = True
        schedule(links.events, links.state["first_worker_timer"] + number, starts[number])


@njit_norefcount
def _deliver(links: Links, jobs: Jobs, p: int) -> None:
    """Handle a packet of an aggregation job at the end of its stream."""
    target = links.stream[links.packet[p]["stream"]]["target"]
    if target == TO_WORKER:
        on_worker_result(links, jobs, p)
    elif target == TO_AGGREGATOR:
        if links.packet[p]["kind"] == CONTRIBUTION:
            on_contribution(links, jobs, p)
        else:
            on_result(links, jobs, p)
    elif target == TO_SERVER:
        on_server(links, jobs, p)
    elif target == TO_UNIT:
        on_unit(links, jobs, p)


@njit_norefcount
def _sample(links: Links) -> None:
    state = links.state
    row = links.sample[state["n_samples"]]
    row["time"], row["busy_slots"], row["queued"] = state["now"], state["busy_slots"], state["queued"]
    state["n_samples"] += 1
    state["next_sample"] = state["now"] + state["sample_every"]
