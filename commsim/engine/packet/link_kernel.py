"""Packets on links: queues, marks, losses, pauses. Who takes a packet at the end of its stream is not known here."""

from __future__ import annotations

from typing import Any

import numpy as np

from commsim.core.jit import njit_norefcount

from .packet_state import (
    ACK,
    DATA,
    DROPPED_LOSS,
    DROPPED_TAIL,
    ECN_CAPABLE,
    ECN_MARKED,
    FIRST,
    FREE_PACKET,
    MARKED,
    N_EVENTS,
    N_FREE,
    N_HOPS,
    N_LINKS,
    N_TAPPED,
    NOW,
    QUEUED,
    SEED,
    SENT_HEAD,
    SENT_TAIL,
)
from .wheel_kernel import schedule

LOSS_DRAW, STATE_DRAW, MARK_DRAW = 1, 2, 3


@njit_norefcount
def uniform(seed: int, kind: int, link: int, count: int) -> float:
    """Return a number in [0, 1) that depends on nothing but the arguments (SplitMix64's finaliser on a counter)."""
    z = np.uint64(count) * np.uint64(0x9E3779B97F4A7C15)
    z += np.uint64(link) * np.uint64(0xD1B54A32D192ED03)
    z += np.uint64(kind) * np.uint64(0x8CB92BA72F3D8DD7)
    z += np.uint64(seed) * np.uint64(0xA24BAED4963EE407)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit_norefcount
def take_packet(t: Any) -> int:
    """Take a packet off the list of free ones; the main loop makes sure that there is one."""
    p = t.clock[FREE_PACKET]
    t.clock[FREE_PACKET] = t.packet[p]["next"]
    t.clock[N_FREE] -= 1
    return int(p)


@njit_norefcount
def free_packet(t: Any, p: int) -> None:
    """Put a packet back."""
    t.packet[p]["next"] = t.clock[FREE_PACKET]
    t.clock[FREE_PACKET] = p
    t.clock[N_FREE] += 1


@njit_norefcount
def send(t: Any, p: int, stream: int) -> None:
    """Send a packet over a stream: `queue_sent` puts it into the first queue when the event is over."""
    packet = t.packet[p]
    packet["stream"] = stream
    packet["hop"] = t.stream[stream]["begin"]
    packet["came_over"] = -1
    _post(t, p)


@njit_norefcount
def queue_sent(t: Any) -> None:
    """Queue the packets that this event has sent or passed on, in the order in which it did."""
    clock = t.clock
    while clock[SENT_HEAD] >= 0:
        p = clock[SENT_HEAD]
        clock[SENT_HEAD] = t.packet[p]["next"]
        _enqueue(t, p)


@njit_norefcount
def _post(t: Any, p: int) -> None:
    t.packet[p]["next"] = -1
    if t.clock[SENT_HEAD] < 0:
        t.clock[SENT_HEAD] = p
    else:
        t.packet[t.clock[SENT_TAIL]]["next"] = p
    t.clock[SENT_TAIL] = p


@njit_norefcount
def _enqueue(t: Any, p: int) -> None:
    """Queue a packet at the link of its present hop, or drop it when the buffer is full.

    A transport's own packets are never dropped where they are made: a host waits for its own queue.
    """
    packet = t.packet[p]
    number = t.route[packet["hop"]]["link"]
    link = t.link[number]
    size = packet["size"]
    if (packet["came_over"] >= 0 or packet["kind"] > ACK) and not _fits(t, link, size):
        link["n_dropped"] += 1
        t.clock[DROPPED_TAIL] += 1
        free_packet(t, p)
        return
    if link["ecn_min"] > 0 and link["queued"] >= link["ecn_min"] and packet["flags"] & ECN_CAPABLE:
        _mark(t, link, number, packet)
    link["n_queued"] += 1
    link["queued"] += size
    link["peak"] = max(link["peak"], link["queued"])
    t.clock[QUEUED] += size
    if link["shared"] >= 0:
        t.buffer[link["shared"]]["used"] += size
    came_over = packet["came_over"]
    if came_over >= 0 and t.link[came_over]["xoff"] > 0:
        _hold(t, came_over, size)
    packet["next"] = -1
    if link["head"] < 0:
        link["head"] = p
    else:
        t.packet[link["tail"]]["next"] = p
    link["tail"] = p
    if not link["busy"] and not link["paused"]:
        _start(t, number)


@njit_norefcount
def leave(t: Any, number: int) -> int:
    """Let the packet that a link has sent leave the queue, and start with the next one.

    Returns
    -------
    int
        The packet when it is data that has left its sender, or -1.
    """
    link = t.link[number]
    p = link["head"]
    packet = t.packet[p]
    size = packet["size"]
    link["head"] = packet["next"]
    link["queued"] -= size
    link["n_packets"] += 1
    link["n_bytes"] += size
    t.route[packet["hop"]]["n_bytes"] += size
    t.clock[QUEUED] -= size
    t.clock[N_EVENTS] += 1
    if link["shared"] >= 0:
        t.buffer[link["shared"]]["used"] -= size
    came_over = packet["came_over"]
    if came_over >= 0 and t.link[came_over]["xoff"] > 0:
        _hold(t, came_over, -size)
    if link["tapped"]:
        _record(t, number, packet)
    packet["next"] = -1
    packet["arrival"] = t.clock[NOW] + link["latency"]
    if link["pipe_head"] < 0:
        link["pipe_head"] = p
        schedule(t, t.clock[N_LINKS] + number, packet["arrival"])
    else:
        t.packet[link["pipe_tail"]]["next"] = p
    link["pipe_tail"] = p
    link["busy"] = False
    if link["head"] >= 0 and not link["paused"]:
        _start(t, number)
    return int(p) if came_over < 0 and packet["kind"] == DATA else -1


@njit_norefcount
def arrive(t: Any, number: int) -> int:
    """Take the first packet off a link: it is lost, goes on, or has reached the end of its stream.

    Returns
    -------
    int
        The packet that has reached the end, or -1.
    """
    link = t.link[number]
    p = link["pipe_head"]
    packet = t.packet[p]
    link["pipe_head"] = packet["next"]
    if packet["next"] >= 0:
        schedule(t, t.clock[N_LINKS] + number, t.packet[packet["next"]]["arrival"])
    t.clock[N_EVENTS] += 1
    t.clock[N_HOPS] += 1
    link["n_arrived"] += 1
    if (link["loss"] > 0 or link["to_bad"] > 0) and _is_lost(t, link, number):
        link["n_dropped"] += 1
        t.clock[DROPPED_LOSS] += 1
        free_packet(t, p)
        return -1
    if t.route[packet["hop"]]["last"]:
        return int(p)
    packet["hop"] += 1
    packet["came_over"] = number
    _post(t, p)
    return -1


@njit_norefcount
def pause(t: Any, number: int) -> None:
    """Let a link do what its other end asked for one propagation delay ago."""
    link = t.link[number]
    link["pause_pending"] = False
    link["paused"] = link["pausing"]
    if not link["paused"] and not link["busy"] and link["head"] >= 0:
        _start(t, number)


@njit_norefcount
def _start(t: Any, number: int) -> None:
    link = t.link[number]
    packet = t.packet[link["head"]]
    link["busy"] = True
    duration = np.int64(packet["size"] * link["ps_per_byte"] + 0.5) + link["packet_time"]
    if packet["flags"] & FIRST and packet["came_over"] < 0:
        duration += link["first_time"]
    schedule(t, number, t.clock[NOW] + duration)


@njit_norefcount
def _fits(t: Any, link: Any, size: int) -> bool:
    if link["queued"] + size > link["buffer"]:
        return False
    if link["shared"] < 0:
        return True
    buffer = t.buffer[link["shared"]]
    free = buffer["total"] - buffer["used"]
    return bool(size <= free and link["queued"] + size <= buffer["alpha"] * free)


@njit_norefcount
def _mark(t: Any, link: Any, number: int, packet: Any) -> None:
    queued = link["queued"]
    if queued < link["ecn_max"]:
        chance = link["ecn_probability"] * (queued - link["ecn_min"]) / (link["ecn_max"] - link["ecn_min"])
        if uniform(t.clock[SEED], MARK_DRAW, number, link["n_queued"]) >= chance:
            return
    packet["flags"] |= ECN_MARKED
    link["n_marked"] += 1
    t.clock[MARKED] += 1


@njit_norefcount
def _hold(t: Any, number: int, size: int) -> None:
    """Count bytes that came over a link and wait in the next node; ask it to pause, or to go on."""
    link = t.link[number]
    link["held"] += size
    if (link["held"] >= link["xoff"] and not link["pausing"]) or (link["held"] <= link["xon"] and link["pausing"]):
        link["pausing"] = not link["pausing"]
        if not link["pause_pending"]:
            link["pause_pending"] = True
            schedule(t, 2 * t.clock[N_LINKS] + number, t.clock[NOW] + link["latency"])


@njit_norefcount
def _is_lost(t: Any, link: Any, number: int) -> bool:
    count = link["n_arrived"]
    if link["to_bad"] > 0:
        flip = link["to_good"] if link["bad"] else link["to_bad"]
        if uniform(t.clock[SEED], STATE_DRAW, number, count) < flip:
            link["bad"] = not link["bad"]
    loss = link["loss_bad"] if link["bad"] else link["loss"]
    return bool(uniform(t.clock[SEED], LOSS_DRAW, number, count) < loss)


@njit_norefcount
def _record(t: Any, number: int, packet: Any) -> None:
    """Write a packet that leaves a tapped link down."""
    row = t.tap[t.clock[N_TAPPED]]
    t.clock[N_TAPPED] += 1
    row["time"] = t.clock[NOW]
    row["number"] = packet["number"]
    row["link"] = number
    row["stream"] = packet["stream"]
    row["slot"] = packet["slot"]
    row["size"] = packet["size"]
    row["position"] = packet["position"]
    row["kind"] = packet["kind"]
    row["flags"] = packet["flags"]
