"""Congestion control of all kinds in one place: what each does with an answer, with trimming and when it sends."""

from __future__ import annotations

from commsim.core.jit import njit_norefcount
from commsim.packets.codes import DCQCN, DCTCP, HPCC, MARKED, NSCC, OWN, SWIFT, TIMELY
from commsim.packets.packet_rows import RunState
from commsim.packets.rule_kernel import rules_for
from commsim.packets.transports import (
    dcqcn_kernel,
    dctcp_kernel,
    hpcc_kernel,
    nscc_kernel,
    own_kernel,
    swift_kernel,
    timely_kernel,
)


@njit_norefcount
def on_news(fabric: RunState, p: int, delay: float, news: int, now: int) -> None:
    """Adapt to an acknowledgement.

    Parameters
    ----------
    fabric : RunState
        All state; changed in place.
    p : int
        The acknowledgement.
    delay : float, ps
        How long the packet that it answers queued.
    news : int, bytes
        Bytes that the receiver got since the last acknowledgement.
    now : int, ps
        Time.
    """
    packet = fabric.packet[p]
    f, marked = packet["flow"], packet["flags"] & MARKED != 0
    transport = rules_for(fabric, f)["transport"]
    if transport == NSCC:
        nscc_kernel.on_ack(fabric, f, marked, delay, news, now)
    elif transport == DCTCP:
        dctcp_kernel.on_ack(fabric, f, packet["number"], marked, news)
    elif transport == SWIFT:
        swift_kernel.on_ack(fabric, f, delay, news, now)
    elif transport == HPCC:
        hpcc_kernel.on_ack(fabric, f, p)
    elif transport == TIMELY:
        timely_kernel.on_ack(fabric, f, delay + fabric.flow[f]["base_rtt"], news)
    elif transport == OWN:
        own_kernel.on_ack(fabric, f, marked, delay, news, now)


@njit_norefcount
def on_trimming(fabric: RunState, f: int, size: int, now: int) -> None:
    """Adapt to a packet of a message that a switch trimmed."""
    transport = rules_for(fabric, f)["transport"]
    if transport == NSCC:
        nscc_kernel.on_trimmed(fabric, f, size, now)
    elif transport == DCTCP:
        dctcp_kernel.on_trimmed(fabric, f, now)
    elif transport == SWIFT:
        swift_kernel.on_trimmed(fabric, f, now)
    elif transport == OWN:
        own_kernel.on_trimmed(fabric, f, now)


@njit_norefcount
def pace(fabric: RunState, f: int, size: int, now: int) -> None:
    """Note that a message sends so many bytes: when the next packet may follow."""
    flow = fabric.flow[f]
    if rules_for(fabric, f)["transport"] == DCQCN:
        dcqcn_kernel.on_time(fabric, f, now)
        dcqcn_kernel.on_sent(fabric, f, size)
    flow["free_at"] = now + int(size / flow["rate"])
