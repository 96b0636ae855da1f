"""The main loop: one event after the other, until all is done or a table is full."""

from __future__ import annotations

from typing import Any

from commsim.core.jit import njit_norefcount

from .aggregator_kernel import on_contribution, on_result, on_server, on_unit
from .link_kernel import arrive, leave, pause, queue_sent
from .message_state import GO
from .packet_state import (
    ACK,
    CONTRIBUTION,
    DATA,
    DONE,
    FULL,
    N_BUSY_SLOTS,
    N_FREE,
    N_LINKS,
    N_LOG,
    N_SAMPLES,
    N_TAPPED,
    N_UNFINISHED,
    NEXT_SAMPLE,
    NOW,
    QUEUED,
    SAMPLE_EVERY,
    STUCK,
    TO_AGGREGATOR,
    TO_SERVER,
    TO_UNIT,
    TO_WORKER,
)
from .receiver_kernel import on_data
from .sender_kernel import arm, go_on, on_ack, on_flow_timer, on_left
from .wheel_kernel import next_event, schedule
from .worker_kernel import on_worker_result, on_worker_timer

AT_A_TIME = 1 << 24  # events; about 5 seconds


@njit_norefcount
def run(t: Any, margin: int) -> int:
    """Play until everybody has finished.

    Parameters
    ----------
    t : Tables
        All state; a run that returned FULL goes on when a table has grown, or was stopped to hear of Ctrl-C.
    margin : int
        Packets that one event may need at most; log records are at most 8.

    Returns
    -------
    int
        DONE, FULL, or STUCK when nothing is left that could happen.
    """
    clock = t.clock
    n_links = clock[N_LINKS]
    first_flow_timer = 3 * n_links + len(t.worker)
    left = AT_A_TIME
    while clock[N_UNFINISHED] > 0:
        left -= 1
        if (
            left < 0
            or clock[N_FREE] < margin
            or clock[N_LOG] + 8 > len(t.log)
            or clock[N_TAPPED] == len(t.tap)
            or clock[N_SAMPLES] == len(t.sample)
        ):
            return FULL
        number = next_event(t)
        if number < 0:
            return STUCK
        if clock[NOW] >= clock[NEXT_SAMPLE]:
            _sample(t)
        flow = -1
        if number < n_links:
            p = leave(t, number)
            if p >= 0:
                flow = on_left(t, p)
        elif number < 2 * n_links:
            p = arrive(t, number - n_links)
            if p >= 0:
                kind = t.packet[p]["kind"]
                if kind == DATA:
                    on_data(t, p)
                elif kind == ACK:
                    flow = on_ack(t, p)
                else:
                    _deliver(t, p)
        elif number < 3 * n_links:
            pause(t, number - 2 * n_links)
        elif number < first_flow_timer:
            on_worker_timer(t, number - 3 * n_links)
        else:
            flow = on_flow_timer(t, number - first_flow_timer)
        if flow >= 0:
            go_on(t, flow)
        queue_sent(t)
    return DONE


@njit_norefcount
def start_flows(t: Any) -> None:
    """Let every flow look, when both its ends have entered the collective, whether a message may start."""
    for f in range(len(t.flow)):
        arm(t, f, GO, t.flow[f]["ready"])


@njit_norefcount
def start(t: Any, starts: Any) -> None:
    """Set the time at which each worker begins, in picoseconds."""
    for number in range(len(starts)):
        t.worker[number]["timer_pending"] = True
        schedule(t, 3 * t.clock[N_LINKS] + number, starts[number])


@njit_norefcount
def _deliver(t: Any, p: int) -> None:
    """Give a packet to whoever is at the end of its stream."""
    target = t.stream[t.packet[p]["stream"]]["target"]
    if target == TO_WORKER:
        on_worker_result(t, p)
    elif target == TO_AGGREGATOR:
        if t.packet[p]["kind"] == CONTRIBUTION:
            on_contribution(t, p)
        else:
            on_result(t, p)
    elif target == TO_SERVER:
        on_server(t, p)
    elif target == TO_UNIT:
        on_unit(t, p)


@njit_norefcount
def _sample(t: Any) -> None:
    row = t.sample[t.clock[N_SAMPLES]]
    row["time"] = t.clock[NOW]
    row["busy_slots"] = t.clock[N_BUSY_SLOTS]
    row["queued"] = t.clock[QUEUED]
    t.clock[N_SAMPLES] += 1
    t.clock[NEXT_SAMPLE] = t.clock[NOW] + t.clock[SAMPLE_EVERY]
