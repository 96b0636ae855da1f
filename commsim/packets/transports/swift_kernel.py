"""Swift: the window follows the delay of a packet, below a target by a packet a round trip, above it by the excess.

The target is larger for small windows, so that many senders share a short queue ("flow scaling").

Source: Kumar et al., "Swift: delay is simple and effective for congestion control in the datacenter", SIGCOMM 2020,
algorithm 1 and section 3.5. Constants are in `Swift` of `control_constants.py`.
"""

from __future__ import annotations

from math import sqrt

from commsim.core.jit import njit_norefcount
from commsim.packets.packet_rows import RunState
from commsim.packets.rule_kernel import rules_for

SMALLEST, LARGEST = 0.1, 100.0  # packets of windows between which the target is scaled


@njit_norefcount
def target_of(fabric: RunState, f: int) -> float:
    """Return how long a message's packets should queue, in ps."""
    flow, rules = fabric.flow[f], rules_for(fabric, f)
    slope = rules["delay_range"] / (1.0 / sqrt(SMALLEST) - 1.0 / sqrt(LARGEST))
    more = slope / sqrt(max(flow["window"] / rules["mtu"], SMALLEST)) - slope / sqrt(LARGEST)
    return float(rules["delay_target"] + min(max(0.0, more), rules["delay_range"]))


@njit_norefcount
def on_ack(fabric: RunState, f: int, delay: float, n_bytes: int, now: int) -> None:
    """Adapt the window to the acknowledgement of a packet.

    Parameters
    ----------
    fabric : RunState
        All state; changed in place.
    f : int
        The message.
    delay : float, ps
        How long the packet queued.
    n_bytes : int
        Bytes that the receiver got since the last acknowledgement.
    now : int, ps
        Time.
    """
    flow, rules = fabric.flow[f], rules_for(fabric, f)
    mtu = rules["mtu"]
    target = target_of(fabric, f)
    if delay < target:
        flow["window"] += rules["window_step"] * n_bytes / flow["window"]
    elif now - flow["shrunk_at"] > flow["base_rtt"] + delay:
        whole = delay + flow["base_rtt"]
        flow["window"] *= max(1.0 - rules["shrinking"] * (delay - target) / whole, rules["most_shrunk"])
        flow["shrunk_at"] = now
    flow["window"] = min(max(flow["window"], float(mtu)), flow["most"])


@njit_norefcount
def on_trimmed(fabric: RunState, f: int, now: int) -> None:
    """Shrink the window as much as it may, as for a loss, at most once a round trip."""
    flow = fabric.flow[f]
    if now - flow["shrunk_at"] > flow["base_rtt"]:
        rules = rules_for(fabric, f)
        flow["window"] = max(flow["window"] * rules["most_shrunk"], float(rules["mtu"]))
        flow["shrunk_at"] = now
