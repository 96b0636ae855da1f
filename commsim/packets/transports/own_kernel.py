"""Congestion control by a function of a user's file: it is told of what happens, and sets window, rate and timers."""

from __future__ import annotations

import numpy as np

from commsim.core.jit import call_at, njit_norefcount
from commsim.packets.event_rows import NEVER, PS
from commsim.packets.packet_rows import RunState
from commsim.packets.rule_kernel import rules_for
from commsim.packets.transports.own_controls import ACKED, LOST, N_TIMERS, NOTIFIED, SENT, TIMER

LATER = 1e-7  # s: from now on a timer fires that is set to a time which is over


@njit_norefcount
def on_event(fabric: RunState, f: int, event: int, n_bytes: int, delay: float, marked: bool, now: int) -> None:
    """Tell the function what happened, after all that was due before.

    Parameters
    ----------
    fabric : RunState
        All state; changed in place.
    f : int
        The message.
    event : int
        ``ACKED``, ``LOST`` or ``SENT``.
    n_bytes : int
        Bytes that the receiver got since the last acknowledgement, or of the packet that is sent.
    delay : float, ps
        How long the packet that is answered queued.
    marked : bool
        Whether it was marked.
    now : int, ps
        Time.
    """
    told = fabric.told[f]
    on_time(fabric, f, now)
    if event == ACKED:
        told["acked"], told["delay"], told["marked"] = n_bytes, delay / PS, marked
    elif event == SENT:
        if not rules_for(fabric, f)["hears_sent"]:
            return
        told["sent"] = n_bytes
    _adapt(fabric, f, event, now)


@njit_norefcount
def on_time(fabric: RunState, f: int, now: int) -> None:
    """Let happen what was due in its order; at the same time notifications, then timers by their number."""
    flow, told = fabric.flow[f], fabric.told[f]
    while True:
        timer, when = -1, flow["cut_at"]
        for i in range(N_TIMERS):
            at = np.rint(told["timers"][i] * PS)
            if at < when and at <= now:
                timer, when = i, int(at)
        if when > now:
            return
        if timer < 0:
            flow["cut_at"], flow["next_cut_at"], flow["last_cut_at"] = flow["next_cut_at"], flow["last_cut_at"], NEVER
        else:
            told["timers"][timer] = np.inf
        told["timer"] = timer
        _adapt(fabric, f, NOTIFIED if timer < 0 else TIMER, when)


@njit_norefcount
def _adapt(fabric: RunState, f: int, event: int, now: int) -> None:
    """Call the function; window and rate have lower bounds, also where the function sets no number."""
    flow, rules, told = fabric.flow[f], rules_for(fabric, f), fabric.told[f]
    told["now"], told["base_rtt"], told["window"] = now / PS, flow["base_rtt"] / PS, flow["window"]
    told["event"], told["lost"] = event, event == LOST
    told["rtt"] = told["base_rtt"] + told["delay"]
    told["in_flight"], told["packet"] = flow["in_flight"], rules["mtu"]
    line = 1.0 / rules["ps_per_byte"]
    before = flow["rate"] * PS
    told["line_rate"], told["rate"] = line * PS, before
    call_at(rules["function"], told)
    told["acked"], told["marked"], told["sent"], told["timer"] = 0.0, False, 0.0, -1
    if rules["paces"] and told["rate"] != before:  # as it was, to the last bit, where the function leaves it
        rate = told["rate"] / PS
        if not rate >= rules["least"]:
            rate = rules["least"]
        flow["rate"] = min(rate, line)
    window = told["window"]
    if not window >= rules["mtu"]:
        window = float(rules["mtu"])
    flow["window"] = min(window, flow["most"])
    for i in range(N_TIMERS):
        if not np.rint(told["timers"][i] * PS) > now:
            told["timers"][i] = now / PS + LATER
