"""DCTCP: the window shrinks by the share of marked bytes at the first mark of a round trip, and else grows by a packet.

As with TCP, what was under way at a cut brings neither another cut nor growth. The share is of rounds of their own.

Source: Alizadeh et al., "Data center TCP (DCTCP)", SIGCOMM 2010, equations 1 and 2; RFC 8257, sections 3.3 and 3.4.
"""

from __future__ import annotations

from commsim.core.jit import njit_norefcount
from commsim.packets.packet_rows import RunState
from commsim.packets.rule_kernel import rules_for

GAIN = 1 / 16  # of the smoothed share; the paper's g


@njit_norefcount
def on_ack(fabric: RunState, f: int, number: int, marked: bool, n_bytes: int) -> None:
    """Adapt the window to the acknowledgement of a packet.

    Parameters
    ----------
    fabric : RunState
        All state; changed in place.
    f, number : int
        The message, and the packet's number.
    marked : bool
        Whether the packet was marked.
    n_bytes : int
        Bytes that the receiver got since the last acknowledgement.
    """
    flow, mtu = fabric.flow[f], rules_for(fabric, f)["mtu"]
    flow["round_bytes"] += n_bytes
    flow["round_marked"] += n_bytes if marked else 0
    if number >= flow["round_end"]:
        if flow["round_bytes"] > 0:
            flow["marked"] += GAIN * (flow["round_marked"] / flow["round_bytes"] - flow["marked"])
        flow["round_end"], flow["round_bytes"], flow["round_marked"] = flow["highest"], 0, 0
    if number >= flow["cut_end"]:
        if marked:
            flow["window"] *= 1.0 - flow["marked"] / 2.0
            flow["cut_end"] = flow["highest"]
        else:
            flow["window"] += mtu * n_bytes / flow["window"]
    flow["window"] = min(max(flow["window"], float(mtu)), flow["most"])


@njit_norefcount
def on_trimmed(fabric: RunState, f: int, now: int) -> None:
    """Halve the window, as for a loss, at most once a round trip."""
    flow = fabric.flow[f]
    if now - flow["shrunk_at"] > flow["base_rtt"]:
        flow["window"] = max(flow["window"] / 2.0, float(rules_for(fabric, f)["mtu"]))
        flow["shrunk_at"] = now
