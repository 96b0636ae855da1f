"""TIMELY: the rate follows the gradient of the round trip; patched, also how far it is from a reference.

Sources: Mittal et al., "TIMELY: RTT-based congestion control for the datacenter", SIGCOMM 2015, algorithm 1; Zhu et
al., "ECN or delay: lessons learnt from analysis of DCQCN and TIMELY", CoNEXT 2016, algorithm 2. The first has no rates
that it returns to: any with the same sum stay. Constants: `transports.Timely`.
"""

from __future__ import annotations

from commsim.core.jit import njit_norefcount
from commsim.packets.packet_rows import RunState
from commsim.packets.rule_kernel import rules_for

IN_A_ROW = 5  # rises after which the rate grows
FASTER = 5  # times as fast ("hyperactive increase")


@njit_norefcount
def on_ack(fabric: RunState, f: int, rtt: float, n_bytes: int) -> None:
    """Adapt the rate, once a segment.

    Parameters
    ----------
    fabric : RunState
        All state; changed in place.
    f : int
        The message.
    rtt : float, ps
        Round trip of the packet that is acknowledged.
    n_bytes : int
        Bytes that the receiver got since the last acknowledgement.
    """
    flow, rules = fabric.flow[f], rules_for(fabric, f)
    flow["gained"] += n_bytes
    if flow["gained"] < rules["segment"]:
        return
    flow["gained"] = 0
    if flow["last_rtt"] > 0:
        flow["heard"] += rules["smoothing"] * (rtt - flow["last_rtt"] - flow["heard"])
    flow["last_rtt"] = int(rtt)
    gradient = flow["heard"] / flow["base_rtt"]
    if rtt < rules["low"]:
        flow["stage"] = 0
        flow["rate"] += rules["rate_step"]
    elif rtt > rules["high"]:
        flow["stage"] = 0
        flow["rate"] *= 1.0 - rules["shrinking"] * (1.0 - rules["high"] / rtt)
    elif rules["patched"]:
        _patched(fabric, f, gradient, rtt)
    elif gradient <= 0.0:
        flow["stage"] += 1
        flow["rate"] += rules["rate_step"] * (FASTER if flow["stage"] >= IN_A_ROW else 1)
    else:
        flow["stage"] = 0
        flow["rate"] *= max(1.0 - rules["shrinking"] * gradient, 0.5)
    flow["rate"] = min(max(flow["rate"], rules["least"]), 1.0 / rules["ps_per_byte"])


@njit_norefcount
def _patched(fabric: RunState, f: int, gradient: float, rtt: float) -> None:
    """Weigh growth against the excess over the delay of the lower threshold by the gradient."""
    flow, rules = fabric.flow[f], rules_for(fabric, f)
    reference = rules["low"] - flow["base_rtt"]
    weight = min(max(2.0 * gradient + 0.5, 0.0), 1.0)
    excess = (rtt - rules["low"]) / reference
    flow["rate"] += rules["rate_step"] * (1.0 - weight) - rules["shrinking"] * weight * flow["rate"] * excess
