"""Rows of packets, and how an event sends them: in the order in which it did, when it is over."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel, njit_norefcount
from commsim.packets.event_rows import Rows
from commsim.packets.packet_rows import RunState


@njit_norefcount
def take_packet(fabric: RunState) -> int:
    """Take a packet off the list of free ones; the main loop makes sure that there is one."""
    p = fabric.state["first_free"]
    fabric.state["first_free"] = fabric.packet[p]["next"]
    fabric.state["n_free"] -= 1
    return int(p)


@njit_norefcount
def free_packet(fabric: RunState, p: int) -> None:
    """Put a packet back."""
    fabric.packet[p]["next"] = fabric.state["first_free"]
    fabric.state["first_free"] = p
    fabric.state["n_free"] += 1


@kernel
def mark_free(packet: Rows, first: int, free: NDArray[np.bool_]) -> None:
    """Mark the packets of the list of free ones, which begins with the one of number `first`, or is empty with -1."""
    p = first
    while p >= 0:
        free[p] = True
        p = packet[p]["next"]


@njit_norefcount
def send(fabric: RunState, p: int, stream: int) -> None:
    """Send a packet over a stream: the main loop puts it into the first queue when the event is over.

    Parameters
    ----------
    fabric : RunState
        All state; changed in place.
    p : int
        Number of the packet.
    stream : int
        Number of the stream.
    """
    packet = fabric.packet[p]
    packet["stream"] = stream
    packet["hop"] = fabric.stream[stream]["begin"]
    packet["came_over"] = -1
    post(fabric, p)


@njit_norefcount
def post(fabric: RunState, p: int) -> None:
    """Note that the present event sends a packet, or passes it on."""
    fabric.packet[p]["next"] = -1
    if fabric.state["sent_head"] < 0:
        fabric.state["sent_head"] = p
    else:
        fabric.packet[fabric.state["sent_tail"]]["next"] = p
    fabric.state["sent_tail"] = p


@njit_norefcount
def post_first(fabric: RunState, p: int) -> None:
    """Send a packet before those that this event has sent, over the link in its field `when`: one that goes on."""
    if fabric.state["sent_head"] < 0:
        fabric.state["sent_tail"] = p
    fabric.packet[p]["next"] = fabric.state["sent_head"]
    fabric.state["sent_head"] = p
