"""The rules that a flow or a packet is under: those of its job's transport, or of the run's."""

from __future__ import annotations

from commsim.core.jit import njit_norefcount
from commsim.packets.codes import CONTRIBUTION
from commsim.packets.event_rows import Row
from commsim.packets.packet_rows import RunState


@njit_norefcount
def rules_for(fabric: RunState, f: int) -> Row:
    """Return the rules of a flow."""
    row: Row = fabric.rules[fabric.flow[f]["rule"]]
    return row


@njit_norefcount
def rules_of_packet(fabric: RunState, p: int) -> Row:
    """Return the rules of a packet's flow; packets of switch systems meet those of the run."""
    packet = fabric.packet[p]
    is_one = len(fabric.rules) == 1 or packet["kind"] >= CONTRIBUTION
    row: Row = fabric.rules[0 if is_one else fabric.flow[packet["flow"]]["rule"]]
    return row
