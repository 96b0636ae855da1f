"""Classes of packets in one queue: strict priorities or weights, and which of them may go.

A queue is kept in the order of keys. With strict priorities a packet's key is its class. With weights it is the time at
which a link that served all classes at once, in proportion, would have sent it, counted as self-clocked fair queueing
does (Golestani, INFOCOM 1994): from the key of the packet in service, or of the one before it of its class.
"""

from __future__ import annotations

import numpy as np

from commsim.core.jit import njit_norefcount

from .packet_state import Links, Row

SCALE = 1 << 16  # of keys: parts of a byte, for weights that are no whole numbers


@njit_norefcount
def class_of(links: Links, p: int) -> int:
    """Class of a packet: the rank of its stream's priority."""
    return int(links.stream[links.packet[p]["stream"]]["priority"])


@njit_norefcount
def give_key(links: Links, number: int, p: int) -> None:
    """Note in a packet its place in the queue of a link, the least first.

    Parameters
    ----------
    links : Links
        All tables; changed in place.
    number : int
        Number of the link.
    p : int
        Number of the packet.
    """
    packet, rank = links.packet[p], class_of(links, p)
    if len(links.class_weight) == 0:
        packet["arrival"] = rank
        return
    row = number * links.state["n_classes"] + rank
    begin = max(links.link[number]["served"], links.last_key[row])
    links.last_key[row] = begin + np.int64(packet["size"] * SCALE / links.class_weight[rank])
    packet["arrival"] = links.last_key[row]


@njit_norefcount
def overtake(links: Links, link: Row, p: int) -> None:
    """Queue a packet before all that have a later key, but for one that is being sent."""
    mine, before, after = links.packet[p]["arrival"], -1, link["head"]
    if link["busy"]:
        before, after = after, links.packet[after]["next"]
    while after >= 0 and links.packet[after]["arrival"] <= mine:
        before, after = after, links.packet[after]["next"]
    links.packet[p]["next"] = after
    if before < 0:
        link["head"] = p
    else:
        links.packet[before]["next"] = p
    if after < 0:  # only the packet that is being sent was there
        link["tail"] = p


@njit_norefcount
def ahead(links: Links, link: Row, p: int) -> int:
    """Bytes that leave a queue before a packet that comes now."""
    mine = links.packet[p]["arrival"]
    if link["head"] < 0 or links.packet[link["tail"]]["arrival"] <= mine:
        return int(link["queued"])
    number = link["head"]
    n_bytes = links.packet[number]["size"] if link["busy"] else 0
    number = links.packet[number]["next"] if link["busy"] else number
    while number >= 0 and links.packet[number]["arrival"] <= mine:
        n_bytes += links.packet[number]["size"]
        number = links.packet[number]["next"]
    return int(n_bytes)


@njit_norefcount
def bring_unpaused(links: Links, link: Row) -> bool:
    """Bring the first packet whose class is not paused to the head of a queue; return whether there is one."""
    before, p = -1, link["head"]
    while p >= 0 and link["paused"] >> class_of(links, p) & 1:
        before, p = p, links.packet[p]["next"]
    if p < 0:
        return False
    if before >= 0:
        links.packet[before]["next"] = links.packet[p]["next"]
        links.packet[p]["next"] = link["head"]
        link["head"] = p
        if link["tail"] == p:
            link["tail"] = before
    return True
