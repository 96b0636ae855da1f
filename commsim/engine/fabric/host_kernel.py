"""The main loop of sprayed fabrics: one event after the other; what a host does with what arrives, and its link.

Everything that can happen next has a fixed number, and at most one pending time: a host has sent a packet, the first
packet on its way along a link arrives, a timer of a flow fires, a receiver gives credit or reconsiders its rate, links
change. Equal times are served in the order of these numbers. Links of switches need no event when a packet leaves: they
are served up to the present when somebody comes to them.
"""

from __future__ import annotations

from commsim.core.jit import njit_norefcount
from commsim.engine.packet.traffic_state import ADDED, GO
from commsim.engine.packet.wheel_kernel import next_event, schedule

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
from .port_kernel import await_arrival, depart, free_packet, queue_answer, serve, take_packet
from .progress_kernel import on_added, on_go, on_left, on_timeout, take_messages
from .receiver_kernel import on_arrival
from .sender_kernel import arm, get_ready, may_send, on_answer, send
from .switch_kernel import pass_on

AT_A_TIME = 1 << 24  # events; some seconds


@njit_norefcount
def run(fabric: Fabric) -> int:
    """Simulate until all flows have finished.

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
    n_hosts, n_links, n_flows = state["n_hosts"], len(fabric.link), len(fabric.flow)
    first_timer = n_hosts + n_links
    first_pacer = first_timer + (ADDED + 1) * n_flows
    width = N_COUNTED + 2 * len(fabric.watched)
    left = AT_A_TIME
    while state["n_unfinished"] > 0:
        left -= 1
        if left < 0 or state["n_free"] < state["most_needed"] or state["n_samples"] * width >= len(fabric.sample):
            return FULL
        number = next_event(fabric.events)
        if number < 0:
            return STUCK
        now = fabric.events.event[number]["when"]
        state["now"] = now
        _look_ahead(fabric)
        if now >= state["sample_at"]:
            look(fabric, now)
        if number < n_hosts:
            h = number
            _send_off(fabric, h, now)
        elif number < first_timer:
            h = _arrive(fabric, number - n_hosts, now)
        elif number < first_pacer:
            h = _on_flow_timer(fabric, number - first_timer, now)
        elif number < first_pacer + n_hosts:
            h = number - first_pacer
            _grant(fabric, h, now)
        elif number < first_pacer + 2 * n_hosts:
            h = number - first_pacer - n_hosts
            reconsider(fabric, h, now)
            schedule(fabric.events, number, fabric.host[h]["rate_at"])
        else:
            return CHANGE
        if h >= 0 and fabric.link[fabric.host[h]["up"]]["serving"] < 0:
            _start(fabric, h, now)
    for i in range(n_hosts, n_links):
        serve(fabric, i, state["now"])
    return DONE


@njit_norefcount
def _look_ahead(fabric: Fabric) -> None:
    """Bring what the next events need into the cache, while the present one is served.

    With thousands of hosts a packet's time is mostly that of memory; an event knows no more of the next than its link.
    """
    queue, n_hosts, n_links = fabric.events, fabric.state["n_hosts"], len(fabric.link)
    number = queue.wheel["open_head"]
    if number < 0:
        return
    i = number - n_hosts
    touched = 0
    if 0 <= i < n_links:
        p = fabric.link[i]["pipe_head"]
        touched = fabric.link[i]["low"]
        if p >= 0:
            touched += fabric.packet[p]["after"]
    number = queue.event[number]["after"]
    i = number - n_hosts
    if 0 <= i < n_links:
        touched += fabric.link[i]["low"]
        touched += fabric.link[i]["pipe_head"]
    fabric.state["touched"] = touched


@njit_norefcount
def begin_run(fabric: Fabric) -> None:
    """Set the first events: flows look whether a message may start, receivers at their rates."""
    first_rate = fabric.state["n_hosts"] + len(fabric.link) + (ADDED + 1) * len(fabric.flow) + fabric.state["n_hosts"]
    for f in range(len(fabric.flow)):
        arm(fabric, f, GO, fabric.flow[f]["ready"])
    for h in range(fabric.state["n_hosts"]):
        if fabric.host[h]["rate_at"] < NEVER:
            schedule(fabric.events, first_rate + h, fabric.host[h]["rate_at"])


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
        if fabric.watched[k] >= state["n_hosts"]:
            serve(fabric, fabric.watched[k], now - 1)
        link = fabric.link[fabric.watched[k]]
        going = fabric.packet[link["serving"]]["size"] if link["serving"] >= 0 else 0
        fabric.sample[at + N_COUNTED + k] = max(0, link["low"] + link["high"] - going)
        fabric.sample[at + N_COUNTED + n + k] = link["n_bytes"]
    state["n_samples"] += 1
    state["sample_at"] += (
        (now - state["sample_at"] + state["sample_every"]) // state["sample_every"] * state["sample_every"]
    )


@njit_norefcount
def _arrive(fabric: Fabric, i: int, now: int) -> int:
    """Take the first packet off a link, to its switch or host; return the host, or -1."""
    link, packet = fabric.link[i], fabric.packet
    n_hosts = fabric.state["n_hosts"]
    link["awaited"] = False
    if i >= n_hosts:
        serve(fabric, i, now)
    p = link["pipe_head"]
    if p >= 0 and packet[p]["when"] <= now:
        link["pipe_head"] = packet[p]["after"]
    else:  # what was awaited was lost when the link went down
        p = -1
    await_arrival(fabric, i)
    if p < 0:
        return -1
    to = link["to"]
    if to >= n_hosts:
        pass_on(fabric, to - n_hosts, p, now)
        return -1
    _receive(fabric, p, now)
    return int(to)


@njit_norefcount
def _on_flow_timer(fabric: Fabric, timer: int, now: int) -> int:
    """Let a timer of a flow fire; return the host whose link may have something to send."""
    n_flows = len(fabric.flow)
    f, kind = timer % n_flows, timer // n_flows
    flow = fabric.flow[f]
    flow["pending"] ^= 1 << kind
    if kind == GO:
        on_go(fabric, f, now)
    elif kind == ADDED:
        on_added(fabric, f, now)
        return int(flow["dst"])
    else:
        on_timeout(fabric, f, now)
    return int(flow["src"])


@njit_norefcount
def _send_off(fabric: Fabric, h: int, now: int) -> None:
    """Let the packet that a host has sent go on its way; the last new one of a message ends that one's turn."""
    up = fabric.link[fabric.host[h]["up"]]
    p = up["serving"]
    depart(fabric, fabric.host[h]["up"], p)
    up["serving"] = -1
    packet = fabric.packet[p]
    if packet["kind"] == DATA and packet["flags"] & (LAST | RESENT) == LAST:
        on_left(fabric, packet["flow"], now)


@njit_norefcount
def _receive(fabric: Fabric, p: int, now: int) -> None:
    kind, f = fabric.packet[p]["kind"], fabric.packet[p]["flow"]
    if kind <= TRIMMED:
        on_arrival(fabric, p, now)
        take_messages(fabric, f, now)
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
            arm(fabric, f, GO, fabric.flow[f]["free_at"])
        elif may_send(fabric, f):
            p = send(fabric, f, now)
            get_ready(fabric, f)
    if p >= 0:
        up["serving"] = p
        up["done"] = now + int(fabric.packet[p]["size"] * up["ps_per_byte"])
        if fabric.packet[p]["kind"] == DATA and fabric.packet[p]["flags"] & FIRST:
            up["done"] += up["first_time"]
        schedule(fabric.events, h, up["done"])
        await_arrival(fabric, host["up"])
