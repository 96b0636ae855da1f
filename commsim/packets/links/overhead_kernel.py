"""What packets take at a link beside the time of their bytes: overheads of messages, by engines of their hosts."""

from __future__ import annotations

from commsim.core.jit import njit_norefcount
from commsim.packets import codes
from commsim.packets.event_rows import Row
from commsim.packets.packet_rows import RunState


@njit_norefcount
def keeps_path(packet: Row) -> bool:
    """Tell whether a packet follows a stream; else switches choose its links."""
    return bool(packet["kind"] >= codes.CONTRIBUTION or packet["flags"] & codes.ON_PATH)


@njit_norefcount
def costs_of(fabric: RunState, i: int, p: int, now: int, of_bytes: int) -> int:
    """Return the time of a packet beside that of its bytes: its own, and overheads of its message.

    A link that sends a message's first packet waits for a message engine of its host, where other links use it too.
    """
    link, packet = fabric.link[i], fabric.packet[p]
    took = int(link["packet_time"])
    is_answer = codes.DATA < packet["kind"] < codes.CONTRIBUTION
    if packet["flags"] & codes.FIRST and packet["came_over"] < 0 and not is_answer and link["first_time"] > 0:
        took += _spent(fabric, 2 * packet["flow"], now, link["first_time"]) - now
    if packet["flags"] & codes.LAST and packet["kind"] == codes.DATA and link["last_time"] > 0 and _ends(fabric, p):
        begun = now + of_bytes + took
        took += _spent(fabric, 2 * packet["flow"] + 1, begun, link["last_time"]) - begun
    return int(took)


@njit_norefcount
def _spent(fabric: RunState, which: int, at: int, overhead: int) -> int:
    """Return when an overhead that could begin at some time is spent; by the first free engine of a group, if any."""
    group = fabric.engine_of[which] if which < len(fabric.engine_of) else -1  # none of jobs that switches aggregate
    if group < 0:
        return at + overhead
    first, end = fabric.engine[group], fabric.engine[group + 1]
    best = first
    for e in range(first + 1, end):
        if fabric.engine_free[e] < fabric.engine_free[best]:
            best = e
    fabric.engine_free[best] = max(at, fabric.engine_free[best]) + overhead
    return int(fabric.engine_free[best])


@njit_norefcount
def _ends(fabric: RunState, p: int) -> bool:
    """Tell whether a packet at the link of a host, or before it, gets to where it goes over it."""
    packet = fabric.packet[p]
    return not keeps_path(packet) or bool(fabric.route[packet["hop"]]["last"])
