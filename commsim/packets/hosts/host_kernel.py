"""The main loop: one event after the other; what a host does with what arrives, and its links.

Everything that can happen next has a fixed number, and at most one pending time: a link has sent its packet, the first
packet on its way along a link arrives, a pause takes effect, a timer of a flow fires, a receiver gives credit or
reconsiders its rate, a timer of a worker fires, links change. Equal times are served in the order of these numbers.
Links of switches mostly need no event when a packet leaves: they are served up to the present when looked at.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import njit_norefcount
from commsim.packets import codes
from commsim.packets.aggregated.taking_kernel import take
from commsim.packets.aggregated.traffic_state import AggregationState
from commsim.packets.aggregated.worker_kernel import on_worker_timer
from commsim.packets.event_rows import LAST_TIME, NEVER
from commsim.packets.hosts.progress_kernel import on_added, on_go, on_left, on_timeout, take_messages
from commsim.packets.hosts.receiver_kernel import on_arrival, on_request
from commsim.packets.hosts.sender_kernel import arm, get_ready, make_packet, may_send, on_answer
from commsim.packets.links.class_kernel import take_first
from commsim.packets.links.looking_kernel import look, look_ahead
from commsim.packets.links.loss_kernel import is_lost
from commsim.packets.links.overhead_kernel import keeps_path
from commsim.packets.links.port_kernel import (
    answer,
    await_arrival,
    begin_sending,
    depart,
    enqueue,
    leave_queue,
    record_flow,
    serve,
    start,
    take_high,
)
from commsim.packets.links.posting_kernel import free_packet, post_first, take_packet
from commsim.packets.links.switch_kernel import choose
from commsim.packets.links.wheel_kernel import next_event, schedule
from commsim.packets.packet_rows import N_COUNTED, RunState
from commsim.packets.rule_kernel import rules_for
from commsim.packets.transports.credit_kernel import give, reconsider

AT_A_TIME = 1 << 24  # events; some seconds
MARGIN = 8  # records that one event may write at most, to the log or of tapped links


@njit_norefcount
def run(fabric: RunState, jobs: AggregationState) -> int:
    """Simulate until all flows and workers have finished.

    Parameters
    ----------
    fabric, jobs : RunState, AggregationState
        All state; a run that returned FULL goes on, when the packets' table has grown, or the log is empty, if it was.

    Returns
    -------
    int
        DONE, FULL (which also comes now and then, to hear of Ctrl-C), CHANGE when links are to change now, STUCK when
        nothing is left that could happen, or TOO_LATE after the last time that can be counted.
    """
    state = fabric.state
    n_hosts, n_links = state["n_hosts"], len(fabric.link)
    first_timer, first_pacer = state["first_timer"], state["first_pacer"]
    first_rate, first_worker_timer = state["first_rate"], state["first_worker_timer"]
    change = len(fabric.events.event) - 1
    width = N_COUNTED + 2 * len(fabric.watched)
    left = AT_A_TIME
    while state["n_unfinished"] > 0:
        left -= 1
        if (
            left < 0
            or state["n_free"] < state["most_needed"]
            or (state["n_samples"] + 1) * width > len(fabric.sample)
            or state["n_log"] + MARGIN > len(jobs.log)
            or state["n_tapped"] + MARGIN > len(fabric.tap)
        ):
            return codes.FULL
        number = next_event(fabric.events)
        if number < 0:
            return codes.STUCK
        now = fabric.events.event[number]["when"]
        state["now"] = now
        if now > LAST_TIME:
            return codes.TOO_LATE
        look_ahead(fabric)
        if now >= state["sample_at"]:
            look(fabric, now)
        h = -1
        if number < n_links:
            h = _leave(fabric, number, now)
        elif number < 2 * n_links:
            h = _arrive(fabric, jobs, number - n_links, now)
        elif number < first_timer:
            h = _pause(fabric, number - 2 * n_links, now)
        elif number < first_pacer:
            h = _on_flow_timer(fabric, number - first_timer, now)
            if now >= state["look_at"]:
                left = 0  # timers go on for ever where pauses do
        elif number < first_rate:
            _grant(fabric, number - first_pacer, now)
        elif number < first_worker_timer:
            reconsider(fabric, number - first_rate, now)
            schedule(fabric.events, number, fabric.host[number - first_rate]["rate_at"])
        elif number < change:
            on_worker_timer(fabric, jobs, number - first_worker_timer)
        else:
            return codes.CHANGE
        is_sent = True
        while is_sent:  # one place for each call: they are inlined, with much of the engine within them
            is_sent = state["sent_head"] >= 0
            at = _queue_sent(fabric, now) if is_sent else h
            if at >= 0 and fabric.link[at]["serving"] < 0:
                _start(fabric, at, now)
    for i in range(n_hosts, n_links):
        if not fabric.link[i]["evented"]:
            serve(fabric, i, state["now"])
    return codes.DONE


@njit_norefcount
def begin_run(fabric: RunState, jobs: AggregationState, starts: NDArray[np.int64]) -> None:
    """Set the first events: flows look whether a message may start, receivers at their rates, and workers begin.

    Parameters
    ----------
    fabric, jobs : RunState, AggregationState
        All tables.
    starts : int64[n_workers], ps
        Time at which each worker begins.
    """
    state = fabric.state
    for f in range(len(fabric.flow)):
        arm(fabric, f, codes.GO, fabric.flow[f]["ready"])
    for h in range(state["n_hosts"]):
        if fabric.host[h]["rate_at"] < NEVER:
            schedule(fabric.events, state["first_rate"] + h, fabric.host[h]["rate_at"])
    for number in range(len(starts)):
        jobs.worker[number]["timer_pending"] = True
        schedule(fabric.events, state["first_worker_timer"] + number, starts[number])


@njit_norefcount
def _leave(fabric: RunState, i: int, now: int) -> int:
    """Let the packet that a link has sent go on its way; return the link if it is a host's, which chooses the next.

    The last new packet of a message ends that one's turn.
    """
    if i >= fabric.state["n_hosts"]:
        serve(fabric, i, now)
        return -1
    link = fabric.link[i]
    p = link["serving"]
    link["serving"] = -1
    packet = fabric.packet[p]
    is_new = packet["kind"] == codes.DATA and packet["came_over"] < 0
    if not is_new:
        leave_queue(fabric, i, p)
    depart(fabric, i, p)
    if not is_new:
        return i
    f = packet["flow"]
    if packet["flags"] & (codes.LAST | codes.RESENT) == codes.LAST:
        on_left(fabric, f, now)
    if rules_for(fabric, f)["on_path"]:  # an answer goes before the flow's next turn
        fabric.flow[f]["n_ready"] -= 1
        get_ready(fabric, f)
    return i


@njit_norefcount
def _arrive(fabric: RunState, jobs: AggregationState, i: int, now: int) -> int:
    """Take the first packet off a link, to its switch or host; return a host's link that may have something to send."""
    link, packet = fabric.link[i], fabric.packet
    n_hosts = fabric.state["n_hosts"]
    link["awaited"] = False
    if i >= n_hosts and not link["evented"]:
        serve(fabric, i, now)
    p = link["pipe_head"]
    if p >= 0 and packet[p]["when"] <= now:
        link["pipe_head"] = packet[p]["next"]
    else:  # what was awaited was lost when the link went down
        p = -1
    await_arrival(fabric, i)
    if p < 0:
        return -1
    fabric.state["packet_hops"] += 1
    fabric.state["events"] += 2  # it left, and it arrives
    if link["lossy"] and is_lost(fabric, i):
        link["n_dropped"] += 1
        fabric.state["drops_loss"] += 1
        record_flow(fabric, i, p, codes.AT_LOSS)
        free_packet(fabric, p)
        return -1
    one = packet[p]
    on_path = keeps_path(one)
    is_there = fabric.route[one["hop"]]["last"] != 0 if on_path else link["to"] < n_hosts
    if is_there and on_path and one["kind"] >= codes.CONTRIBUTION:
        take(fabric, jobs, p)
        return -1
    if is_there:
        return _receive(fabric, p, now)
    one["came_over"] = i
    one["hop"] += on_path
    one["when"] = fabric.route[one["hop"]]["link"] if on_path else choose(fabric, link["to"] - n_hosts, p)
    post_first(fabric, p)
    return -1


@njit_norefcount
def _pass_on(fabric: RunState, i: int, p: int, now: int) -> int:
    """Queue a packet at the link that it takes next; return the link if it is a host's."""
    if i < fabric.state["n_hosts"]:
        enqueue(fabric, i, p)
        return i
    if not fabric.link[i]["evented"]:
        serve(fabric, i, now)
    enqueue(fabric, i, p)
    if fabric.link[i]["serving"] < 0:
        start(fabric, i, now)
    return -1


@njit_norefcount
def _queue_sent(fabric: RunState, now: int) -> int:
    """Queue the first of the packets that this event has sent, in the order in which it did; return a host's link."""
    state = fabric.state
    p = state["sent_head"]
    packet = fabric.packet[p]
    state["sent_head"] = packet["next"]
    i = packet["when"]
    if packet["kind"] >= codes.CONTRIBUTION:
        i = fabric.route[packet["hop"]]["link"]
    return _pass_on(fabric, i, p, now)


@njit_norefcount
def _pause(fabric: RunState, i: int, now: int) -> int:
    """Let a link do what its other end asked for one propagation delay ago; return it if it is a host's."""
    link = fabric.link[i]
    link["pause_pending"] = False
    if link["pausing"] & ~link["paused"]:
        fabric.state["n_pauses"] += 1
    link["paused"] = link["pausing"]
    if i < fabric.state["n_hosts"]:
        return i
    if link["serving"] < 0:
        start(fabric, i, now)
    return -1


@njit_norefcount
def _on_flow_timer(fabric: RunState, timer: int, now: int) -> int:
    """Let a timer of a flow fire; return the host whose link may have something to send."""
    n_flows = len(fabric.flow)
    f, kind = timer % n_flows, timer // n_flows
    flow = fabric.flow[f]
    flow["pending"] ^= 1 << kind
    if kind == codes.GO:
        on_go(fabric, f, now)
    elif kind == codes.ADDED:
        on_added(fabric, f, now)
        return -1
    else:
        on_timeout(fabric, f, now)
    return int(flow["src"])


@njit_norefcount
def _receive(fabric: RunState, p: int, now: int) -> int:
    """Take a packet of a flow at the host that it is for; return the link of the flow that heard of it, or -1."""
    kind, f = fabric.packet[p]["kind"], fabric.packet[p]["flow"]
    h = -1
    if kind <= codes.TRIMMED:
        on_arrival(fabric, p, now)
        take_messages(fabric, f, now)
    elif kind == codes.REQUEST:
        on_request(fabric, p, now)
    else:
        on_answer(fabric, p, now)
        h = int(fabric.flow[f]["src"])
    free_packet(fabric, p)
    return h


@njit_norefcount
def _grant(fabric: RunState, h: int, now: int) -> None:
    """Send credit to the next message in line."""
    f = give(fabric, h, now)
    if f < 0:
        return
    p = take_packet(fabric)
    packet, flow, rules = fabric.packet[p], fabric.flow[f], rules_for(fabric, f)
    packet["kind"], packet["flow"], packet["number"], packet["flags"] = codes.PULL, f, 0, 0
    packet["size"], packet["amount"], packet["sent"] = rules["answer"], flow["given"], now
    answer(fabric, p, fabric.state["n_pulls"] % rules["entropies"])
    fabric.state["n_pulls"] += 1


@njit_norefcount
def _start(fabric: RunState, h: int, now: int) -> None:
    """Begin to send a host's next packet: an answer, or what comes next in its queue."""
    p = take_high(fabric, h)
    while p < 0:
        p = take_first(fabric, h)
        if p < 0:
            return
        packet = fabric.packet[p]
        if packet["kind"] == codes.DATA and packet["number"] < 0 and not _take_turn(fabric, h, p, now):
            free_packet(fabric, p)
            p = -1
    begin_sending(fabric, h, p, now)


@njit_norefcount
def _take_turn(fabric: RunState, h: int, p: int, now: int) -> bool:
    """Make the packet of a flow whose turn it is; return whether it has one now."""
    f = fabric.packet[p]["flow"]
    flow = fabric.flow[f]
    fabric.host[h]["n_ready"] -= 1
    waits = flow["free_at"] > now
    if waits or not may_send(fabric, f):
        flow["n_ready"] -= 1
        if waits:
            arm(fabric, f, codes.GO, flow["free_at"])
        return False
    make_packet(fabric, f, p, now)
    if not rules_for(fabric, f)["on_path"]:
        flow["n_ready"] -= 1
        get_ready(fabric, f)
    return True
