"""Packets on links: queues, marks, losses, pauses."""

from __future__ import annotations

import numpy as np

from commsim.core.jit import njit_norefcount

from .class_kernel import ahead, bring_unpaused, class_of, give_key, overtake
from .packet_state import ACK, DATA, ECN_CAPABLE, ECN_MARKED, Links, Row
from .posting_kernel import free_packet, post
from .timed_kernel import duration, queue_timed, settle, tell
from .wheel_kernel import schedule

LOSS_DRAW, STATE_DRAW, MARK_DRAW = 1, 2, 3


@njit_norefcount
def uniform(seed: int, kind: int, link: int, count: int) -> float:
    """Return a number in [0, 1) that depends on nothing but the arguments (SplitMix64's finaliser on a counter).

    Parameters
    ----------
    seed : int
        Seed of the run.
    kind : int
        What is drawn: LOSS_DRAW, STATE_DRAW or MARK_DRAW.
    link : int
        Number of the link.
    count : int
        Packets of the link so far.
    """
    z = np.uint64(count) * np.uint64(0x9E3779B97F4A7C15)
    z += np.uint64(link) * np.uint64(0xD1B54A32D192ED03)
    z += np.uint64(kind) * np.uint64(0x8CB92BA72F3D8DD7)
    z += np.uint64(seed) * np.uint64(0xA24BAED4963EE407)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit_norefcount
def queue_sent(links: Links) -> None:
    """Queue the packets that this event has sent or passed on, in the order in which it did."""
    state = links.state
    while state["sent_head"] >= 0:
        p = state["sent_head"]
        state["sent_head"] = links.packet[p]["next"]
        _enqueue(links, p)


@njit_norefcount
def _enqueue(links: Links, p: int) -> None:
    """Queue a packet at the link of its present hop, or drop it when the buffer is full.

    A transport's own packets are never dropped where they are made: a host waits for its own queue.
    """
    packet = links.packet[p]
    number = links.route[packet["hop"]]["link"]
    link = links.link[number]
    size = packet["size"]
    if link["timed"]:
        settle(links, link)
    if (packet["came_over"] >= 0 or packet["kind"] > ACK) and not _fits(links, link, size):
        link["n_dropped"] += 1
        links.state["drops_full"] += 1
        free_packet(links, p)
        return
    if links.state["n_classes"] > 1:
        give_key(links, number, p)
    if link["ecn_min"] > 0 and link["queued"] >= link["ecn_min"] and packet["flags"] & ECN_CAPABLE:
        _mark(links, link, number, p)
    link["n_queued"] += 1
    link["queued"] += size
    link["peak"] = max(link["peak"], link["queued"])
    links.state["queued"] += size
    packet["next"] = -1
    if link["timed"]:
        queue_timed(links, number, p)
        return
    if link["shared"] >= 0:
        links.buffer[link["shared"]]["used"] += size
    came_over = packet["came_over"]
    if came_over >= 0 and links.link[came_over]["xoff"] > 0:
        _hold(links, came_over, p, size)
    if link["head"] < 0:
        link["head"] = link["tail"] = p
    elif links.state["n_classes"] > 1 and packet["arrival"] < links.packet[link["tail"]]["arrival"]:
        overtake(links, link, p)
    else:
        links.packet[link["tail"]]["next"] = p
        link["tail"] = p
    if not link["busy"]:
        _start(links, number)


@njit_norefcount
def leave(links: Links, number: int) -> int:
    """Let the packet that a link has sent leave the queue, and start with the next one.

    Returns
    -------
    int
        The packet when it is data that has left its sender, or -1.
    """
    link = links.link[number]
    if link["timed"]:
        return tell(links, number)
    p = link["head"]
    packet = links.packet[p]
    size = packet["size"]
    link["head"] = packet["next"]
    link["queued"] -= size
    link["n_packets"] += 1
    link["n_bytes"] += size
    links.route[packet["hop"]]["n_bytes"] += size
    links.state["queued"] -= size
    links.state["events"] += 1
    if link["shared"] >= 0:
        links.buffer[link["shared"]]["used"] -= size
    came_over = packet["came_over"]
    if came_over >= 0 and links.link[came_over]["xoff"] > 0:
        _hold(links, came_over, p, -size)
    if link["tapped"]:
        _record(links, number, packet)
    packet["next"] = -1
    packet["arrival"] = links.state["now"] + link["latency"]
    if link["pipe_head"] < 0:
        link["pipe_head"] = p
        schedule(links.events, links.state["n_links"] + number, packet["arrival"])
    else:
        links.packet[link["pipe_tail"]]["next"] = p
    link["pipe_tail"] = p
    link["busy"] = False
    if link["head"] >= 0:
        _start(links, number)
    return int(p) if came_over < 0 and packet["kind"] == DATA else -1


@njit_norefcount
def arrive(links: Links, number: int) -> int:
    """Take the first packet off a link: it is lost, goes on, or has reached the end of its stream.

    Returns
    -------
    int
        The packet that has reached the end, or -1.
    """
    link = links.link[number]
    if link["timed"]:
        settle(links, link)
    p = link["pipe_head"]
    packet = links.packet[p]
    link["pipe_head"] = packet["next"]
    if packet["next"] >= 0:
        schedule(links.events, links.state["n_links"] + number, links.packet[packet["next"]]["arrival"])
    links.state["events"] += 1
    links.state["packet_hops"] += 1
    link["n_arrived"] += 1
    if link["lossy"] and _is_lost(links, link, number):
        link["n_dropped"] += 1
        links.state["drops_loss"] += 1
        free_packet(links, p)
        return -1
    if links.route[packet["hop"]]["last"]:
        return int(p)
    packet["hop"] += 1
    packet["came_over"] = number
    post(links, p)
    return -1


@njit_norefcount
def pause(links: Links, number: int) -> None:
    """Let a link do what its other end asked for one propagation delay ago."""
    link = links.link[number]
    link["pause_pending"] = False
    link["paused"] = link["pausing"]
    if not link["busy"] and link["head"] >= 0:
        _start(links, number)


@njit_norefcount
def _start(links: Links, number: int) -> None:
    """Send the first packet of a queue whose class is not paused, if there is one."""
    link = links.link[number]
    if link["paused"] and not bring_unpaused(links, link):
        return
    packet = links.packet[link["head"]]
    link["served"] = packet["arrival"]
    link["busy"] = True
    schedule(links.events, number, links.state["now"] + duration(links, link, packet))


@njit_norefcount
def _fits(links: Links, link: Row, size: int) -> bool:
    if link["queued"] + size > link["buffer"]:
        return False
    if link["shared"] < 0:
        return True
    buffer = links.buffer[link["shared"]]
    free = buffer["total"] - buffer["used"]
    return bool(size <= free and link["queued"] + size <= buffer["alpha"] * free)


@njit_norefcount
def _mark(links: Links, link: Row, number: int, p: int) -> None:
    """Mark a packet by what is queued before it; what goes after it is not."""
    packet, queued = links.packet[p], link["queued"]
    if links.state["n_classes"] > 1:
        queued = ahead(links, link, p)
        if queued < link["ecn_min"]:
            return
    if queued < link["ecn_max"]:
        chance = link["ecn_probability"] * (queued - link["ecn_min"]) / (link["ecn_max"] - link["ecn_min"])
        if uniform(links.state["seed"], MARK_DRAW, number, link["n_queued"]) >= chance:
            return
    packet["flags"] |= ECN_MARKED
    link["n_marked"] += 1
    links.state["marks"] += 1


@njit_norefcount
def _hold(links: Links, number: int, p: int, size: int) -> None:
    """Count bytes that came over a link and wait in the next node; ask it to pause their class, or to go on."""
    link, rank = links.link[number], class_of(links, p)
    row = number * links.state["n_classes"] + rank
    links.held[row] += size
    held, bit = links.held[row], np.uint8(1 << rank)
    pausing = link["pausing"] & bit != 0
    if (held >= link["xoff"] and not pausing) or (held <= link["xon"] and pausing):
        link["pausing"] ^= bit
        if not link["pause_pending"]:
            link["pause_pending"] = True
            schedule(links.events, 2 * links.state["n_links"] + number, links.state["now"] + link["latency"])


@njit_norefcount
def _is_lost(links: Links, link: Row, number: int) -> bool:
    count = link["n_arrived"]
    if link["to_bad"] > 0:
        flip = link["to_good"] if link["bad"] else link["to_bad"]
        if uniform(links.state["seed"], STATE_DRAW, number, count) < flip:
            link["bad"] = not link["bad"]
    loss = link["loss_bad"] if link["bad"] else link["loss"]
    return bool(uniform(links.state["seed"], LOSS_DRAW, number, count) < loss)


@njit_norefcount
def _record(links: Links, number: int, packet: Row) -> None:
    """Record a packet that leaves a tapped link."""
    row = links.tap[links.state["n_tapped"]]
    links.state["n_tapped"] += 1
    row["time"], row["link"] = links.state["now"], number
    row["number"], row["stream"], row["slot"] = packet["number"], packet["stream"], packet["slot"]
    row["size"], row["position"] = packet["size"], packet["position"]
    row["kind"], row["flags"] = packet["kind"], packet["flags"]
