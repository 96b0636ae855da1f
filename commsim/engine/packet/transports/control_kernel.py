"""Congestion control of all kinds in one place: what each does with an answer, with trimming and when it sends."""

from __future__ import annotations

from commsim.core.jit import njit_norefcount
from commsim.engine.packet.rule_kernel import rules_for
from commsim.engine.packet.run_state import DCQCN, DCTCP, HPCC, MARKED, NSCC, SWIFT, TIMELY, Fabric
from commsim.engine.packet.transports.dcqcn_kernel import on_sent as dcqcn_on_sent
from commsim.engine.packet.transports.dcqcn_kernel import on_time as dcqcn_on_time
from commsim.engine.packet.transports.dctcp_kernel import on_ack as dctcp_on_ack
from commsim.engine.packet.transports.dctcp_kernel import on_trimmed as dctcp_on_trimmed
from commsim.engine.packet.transports.hpcc_kernel import on_ack as hpcc_on_ack
from commsim.engine.packet.transports.nscc_kernel import on_ack as nscc_on_ack
from commsim.engine.packet.transports.nscc_kernel import on_trimmed as nscc_on_trimmed
from commsim.engine.packet.transports.swift_kernel import on_ack as swift_on_ack
from commsim.engine.packet.transports.swift_kernel import on_trimmed as swift_on_trimmed
from commsim.engine.packet.transports.timely_kernel import on_ack as timely_on_ack


@njit_norefcount
def on_news(fabric: Fabric, p: int, delay: float, news: int, now: int) -> None:
    """Adapt to an acknowledgement.

    Parameters
    ----------
    fabric : Fabric
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
        nscc_on_ack(fabric, f, marked, delay, news, now)
    elif transport == DCTCP:
        dctcp_on_ack(fabric, f, packet["number"], marked, news)
    elif transport == SWIFT:
        swift_on_ack(fabric, f, delay, news, now)
    elif transport == HPCC:
        hpcc_on_ack(fabric, f, p)
    elif transport == TIMELY:
        timely_on_ack(fabric, f, delay + fabric.flow[f]["base_rtt"], news)


@njit_norefcount
def on_trimming(fabric: Fabric, f: int, size: int, now: int) -> None:
    """Adapt to a packet of a message that a switch trimmed."""
    transport = rules_for(fabric, f)["transport"]
    if transport == NSCC:
        nscc_on_trimmed(fabric, f, size, now)
    elif transport == DCTCP:
        dctcp_on_trimmed(fabric, f, now)
    elif transport == SWIFT:
        swift_on_trimmed(fabric, f, now)


@njit_norefcount
def pace(fabric: Fabric, f: int, size: int, now: int) -> None:
    """Note that a message sends so many bytes: when the next packet may follow."""
    flow = fabric.flow[f]
    if rules_for(fabric, f)["transport"] == DCQCN:
        dcqcn_on_time(fabric, f, now)
        dcqcn_on_sent(fabric, f, size)
    flow["free_at"] = now + int(size / flow["rate"])
