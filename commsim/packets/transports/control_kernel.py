"""Congestion control of all kinds in one place: what each does with an answer, with trimming and when it sends."""

from __future__ import annotations

from commsim.core.jit import njit_norefcount
from commsim.packets.codes import DCQCN, DCTCP, HPCC, MARKED, NSCC, OWN, SWIFT, TIMELY
from commsim.packets.event_rows import NEVER
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
from commsim.packets.transports.own_controls import ACKED, LOST, SENT


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
        own_kernel.on_event(fabric, f, ACKED, news, delay, marked, now)


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
        own_kernel.on_event(fabric, f, LOST, 0, 0.0, False, now)


@njit_norefcount
def on_notified(fabric: RunState, f: int, wait: int, now: int) -> None:
    """Take a notification, which counts when the receiver's NIC would have sent it: `wait` ps later."""
    flow = fabric.flow[f]
    _let_happen(fabric, f, now)
    when = now + wait + rules_for(fabric, f)["notify_delay"]
    # what is held back is three notifications at most: one is due, and two may be on their way through the NIC; none
    # overtakes the one before it, though that one waited longer in queues
    if flow["cut_at"] == NEVER:
        flow["cut_at"] = when
    elif flow["next_cut_at"] == NEVER:
        flow["next_cut_at"] = max(when, flow["cut_at"])
    else:
        flow["last_cut_at"] = max(when, flow["next_cut_at"])
    _let_happen(fabric, f, now)


@njit_norefcount
def pace(fabric: RunState, f: int, size: int, now: int) -> None:
    """Note that a message sends so many bytes: when the next packet may follow."""
    flow = fabric.flow[f]
    transport = rules_for(fabric, f)["transport"]
    if transport == DCQCN:
        dcqcn_kernel.on_time(fabric, f, now)
        dcqcn_kernel.on_sent(fabric, f, size)
    elif transport == OWN:
        own_kernel.on_event(fabric, f, SENT, size, 0.0, False, now)
    flow["free_at"] = now + int(size / flow["rate"])


@njit_norefcount
def _let_happen(fabric: RunState, f: int, now: int) -> None:
    """Let happen what was due by now of timers and notifications."""
    if rules_for(fabric, f)["transport"] == DCQCN:
        dcqcn_kernel.on_time(fabric, f, now)
    else:
        own_kernel.on_time(fabric, f, now)
