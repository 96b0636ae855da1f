"""A link and the queues before it: what goes first, marks, trimming, and the packets on their way along it."""

from __future__ import annotations

import numpy as np

from commsim.core.jit import njit_norefcount
from commsim.engine.packet.wheel_kernel import schedule

from .fabric_state import DATA, LAST, LAST_HOP, MARKED, TRIMMED, Fabric


@njit_norefcount
def draw(fabric: Fabric) -> float:
    """Draw a number from 0 to 1: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014, Figure 1)."""
    state = fabric.state
    state["draws"] += np.uint64(0x9E3779B97F4A7C15)
    return float(mix(state["draws"]) >> np.uint64(11)) / 9007199254740992.0


@njit_norefcount
def mix(z: np.uint64) -> np.uint64:
    """Scramble a number: the finalizer of SplitMix64."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit_norefcount
def take_packet(fabric: Fabric) -> int:
    """Take a free row of the packets' table."""
    state = fabric.state
    p = state["first_free"]
    state["first_free"] = fabric.packet[p]["after"]
    state["n_free"] -= 1
    return int(p)


@njit_norefcount
def free_packet(fabric: Fabric, p: int) -> None:
    """Give a row of the packets' table back."""
    state = fabric.state
    fabric.packet[p]["after"] = state["first_free"]
    state["first_free"] = p
    state["n_free"] += 1


@njit_norefcount
def queue_answer(fabric: Fabric, h: int, q: int) -> None:
    """Put a packet that goes first at the end of a host's queue of those."""
    host = fabric.host[h]
    fabric.packet[q]["after"] = -1
    if host["control_head"] < 0:
        host["control_head"] = q
    else:
        fabric.packet[host["control_tail"]]["after"] = q
    host["control_tail"] = q


@njit_norefcount
def enqueue(fabric: Fabric, i: int, p: int) -> None:
    """Let a packet into the queue of a switch's link; trim it or one before it when the queue is full.

    When data finds no room, a coin says whether it or the last one queued is trimmed: otherwise senders in step would
    lose the same packets each time (Handley et al., "NDP", SIGCOMM 2017, section 3.1). The two change places by
    changing contents, so no list needs a way backwards.
    """
    link, packet = fabric.link[i], fabric.packet
    if link["loss"] > 0.0 and draw(fabric) < link["loss"]:
        fabric.state["n_lost"] += 1
        _drop(fabric, i, p)
        return
    if packet[p]["kind"] == DATA and link["low"] + packet[p]["size"] > link["room"]:
        if not fabric.rules["trims"]:
            _drop(fabric, i, p)
            return
        last = link["low_tail"]
        if last >= 0 and draw(fabric) < 0.5:
            link["low"] += packet[p]["size"] - packet[last]["size"]
            _exchange(fabric, p, last)
        packet[p]["kind"] = TRIMMED
        packet[p]["size"] = fabric.rules["header"]
        packet[p]["flags"] |= LAST_HOP if link["to"] < fabric.state["n_hosts"] else 0
        link["n_trimmed"] += 1
        fabric.state["n_trimmed"] += 1
    packet[p]["after"] = -1
    if packet[p]["kind"] == DATA:
        link["low"] += packet[p]["size"]
        link["peak"] = max(link["peak"], link["low"])
        if link["low_head"] < 0:
            link["low_head"] = p
        else:
            packet[link["low_tail"]]["after"] = p
        link["low_tail"] = p
    else:
        link["high"] += packet[p]["size"]
        if link["high_head"] < 0:
            link["high_head"] = p
        else:
            packet[link["high_tail"]]["after"] = p
        link["high_tail"] = p


@njit_norefcount
def _exchange(fabric: Fabric, a: int, b: int) -> None:
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
    packet[a]["base"], packet[b]["base"] = packet[b]["base"], packet[a]["base"]
    n = fabric.rules["n_notes"]
    for i in range(n):
        one, other = fabric.note[a * n + i], fabric.note[b * n + i]
        one["queue"], other["queue"] = other["queue"], one["queue"]
        one["sent"], other["sent"] = other["sent"], one["sent"]
        one["when"], other["when"] = other["when"], one["when"]
        one["link"], other["link"] = other["link"], one["link"]


@njit_norefcount
def _drop(fabric: Fabric, i: int, p: int) -> None:
    fabric.link[i]["n_dropped"] += 1
    fabric.state["n_dropped"] += 1
    free_packet(fabric, p)


@njit_norefcount
def serve(fabric: Fabric, i: int, until: int) -> None:
    """Let a switch's link send up to and including a time; what has left is on its way afterwards."""
    link, packet = fabric.link[i], fabric.packet
    while link["serving"] >= 0 and link["done"] <= until:
        p = link["serving"]
        if packet[p]["kind"] == DATA:
            link["low"] -= packet[p]["size"]
            _mark(fabric, i, p)
            if fabric.rules["n_notes"] > 0:
                _note(fabric, i, p)
        else:
            link["high"] -= packet[p]["size"]
        depart(fabric, i, p)
        start(fabric, i, link["done"])


@njit_norefcount
def start(fabric: Fabric, i: int, now: int) -> None:
    """Begin with the next packet of a switch's link that is not sending: answers and trimmed packets go first."""
    link, packet = fabric.link[i], fabric.packet
    p = link["high_head"]
    if p >= 0:
        link["high_head"] = packet[p]["after"]
    else:
        p = link["low_head"]
        if p >= 0:
            link["low_head"] = packet[p]["after"]
            if packet[p]["after"] < 0:
                link["low_tail"] = -1
    link["serving"] = p
    if p >= 0:
        link["done"] = now + int(packet[p]["size"] * link["ps_per_byte"])
        if packet[p]["kind"] == DATA and packet[p]["flags"] & LAST:
            link["done"] += link["last_time"]
        await_arrival(fabric, i)


@njit_norefcount
def await_arrival(fabric: Fabric, i: int) -> None:
    """Set the event at which the first packet of a link arrives, on its way or being sent, unless it is set."""
    link = fabric.link[i]
    if link["awaited"]:
        return
    if link["pipe_head"] >= 0:
        link["awaited"] = True
        schedule(fabric.events, fabric.state["n_hosts"] + i, fabric.packet[link["pipe_head"]]["when"])
    elif link["serving"] >= 0:
        link["awaited"] = True
        schedule(fabric.events, fabric.state["n_hosts"] + i, link["done"] + link["latency"])


@njit_norefcount
def depart(fabric: Fabric, i: int, p: int) -> None:
    """Put a packet that has been sent on its way to the other end."""
    link, packet = fabric.link[i], fabric.packet
    link["n_packets"] += 1
    link["n_bytes"] += packet[p]["size"]
    if len(fabric.carried) > 0:
        fabric.carried[fabric.flow[packet[p]["flow"]]["job"] * len(fabric.link) + i] += packet[p]["size"]
    packet[p]["when"] = link["done"] + link["latency"]
    packet[p]["after"] = -1
    if link["pipe_head"] < 0:
        link["pipe_head"] = p
    else:
        packet[link["pipe_tail"]]["after"] = p
    link["pipe_tail"] = p


@njit_norefcount
def _mark(fabric: Fabric, i: int, p: int) -> None:
    """Mark a packet that leaves a queue as its length says: never, at random, or always (RED on leaving)."""
    link = fabric.link[i]
    if link["ecn_max"] == 0 or link["low"] <= link["ecn_min"]:
        return
    share = (link["low"] - link["ecn_min"]) / max(1, link["ecn_max"] - link["ecn_min"])
    share *= fabric.rules["most_marked"]
    if link["low"] > link["ecn_max"] or draw(fabric) < share:
        fabric.packet[p]["flags"] |= MARKED
        link["n_marked"] += 1
        fabric.state["n_marked"] += 1


@njit_norefcount
def _note(fabric: Fabric, i: int, p: int) -> None:
    """Let a packet that leaves a queue take the link's state with it (in-band telemetry)."""
    link, packet, n = fabric.link[i], fabric.packet[p], fabric.rules["n_notes"]
    at = packet["base"]
    if at >= n:
        return
    note = fabric.note[p * n + at]
    note["queue"], note["sent"] = link["low"] + link["high"], link["n_bytes"] + packet["size"]
    note["when"], note["link"] = link["done"], i
    packet["base"] += 1
    if at + 1 < n:
        fabric.note[p * n + at + 1]["link"] = -1
