"""Links whose packets leave in the order in which they come, at times that are known as they are queued."""

from __future__ import annotations

import numpy as np

from commsim.core.jit import njit_norefcount

from .packet_state import DATA, FIRST, LAST, Links, Row
from .wheel_kernel import schedule


@njit_norefcount
def duration(links: Links, link: Row, packet: Row) -> int:
    """Time that a link is busy with a packet, in picoseconds."""
    took = np.int64(packet["size"] * link["ps_per_byte"] + 0.5) + link["packet_time"]
    if packet["flags"] & FIRST and packet["came_over"] < 0:
        took += link["first_time"]
    if packet["flags"] & LAST and packet["kind"] == DATA and links.route[packet["hop"]]["last"]:
        took += link["last_time"]
    return int(took)


@njit_norefcount
def queue_timed(links: Links, number: int, p: int) -> None:
    """Queue a packet at a timed link: it is on its way at once, and arrives when it would have.

    Only a packet that has not left its host yet makes an event when it leaves, for its flow to go on.
    """
    link, packet = links.link[number], links.packet[p]
    link["free_at"] = max(link["free_at"], links.state["now"]) + duration(links, link, packet)
    packet["arrival"] = link["free_at"] + link["latency"]
    if link["pipe_head"] < 0:
        link["pipe_head"] = p
        schedule(links.events, links.state["n_links"] + number, packet["arrival"])
    else:
        links.packet[link["pipe_tail"]]["next"] = p
    link["pipe_tail"] = p
    if link["head"] < 0:
        link["head"] = p
    if packet["came_over"] < 0 and packet["kind"] == DATA and not link["busy"]:
        link["busy"], link["told"] = True, p
        schedule(links.events, number, link["free_at"])


@njit_norefcount
def tell(links: Links, number: int) -> int:
    """Return the packet that has left its host over a timed link, and note which of that kind is next."""
    link = links.link[number]
    settle(links, link)
    p = link["told"]
    after = links.packet[p]["next"]
    while after >= 0 and (links.packet[after]["came_over"] >= 0 or links.packet[after]["kind"] != DATA):
        after = links.packet[after]["next"]
    link["busy"], link["told"] = after >= 0, after
    if after >= 0:
        schedule(links.events, number, links.packet[after]["arrival"] - link["latency"])
    return int(p)


@njit_norefcount
def settle(links: Links, link: Row) -> None:
    """Count the packets that have left a timed link until now.

    What leaves comes before all else that happens at the same time, so that the order of counting changes nothing.
    """
    latest = links.state["now"] + link["latency"]
    while link["head"] >= 0:
        packet = links.packet[link["head"]]
        if packet["arrival"] > latest:
            break
        link["head"] = packet["next"]
        link["queued"] -= packet["size"]
        link["n_packets"] += 1
        link["n_bytes"] += packet["size"]
        links.route[packet["hop"]]["n_bytes"] += packet["size"]
        links.state["queued"] -= packet["size"]
        links.state["events"] += 1
