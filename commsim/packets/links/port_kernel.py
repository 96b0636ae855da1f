"""A link and the queues before it: what goes first, marks, trimming, and the packets on their way along it.

A link of a switch is served up to the present when somebody comes to it, and needs no event when a packet leaves; one
whose queue others must know at any time has such events (`evented`), and those of hosts, which choose what goes next as
late as they can (`host_kernel`).
"""

from __future__ import annotations

import numpy as np

from commsim.core.jit import njit_norefcount
from commsim.packets import codes
from commsim.packets.event_rows import Row
from commsim.packets.links.class_kernel import hold, queue_in_order, queued_of_class, take_first
from commsim.packets.links.loss_kernel import draw
from commsim.packets.links.overhead_kernel import costs_of, keeps_path
from commsim.packets.links.posting_kernel import free_packet, post
from commsim.packets.links.wheel_kernel import schedule
from commsim.packets.packet_rows import RunState
from commsim.packets.rule_kernel import rules_for, rules_of_packet


@njit_norefcount
def goes_first(packet: Row) -> bool:
    """Tell whether a packet goes before data: sprayed answers, and what was trimmed."""
    return bool(packet["kind"] != codes.DATA and not keeps_path(packet))


@njit_norefcount
def answer(fabric: RunState, q: int, entropy: int) -> None:
    """Send what the receiver of a flow tells its sender."""
    packet = fabric.packet[q]
    flow = fabric.flow[packet["flow"]]
    if rules_for(fabric, packet["flow"])["on_path"]:
        follow(fabric, q, packet["flow"] + len(fabric.flow))
    else:
        packet["entropy"], packet["target"] = entropy, flow["src"]
        go_out(fabric, q, flow["dst"])


@njit_norefcount
def follow(fabric: RunState, q: int, stream: int) -> None:
    """Send a packet of a flow over a stream."""
    packet = fabric.packet[q]
    packet["flags"] |= codes.ON_PATH
    packet["hop"] = fabric.stream[stream]["begin"]
    go_out(fabric, q, fabric.route[packet["hop"]]["link"])


@njit_norefcount
def go_out(fabric: RunState, q: int, link: int) -> None:
    """Send a packet over a link when the present event is over."""
    packet = fabric.packet[q]
    packet["when"], packet["came_over"] = link, -1
    post(fabric, q)


@njit_norefcount
def enqueue(fabric: RunState, i: int, p: int) -> None:
    """Let a packet into the queue of a link; trim it or one before it when the queue is full, or drop it.

    When data finds no room, a coin says whether it or the last one queued is trimmed: otherwise senders in step would
    lose the same packets each time (Handley et al., "NDP", SIGCOMM 2017, section 3.1). The two change places by
    changing contents, so no list needs a way backwards. What a flow makes is never dropped where it is made: a host
    waits for its own queue.
    """
    link, packet = fabric.link[i], fabric.packet
    kind = packet[p]["kind"]
    if not goes_first(packet[p]):
        is_made_here = packet[p]["came_over"] < 0 and kind <= codes.CNP
        if is_made_here or _fits(fabric, i, p):
            _queue_low(fabric, i, p)
            return
        if kind != codes.DATA or not rules_of_packet(fabric, p)["trims"]:
            _drop(fabric, i, p)
            return
        last = link["low_tail"]
        may = last >= 0 and packet[last]["kind"] == codes.DATA and rules_of_packet(fabric, last)["trims"]
        if may and draw(fabric) < 0.5:
            link["low"] += packet[p]["size"] - packet[last]["size"]
            _exchange(fabric, p, last)
        packet[p]["kind"] = codes.TRIMMED
        packet[p]["size"] = rules_of_packet(fabric, p)["header"]
        packet[p]["flags"] |= codes.LAST_HOP if link["to"] < fabric.state["n_hosts"] else 0
        link["n_trimmed"] += 1
        fabric.state["n_trimmed"] += 1
        record_flow(fabric, i, p, codes.AT_TRIMMING)
    packet[p]["next"] = -1
    link["high"] += packet[p]["size"]
    if link["high_head"] < 0:
        link["high_head"] = p
    else:
        packet[link["high_tail"]]["next"] = p
    link["high_tail"] = p


@njit_norefcount
def _fits(fabric: RunState, i: int, p: int) -> bool:
    link, size = fabric.link[i], fabric.packet[p]["size"]
    if link["low"] + size > link["room"]:
        return False
    if link["marks"] and link["low"] + size > rules_of_packet(fabric, p)["queue"]:
        return False
    if not fabric.state["shares"] or link["shared"] < 0:
        return True
    buffer = fabric.buffer[link["shared"]]
    free = buffer["total"] - buffer["used"]
    return bool(size <= free and link["low"] + size <= buffer["alpha"] * free)


@njit_norefcount
def _queue_low(fabric: RunState, i: int, p: int) -> None:
    """Queue what does not go first."""
    link, packet = fabric.link[i], fabric.packet[p]
    size, came_over = packet["size"], packet["came_over"]
    if fabric.state["shares"] and link["shared"] >= 0:
        fabric.buffer[link["shared"]]["used"] += size
    if fabric.state["pauses"] and came_over >= 0 and fabric.link[came_over]["xoff"] > 0:
        hold(fabric, came_over, p, size)
    link["low"] += size
    link["peak"] = max(link["peak"], link["low"])
    queue_in_order(fabric, i, p)


@njit_norefcount
def _exchange(fabric: RunState, a: int, b: int) -> None:
    """Exchange two data packets but for their places in lists."""
    packet = fabric.packet
    packet[a]["sent"], packet[b]["sent"] = packet[b]["sent"], packet[a]["sent"]
    packet[a]["amount"], packet[b]["amount"] = packet[b]["amount"], packet[a]["amount"]
    packet[a]["flow"], packet[b]["flow"] = packet[b]["flow"], packet[a]["flow"]
    packet[a]["target"], packet[b]["target"] = packet[b]["target"], packet[a]["target"]
    packet[a]["number"], packet[b]["number"] = packet[b]["number"], packet[a]["number"]
    packet[a]["entropy"], packet[b]["entropy"] = packet[b]["entropy"], packet[a]["entropy"]
    packet[a]["size"], packet[b]["size"] = packet[b]["size"], packet[a]["size"]
    packet[a]["flags"], packet[b]["flags"] = packet[b]["flags"], packet[a]["flags"]
    packet[a]["n_noted"], packet[b]["n_noted"] = packet[b]["n_noted"], packet[a]["n_noted"]
    packet[a]["came_over"], packet[b]["came_over"] = packet[b]["came_over"], packet[a]["came_over"]
    n = fabric.state["n_notes"]
    for i in range(n):
        one, other = fabric.note[a * n + i], fabric.note[b * n + i]
        one["queue"], other["queue"] = other["queue"], one["queue"]
        one["sent"], other["sent"] = other["sent"], one["sent"]
        one["when"], other["when"] = other["when"], one["when"]
        one["link"], other["link"] = other["link"], one["link"]


@njit_norefcount
def _drop(fabric: RunState, i: int, p: int) -> None:
    fabric.link[i]["n_dropped"] += 1
    fabric.state["drops_full"] += 1
    record_flow(fabric, i, p, codes.AT_DROP)
    free_packet(fabric, p)


@njit_norefcount
def serve(fabric: RunState, i: int, until: int) -> None:
    """Let a switch's link send up to and including a time; what has left is on its way afterwards."""
    link = fabric.link[i]
    while link["serving"] >= 0 and link["done"] <= until:
        p = link["serving"]
        leave_queue(fabric, i, p)
        depart(fabric, i, p)
        start(fabric, i, link["done"])
        if link["evented"]:  # what goes next has an event of its own, also if it takes no time
            return


@njit_norefcount
def leave_queue(fabric: RunState, i: int, p: int) -> None:
    """Take the bytes of a packet that has been sent off its queue, which may mark it."""
    link, packet = fabric.link[i], fabric.packet[p]
    size, came_over = packet["size"], packet["came_over"]
    if goes_first(packet):
        link["high"] -= size
        return
    link["low"] -= size
    if packet["kind"] == codes.DATA:
        _mark(fabric, i, p)
        if fabric.state["n_notes"] > 0:
            _note(fabric, i, p)
    elif packet["flags"] & codes.ECN_CAPABLE and packet["kind"] >= codes.CONTRIBUTION:
        _mark(fabric, i, p)
    if fabric.state["shares"] and link["shared"] >= 0:
        fabric.buffer[link["shared"]]["used"] -= size
    if fabric.state["pauses"] and came_over >= 0 and fabric.link[came_over]["xoff"] > 0:
        hold(fabric, came_over, p, -size)


@njit_norefcount
def start(fabric: RunState, i: int, now: int) -> None:
    """Begin with the next packet of a switch's link that is not sending: answers and trimmed packets go first."""
    link = fabric.link[i]
    p = take_high(fabric, i)
    if p < 0:
        p = take_first(fabric, i)
    link["serving"] = p
    if p >= 0:
        begin_sending(fabric, i, p, now)


@njit_norefcount
def take_high(fabric: RunState, i: int) -> int:
    """Take the first of what goes first off a link's queue; -1 for none."""
    link = fabric.link[i]
    p = link["high_head"]
    if p >= 0:
        link["high_head"] = fabric.packet[p]["next"]
    return int(p)


@njit_norefcount
def begin_sending(fabric: RunState, i: int, p: int, now: int) -> None:
    """Note when a link has sent the packet that it begins with."""
    link, packet = fabric.link[i], fabric.packet[p]
    took = np.int64(packet["size"] * link["ps_per_byte"] + 0.5)
    if link["costs"]:
        took += costs_of(fabric, i, p, now, int(took))
    link["serving"] = p
    link["done"] = now + took
    if link["evented"]:
        schedule(fabric.events, i, link["done"])
    await_arrival(fabric, i)


@njit_norefcount
def await_arrival(fabric: RunState, i: int) -> None:
    """Set the event at which the first packet of a link arrives, on its way or being sent, unless it is set."""
    link = fabric.link[i]
    if link["awaited"]:
        return
    if link["pipe_head"] >= 0:
        link["awaited"] = True
        schedule(fabric.events, len(fabric.link) + i, fabric.packet[link["pipe_head"]]["when"])
    elif link["serving"] >= 0:
        link["awaited"] = True
        schedule(fabric.events, len(fabric.link) + i, link["done"] + link["latency"])


@njit_norefcount
def depart(fabric: RunState, i: int, p: int) -> None:
    """Put a packet that has been sent on its way to the other end."""
    link, packet = fabric.link[i], fabric.packet
    link["n_packets"] += 1
    link["n_bytes"] += packet[p]["size"]
    if len(fabric.carried) > 0:
        of_flow = packet[p]["kind"] < codes.CONTRIBUTION
        job = fabric.flow[packet[p]["flow"]]["job"] if of_flow else fabric.stream[packet[p]["stream"]]["job"]
        fabric.carried[job * len(fabric.link) + i] += packet[p]["size"]
    if link["tapped"]:
        _record_leaving(fabric, i, p)
    packet[p]["when"] = link["done"] + link["latency"]
    packet[p]["next"] = -1
    if link["pipe_head"] < 0:
        link["pipe_head"] = p
    else:
        packet[link["pipe_tail"]]["next"] = p
    link["pipe_tail"] = p


@njit_norefcount
def _mark(fabric: RunState, i: int, p: int) -> None:
    """Mark a packet that leaves a queue as its length says: never, at random, or always (RED on leaving)."""
    link, rules = fabric.link[i], rules_of_packet(fabric, p)
    marks = link["marks"]
    if rules["ecn_max"] == 0 or marks == codes.NO_MARKS or (marks == codes.AT_HOST and not rules["marks_last"]):
        return
    queued = link["low"] if fabric.state["n_classes"] == 1 else queued_of_class(fabric, i, p)
    if queued <= rules["ecn_min"]:
        return
    share = (queued - rules["ecn_min"]) / max(1, rules["ecn_max"] - rules["ecn_min"])
    share *= rules["most_marked"]
    if queued > rules["ecn_max"] or draw(fabric) < share:
        fabric.packet[p]["flags"] |= codes.MARKED
        link["n_marked"] += 1
        fabric.state["marks"] += 1


@njit_norefcount
def _note(fabric: RunState, i: int, p: int) -> None:
    """Let a packet that leaves a queue take the link's state with it (in-band telemetry)."""
    link, packet, n = fabric.link[i], fabric.packet[p], fabric.state["n_notes"]
    at = packet["n_noted"]
    if at >= n:
        return
    note = fabric.note[p * n + at]
    note["queue"], note["sent"] = link["low"] + link["high"], link["n_bytes"] + packet["size"]
    note["when"], note["link"] = link["done"], i
    packet["n_noted"] += 1


@njit_norefcount
def _record_leaving(fabric: RunState, i: int, p: int) -> None:
    """Record a packet that leaves a tapped link, and whether it is its first or its last one."""
    link, packet = fabric.link[i], fabric.packet[p]
    event = codes.AT_MAKER if packet["came_over"] < 0 else 0
    if fabric.route[packet["hop"]]["last"] != 0 if keeps_path(packet) else link["to"] < fabric.state["n_hosts"]:
        event |= codes.AT_END
    _record(fabric, i, p, event, link["done"])


@njit_norefcount
def record_flow(fabric: RunState, i: int, p: int, event: int) -> None:
    """Record what happens to a packet of a tapped flow at a link, now."""
    if fabric.state["taps_flows"]:
        _record(fabric, i, p, event, fabric.state["now"])


@njit_norefcount
def _record(fabric: RunState, i: int, p: int, event: int, when: int) -> None:
    """Record a packet at a tapped link; where only some flows are tapped, theirs."""
    state, packet = fabric.state, fabric.packet[p]
    if state["taps_flows"] and (packet["kind"] >= codes.CONTRIBUTION or not fabric.flow[packet["flow"]]["tapped"]):
        return
    if state["n_tapped"] - state["tap_spare"] >= len(fabric.tap):
        state["n_missed"] += 1
        return
    row = fabric.tap[state["n_tapped"] - state["tap_spare"]]
    state["n_tapped"] += 1
    row["time"], row["arrives"], row["link"], row["event"] = when, when + fabric.link[i]["latency"], i, event
    row["sent"] = packet["sent"]
    row["number"], row["stream"], row["slot"] = packet["number"], packet["stream"], packet["slot"]
    row["size"], row["position"] = packet["size"], packet["position"]
    row["kind"], row["flags"] = packet["kind"], packet["flags"]
