"""Which message a packet's number belongs to: its bytes on the wire, and whether it is the last one."""

from __future__ import annotations

from commsim.core.jit import njit_norefcount
from commsim.packets.packet_rows import RunState
from commsim.packets.rule_kernel import rules_for


@njit_norefcount
def size_of(fabric: RunState, f: int, number: int) -> int:
    """Return the bytes on the wire of a flow's packet."""
    flow, mtu = fabric.flow[f], rules_for(fabric, f)["mtu"]
    if number >= flow["first"]:
        return int(flow["last_size"] if number == flow["limit"] - 1 else mtu)
    message = fabric.message[_message_of(fabric, f, number)]
    return int(message["last_size"] if number == message["end"] - 1 else mtu)


@njit_norefcount
def ends_message(fabric: RunState, f: int, number: int) -> bool:
    """Tell whether a packet is the last one of its message."""
    flow = fabric.flow[f]
    if number >= flow["first"]:
        return bool(number == flow["limit"] - 1)
    return bool(number == fabric.message[_message_of(fabric, f, number)]["end"] - 1)


@njit_norefcount
def _message_of(fabric: RunState, f: int, number: int) -> int:
    """Return whose packet this is: of the message that has begun, or of one before it."""
    flow = fabric.flow[f]
    begin = fabric.flow[f - 1]["end"] if f > 0 else 0
    place = min(flow["message"], flow["end"] - 1)
    while place > begin and number < fabric.message[fabric.queue[place - 1]]["end"]:
        place -= 1
    return int(fabric.queue[place])
