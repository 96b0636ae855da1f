"""Classes of packets in one queue: strict priorities or weights, which of them may go, and pauses of a class.

A queue of several classes is kept in the order of keys. With strict priorities a packet's key is its class. With
weights it is the time at which a link that served all classes at once, in proportion, would have sent it, counted as
self-clocked fair queueing does (Golestani, INFOCOM 1994): from the key of the packet in service, or of the one before
it of its class.

A link waits when the queues of the node at its end hold too much of what came over it (PFC, IEEE 802.1Qbb).
"""

from __future__ import annotations

import numpy as np

from commsim.core.jit import njit_norefcount
from commsim.packets.codes import CONTRIBUTION
from commsim.packets.event_rows import Row
from commsim.packets.links.wheel_kernel import schedule
from commsim.packets.packet_rows import RunState

SCALE = 1 << 16  # of keys: parts of a byte, for weights that are no whole numbers


@njit_norefcount
def class_of(fabric: RunState, p: int) -> int:
    """Class of a packet: the rank of its job's priority."""
    packet = fabric.packet[p]
    if packet["kind"] >= CONTRIBUTION:
        return int(fabric.stream[packet["stream"]]["priority"])
    return int(fabric.flow[packet["flow"]]["rank"])


@njit_norefcount
def queue_in_order(fabric: RunState, i: int, p: int) -> None:
    """Queue a packet at a link: behind all, or before those that have a later key."""
    link, packet = fabric.link[i], fabric.packet
    packet[p]["next"] = -1
    if fabric.state["n_classes"] > 1:
        _give_key(fabric, i, p)
    if link["low_head"] < 0:
        link["low_head"] = link["low_tail"] = p
    elif fabric.state["n_classes"] > 1 and packet[p]["when"] < packet[link["low_tail"]]["when"]:
        _overtake(fabric, link, p)
    else:
        packet[link["low_tail"]]["next"] = p
        link["low_tail"] = p


@njit_norefcount
def _give_key(fabric: RunState, i: int, p: int) -> None:
    """Note in a packet its place in the queue of a link, the least first."""
    packet, rank = fabric.packet[p], class_of(fabric, p)
    if len(fabric.class_weight) == 0:
        packet["when"] = rank
        return
    row = i * fabric.state["n_classes"] + rank
    begin = max(fabric.link[i]["served"], fabric.last_key[row])
    fabric.last_key[row] = begin + np.int64(packet["size"] * SCALE / fabric.class_weight[rank])
    packet["when"] = fabric.last_key[row]


@njit_norefcount
def _overtake(fabric: RunState, link: Row, p: int) -> None:
    """Queue a packet before all that have a later key; the last one has."""
    packet, mine = fabric.packet, fabric.packet[p]["when"]
    before, after = -1, link["low_head"]
    while packet[after]["when"] <= mine:
        before, after = after, packet[after]["next"]
    packet[p]["next"] = after
    if before < 0:
        link["low_head"] = p
    else:
        packet[before]["next"] = p


@njit_norefcount
def queued_of_class(fabric: RunState, i: int, p: int) -> int:
    """Bytes that wait before a link and are of the class of packet `p`."""
    packet, n_bytes = fabric.packet, np.int64(0)
    rank = class_of(fabric, p)
    q = fabric.link[i]["low_head"]
    while q >= 0:
        if class_of(fabric, q) == rank:
            n_bytes += packet[q]["size"]
        q = packet[q]["next"]
    return int(n_bytes)


@njit_norefcount
def take_first(fabric: RunState, i: int) -> int:
    """Take the first packet whose class is not paused off a link's queue; -1 for none."""
    link, packet = fabric.link[i], fabric.packet
    before, p = -1, link["low_head"]
    if link["paused"]:
        while p >= 0 and link["paused"] >> class_of(fabric, p) & 1:
            before, p = p, packet[p]["next"]
    if p < 0:
        return -1
    if before < 0:
        link["low_head"] = packet[p]["next"]
    else:
        packet[before]["next"] = packet[p]["next"]
    if packet[p]["next"] < 0:
        link["low_tail"] = before
    if len(fabric.class_weight) > 0:
        link["served"] = packet[p]["when"]
    return int(p)


@njit_norefcount
def hold(fabric: RunState, i: int, p: int, size: int) -> None:
    """Count bytes that came over a link and wait in the next node; ask it to pause their class, or to go on."""
    link, rank = fabric.link[i], class_of(fabric, p)
    row = i * fabric.state["n_classes"] + rank
    fabric.held[row] += size
    held, bit = fabric.held[row], np.uint8(1 << rank)
    pausing = link["pausing"] & bit != 0
    if (held >= link["xoff"] and not pausing) or (held <= link["xon"] and pausing):
        link["pausing"] ^= bit
        if not link["pause_pending"]:
            link["pause_pending"] = True
            schedule(fabric.events, 2 * len(fabric.link) + i, fabric.state["now"] + link["latency"])
