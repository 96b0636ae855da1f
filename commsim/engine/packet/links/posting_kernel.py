"""Rows of packets, and how an event sends them: in the order in which it did, when it is over."""

from __future__ import annotations

from typing import Protocol

from commsim.core.jit import njit_norefcount
from commsim.engine.packet.packet_state import EventQueue, Row, Rows


class Packets(Protocol):
    """What is needed of the tables to send packets over a stream."""

    @property
    def events(self) -> EventQueue:
        """Pending events."""

    @property
    def state(self) -> Row:
        """Time, free packets, counters."""

    @property
    def packet(self) -> Rows:
        """Packets."""

    @property
    def stream(self) -> Rows:
        """Ways of packets that follow a given one."""


@njit_norefcount
def take_packet(links: Packets) -> int:
    """Take a packet off the list of free ones; the main loop makes sure that there is one."""
    p = links.state["first_free"]
    links.state["first_free"] = links.packet[p]["next"]
    links.state["n_free"] -= 1
    return int(p)


@njit_norefcount
def free_packet(links: Packets, p: int) -> None:
    """Put a packet back."""
    links.packet[p]["next"] = links.state["first_free"]
    links.state["first_free"] = p
    links.state["n_free"] += 1


@njit_norefcount
def send(links: Packets, p: int, stream: int) -> None:
    """Send a packet over a stream: `queue_sent` puts it into the first queue when the event is over.

    Parameters
    ----------
    links : Packets
        Links, packets and time; changed in place.
    p : int
        Number of the packet.
    stream : int
        Number of the stream.
    """
    packet = links.packet[p]
    packet["stream"] = stream
    packet["hop"] = links.stream[stream]["begin"]
    packet["came_over"] = -1
    post(links, p)


@njit_norefcount
def post(links: Packets, p: int) -> None:
    """Note that the present event sends a packet, or passes it on."""
    links.packet[p]["next"] = -1
    if links.state["sent_head"] < 0:
        links.state["sent_head"] = p
    else:
        links.packet[links.state["sent_tail"]]["next"] = p
    links.state["sent_tail"] = p


@njit_norefcount
def post_first(links: Packets, p: int) -> None:
    """Send a packet before those that this event has sent, over the link in its field `when`: one that goes on."""
    if links.state["sent_head"] < 0:
        links.state["sent_tail"] = p
    links.packet[p]["next"] = links.state["sent_head"]
    links.state["sent_head"] = p
