"""NSCC, the sender's congestion control of Ultra Ethernet: a window that marks and delay steer together.

Four cases, by whether an acknowledgement carries a mark and whether its queueing delay reaches the target: grow
evenly, grow with what is left of the target, shrink with what is over it, or only change the path. When a round trip
has brought far less than a window, the window falls to what it brought ("quick adapt").

Source: Ultra Ethernet Specification 1.0, section 3.6.13; constants as in the authors' simulator.
"""

from __future__ import annotations

from commsim.core.jit import njit_norefcount
from commsim.packets.codes import NSCC
from commsim.packets.packet_rows import RunState
from commsim.packets.rule_kernel import rules_for

SMOOTHING = 0.0125  # of the delay
STRONGEST = 0.5  # a window shrinks to at least this share at a time
SHRINKING = 0.8  # share of the excess delay that it shrinks by
COLLAPSE = 8  # a window collapses when a round trip brought less than this fraction of the largest one
LATE = 4  # or when a packet took this many targets
NO_QUEUE = 1_000_000  # ps: a delay below it counts as none
FAST = 0.25  # bytes of growth for each byte acknowledged without a queue
PER_STEP = 8  # packets acknowledged before the window grows by what it gained


@njit_norefcount
def measure(fabric: RunState, f: int, rtt: int, marked: bool) -> float:
    """Take a round trip into the smoothed delay; return the queueing delay that it shows, in ps."""
    flow, rules = fabric.flow[f], rules_for(fabric, f)
    if rtt < flow["base_rtt"]:
        flow["base_rtt"] = rtt
        if rules["transport"] == NSCC:
            flow["most"] = 1.5 * rtt / rules["ps_per_byte"]
    delay = float(rtt - flow["base_rtt"])
    smooth(fabric, f, delay, marked)
    return delay


@njit_norefcount
def smooth(fabric: RunState, f: int, delay: float, marked: bool) -> None:
    """Smooth a delay; one above the target without a mark is not the network's, and counts as a quarter round trip."""
    flow = fabric.flow[f]
    if not marked and delay > rules_for(fabric, f)["target"]:
        delay = 0.25 * flow["base_rtt"]
    flow["delay"] += SMOOTHING * (delay - flow["delay"])


@njit_norefcount
def on_ack(fabric: RunState, f: int, marked: bool, delay: float, n_bytes: int, now: int) -> None:
    """Adapt the window to an acknowledgement.

    Parameters
    ----------
    fabric : RunState
        All state; changed in place.
    f : int
        The message.
    marked : bool
        Whether the packet that is acknowledged was marked.
    delay : float, ps
        How long it queued.
    n_bytes : int
        Bytes that the receiver got since the last acknowledgement.
    now : int, ps
        Time.
    """
    flow, rules = fabric.flow[f], rules_for(fabric, f)
    flow["achieved"] += n_bytes
    flow["gained"] += n_bytes
    flow["ignored"] += n_bytes
    if _collapse(fabric, f, False, marked, delay, now):
        return
    if not marked and delay >= rules["target"]:
        flow["gain"] += rules["fair"] * n_bytes
    elif not marked:
        _grow(fabric, f, delay, n_bytes)
    elif delay >= rules["target"]:
        _shrink(fabric, f, now)
    _bound(fabric, f)
    if flow["gained"] > PER_STEP * rules["mtu"] or now - flow["grown_at"] > rules["rtt"]:
        flow["window"] += flow["gain"] / flow["window"]
        if now - flow["grown_at"] >= rules["rtt"]:
            flow["window"] += rules["steady"]
            flow["grown_at"] = now
        flow["gain"], flow["gained"] = 0.0, 0
    _bound(fabric, f)


@njit_norefcount
def on_trimmed(fabric: RunState, f: int, size: int, now: int) -> None:
    """Adapt the window to a packet that a switch trimmed: by its size, or at once when much was lost."""
    flow = fabric.flow[f]
    flow["ignored"] += size
    smooth(fabric, f, float(rules_for(fabric, f)["rtt"]), True)
    flow["trimmed"] = True
    if not _collapse(fabric, f, True, True, 0.0, now):
        flow["window"] -= size
        _bound(fabric, f)


@njit_norefcount
def _grow(fabric: RunState, f: int, delay: float, n_bytes: int) -> None:
    flow, rules = fabric.flow[f], rules_for(fabric, f)
    if delay < NO_QUEUE:
        flow["fast"] += n_bytes
        if flow["fast"] > flow["window"] or flow["is_fast"]:
            flow["window"] += n_bytes * FAST * rules["scale"]
            flow["is_fast"] = True
            return
    else:
        flow["fast"] = 0.0
    flow["is_fast"] = False
    flow["gain"] += rules["proportional"] * n_bytes * (rules["target"] - delay)


@njit_norefcount
def _shrink(fabric: RunState, f: int, now: int) -> None:
    flow, target = fabric.flow[f], rules_for(fabric, f)["target"]
    flow["is_fast"], flow["fast"] = False, 0.0
    if flow["delay"] > target and now - flow["shrunk_at"] > flow["base_rtt"]:
        flow["window"] *= max(1.0 - SHRINKING * (flow["delay"] - target) / flow["delay"], STRONGEST)
        flow["shrunk_at"] = now


@njit_norefcount
def _collapse(fabric: RunState, f: int, lost: bool, marked: bool, delay: float, now: int) -> bool:
    """Fall back to what a round trip brought; return whether to do nothing else, as for what was sent before that."""
    flow, rules = fabric.flow[f], rules_for(fabric, f)
    quiet = flow["ignored"] < flow["to_ignore"] and marked
    if not quiet and now > flow["compare_at"]:
        late = flow["trimmed"] or lost or delay > LATE * rules["target"]
        if flow["compare_at"] > 0 and late and flow["achieved"] < flow["most"] / COLLAPSE:
            flow["window"] = max(float(flow["achieved"]), float(rules["mtu"]))
            flow["to_ignore"], flow["ignored"] = flow["in_flight"], 0
            flow["trimmed"] = False
            quiet = True
        flow["achieved"] = 0
        flow["compare_at"] = now + flow["base_rtt"] + int(rules["target"])
    if quiet:
        flow["gain"], flow["gained"] = 0.0, 0
    return bool(quiet)


@njit_norefcount
def _bound(fabric: RunState, f: int) -> None:
    flow = fabric.flow[f]
    flow["window"] = min(max(flow["window"], float(rules_for(fabric, f)["mtu"])), flow["most"])
