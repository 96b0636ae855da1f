"""A host within a span: its arrivals, its link, its pacer and its timers, one after the other; and the run of all."""

from __future__ import annotations

from commsim.core.jit import njit_norefcount

from .credit_kernel import ask, give, pull, reconsider
from .fabric_state import (
    CHANGE,
    DATA,
    DONE,
    FIRST,
    FULL,
    LAST,
    N_COUNTED,
    NEVER,
    PULL,
    REQUEST,
    RESENT,
    STUCK,
    TRIMMED,
    Fabric,
)
from .port_kernel import depart, free_packet, queue_answer, serve, take_packet
from .progress_kernel import on_added, on_left, on_timer, take_messages, wake
from .receiver_kernel import on_arrival
from .sender_kernel import get_ready, may_send, on_answer, send
from .switch_kernel import pass_on

AT_A_TIME = 1 << 24  # packets passed on; about a second


@njit_norefcount
def run(fabric: Fabric) -> int:
    """Simulate span after span until all messages have finished.

    Parameters
    ----------
    fabric : Fabric
        All state; a run that returned FULL goes on, when the packets' table has grown if it was.

    Returns
    -------
    int
        DONE, FULL (which also comes now and then, to hear of Ctrl-C), CHANGE when links are to change now, or STUCK
        when nothing is left that could happen.
    """
    state = fabric.state
    enough = state["n_hops"] + AT_A_TIME
    while state["n_unfinished"] > 0:
        if state["now"] >= state["stop_at"] and state["next_host"] == 0:
            return CHANGE
        if state["n_live"] == 0 and not _skip(fabric):
            return STUCK
        if state["next_host"] == 0:
            for switch in range(state["n_switches"]):
                pass_on(fabric, switch)
        while state["next_host"] < state["n_hosts"]:
            if state["n_free"] < state["most_needed"]:
                return FULL
            live(fabric, state["next_host"])
            state["next_host"] += 1
        state["next_host"] = 0
        end = state["now"] + state["span"]
        for i in range(state["n_hosts"], len(fabric.link)):
            if fabric.link[i]["serving"] >= 0 and fabric.link[i]["done"] < end:
                serve(fabric, i, end - 1)
        state["now"] = end
        wake(fabric, end)
        if end > state["sample_at"]:
            look(fabric, end)
        width = N_COUNTED + 2 * len(fabric.watched)
        if state["n_hops"] > enough or state["n_samples"] * width >= len(fabric.sample):
            return FULL
    return DONE


@njit_norefcount
def look(fabric: Fabric, now: int) -> None:
    """Write down counts, what waits before the links that are watched, less what is being sent, and what has left."""
    state, n = fabric.state, len(fabric.watched)
    at = state["n_samples"] * (N_COUNTED + 2 * n)
    fabric.sample[at] = now
    fabric.sample[at + 1] = state["n_resent"]
    fabric.sample[at + 2] = state["n_trimmed"]
    fabric.sample[at + 3] = state["n_marked"]
    for k in range(n):
        link = fabric.link[fabric.watched[k]]
        going = fabric.packet[link["serving"]]["size"] if link["serving"] >= 0 else 0
        fabric.sample[at + N_COUNTED + k] = max(0, link["low"] + link["high"] - going)
        fabric.sample[at + N_COUNTED + n + k] = link["n_bytes"]
    state["n_samples"] += 1
    state["sample_at"] += (
        (now - state["sample_at"] + state["sample_every"]) // state["sample_every"] * state["sample_every"]
    )


@njit_norefcount
def _skip(fabric: Fabric) -> bool:
    """Go to the span in which a host does something next, when no packet is under way; return whether there is one."""
    state = fabric.state
    first = NEVER
    for h in range(state["n_hosts"]):
        host = fabric.host[h]
        first = min(first, host["timer"], host["pacer"], host["wake"], host["added_at"])
    if first == NEVER:
        return False
    if first > state["now"]:
        state["now"] += (first - state["now"]) // state["span"] * state["span"]
    return True


@njit_norefcount
def live(fabric: Fabric, h: int) -> None:
    """Let a host do what it does within the present span; of equal times, what leaves goes before what arrives.

    Parameters
    ----------
    fabric : Fabric
        All state; changed in place.
    h : int
        The host.
    """
    host, packet = fabric.host[h], fabric.packet
    up, down = fabric.link[host["up"]], fabric.link[host["down"]]
    end = fabric.state["now"] + fabric.state["span"]
    while True:
        sent = up["done"] if up["serving"] >= 0 else NEVER
        p = down["pipe_head"]
        arrival = packet[p]["when"] if p >= 0 else NEVER
        now = min(sent, arrival, host["pacer"], host["timer"], host["rate_at"], host["wake"], host["added_at"])
        if now >= end:
            return
        if now == sent:
            _send_off(fabric, h, now)
        elif now == arrival:
            down["pipe_head"] = packet[p]["after"]
            _receive(fabric, h, p, now)
        elif now == host["added_at"]:
            on_added(fabric, h, now)
        elif now == host["pacer"]:
            _grant(fabric, h, now)
        elif now == host["timer"]:
            on_timer(fabric, h, now)
        elif now == host["rate_at"]:
            reconsider(fabric, h, now)
        else:
            host["wake"] = NEVER
        if up["serving"] < 0:
            _start(fabric, h, now)


@njit_norefcount
def _send_off(fabric: Fabric, h: int, now: int) -> None:
    """Let the packet that a host has sent go on its way; the last new one of a message ends that one's turn."""
    up = fabric.link[fabric.host[h]["up"]]
    p = up["serving"]
    depart(fabric, fabric.host[h]["up"], p)
    up["serving"] = -1
    packet = fabric.packet[p]
    if packet["kind"] == DATA and packet["flags"] & (LAST | RESENT) == LAST:
        on_left(fabric, h, packet["flow"], now)


@njit_norefcount
def _receive(fabric: Fabric, h: int, p: int, now: int) -> None:
    kind, f = fabric.packet[p]["kind"], fabric.packet[p]["flow"]
    if kind <= TRIMMED:
        on_arrival(fabric, p, now)
        take_messages(fabric, h, f, now)
    elif kind == REQUEST:
        ask(fabric, f, fabric.packet[p]["amount"], now)
        pull(fabric, f, now)
    else:
        on_answer(fabric, p, now)
    free_packet(fabric, p)


@njit_norefcount
def _grant(fabric: Fabric, h: int, now: int) -> None:
    """Send credit to the next message in line."""
    f = give(fabric, h, now)
    if f < 0:
        return
    p = take_packet(fabric)
    packet, flow = fabric.packet[p], fabric.flow[f]
    packet["kind"], packet["flow"], packet["number"], packet["flags"] = PULL, f, 0, 0
    packet["size"], packet["amount"], packet["sent"] = fabric.rules["header"], flow["given"], now
    packet["target"] = flow["src"]
    packet["entropy"] = fabric.state["n_pulls"] % fabric.rules["entropies"]
    fabric.state["n_pulls"] += 1
    queue_answer(fabric, h, p)


@njit_norefcount
def _start(fabric: Fabric, h: int, now: int) -> None:
    """Begin to send a host's next packet: an answer, or data of the messages in turn."""
    host = fabric.host[h]
    up = fabric.link[host["up"]]
    p = host["control_head"]
    if p >= 0:
        host["control_head"] = fabric.packet[p]["after"]
    left = host["n_ready"]
    while p < 0 and left > 0:
        left -= 1
        f = host["ready_head"]
        host["ready_head"] = fabric.flow[f]["next_ready"]
        host["n_ready"] -= 1
        fabric.flow[f]["is_ready"] = False
        if fabric.flow[f]["free_at"] > now:
            host["wake"] = min(host["wake"], fabric.flow[f]["free_at"])
            get_ready(fabric, f)
        elif may_send(fabric, f):
            p = send(fabric, f, now)
            get_ready(fabric, f)
    if p >= 0:
        up["serving"] = p
        up["done"] = now + int(fabric.packet[p]["size"] * up["ps_per_byte"])
        if fabric.packet[p]["kind"] == DATA and fabric.packet[p]["flags"] & FIRST:
            up["done"] += up["first_time"]
