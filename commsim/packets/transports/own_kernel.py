"""Congestion control by a function of a user's file: it is told of an answer or a loss, and sets window or rate."""

from __future__ import annotations

from commsim.core.jit import call_at, njit_norefcount
from commsim.packets.event_rows import PS
from commsim.packets.packet_rows import RunState
from commsim.packets.rule_kernel import rules_for

# Share of its link's rate that a message keeps at the least: at a rate of 0 no answer would come to raise it.
LEAST = 1e-3


@njit_norefcount
def on_ack(fabric: RunState, f: int, marked: bool, delay: float, n_bytes: int, now: int) -> None:
    """Have the function adapt window or rate to an acknowledgement.

    Parameters
    ----------
    fabric : RunState
        All state; changed in place.
    f : int
        The message.
    marked : bool
        Whether the packet that is answered was marked.
    delay : float, ps
        How long it queued.
    n_bytes : int
        Bytes that the receiver got since the last acknowledgement.
    now : int, ps
        Time.
    """
    told = fabric.told[f]
    told["delay"], told["acked"], told["marked"], told["lost"] = delay / PS, n_bytes, marked, False
    _adapt(fabric, f, now)


@njit_norefcount
def on_trimmed(fabric: RunState, f: int, now: int) -> None:
    """Have the function adapt window or rate to a packet that was trimmed or lost."""
    told = fabric.told[f]
    told["acked"], told["marked"], told["lost"] = 0.0, False, True
    _adapt(fabric, f, now)


@njit_norefcount
def _adapt(fabric: RunState, f: int, now: int) -> None:
    """Call the function; a window is a packet at least, a rate ``LEAST``, also where the function sets no number."""
    flow, rules, told = fabric.flow[f], rules_for(fabric, f), fabric.told[f]
    told["now"], told["base_rtt"], told["window"] = now / PS, flow["base_rtt"] / PS, flow["window"]
    told["rtt"] = told["base_rtt"] + told["delay"]
    told["in_flight"], told["packet"] = flow["in_flight"], rules["mtu"]
    line = 1.0 / rules["ps_per_byte"]
    told["line_rate"], told["rate"] = line * PS, flow["rate"] * PS
    call_at(rules["function"], told)
    if rules["paces"]:
        rate = told["rate"] / PS
        if not rate >= LEAST * line:
            rate = LEAST * line
        flow["rate"] = min(rate, line)
    window = told["window"]
    if not window >= rules["mtu"]:
        window = float(rules["mtu"])
    flow["window"] = min(window, flow["most"])
