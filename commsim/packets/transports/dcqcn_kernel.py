"""DCQCN: notifications cut the rate, time and bytes raise it again.

A message's state is brought up to date when it sends or is notified; nothing else looks at it. What happens between
two such times happens in its order: notifications that the receiver's NIC held back, and rises by time.

Source: Zhu et al., "Congestion control for large-scale RDMA deployments", SIGCOMM 2015, section 5. Constants:
`transports.Dcqcn`.
"""

from __future__ import annotations

from commsim.core.jit import njit_norefcount
from commsim.packets.event_rows import NEVER
from commsim.packets.packet_rows import RunState
from commsim.packets.rule_kernel import rules_for

NEARLY = 0.999  # of the link's rate; halving the distance never arrives


@njit_norefcount
def on_time(fabric: RunState, f: int, now: int) -> None:
    """Let happen what was due: rises by time, and cuts."""
    flow, rules = fabric.flow[f], rules_for(fabric, f)
    while flow["rise_at"] <= now or flow["cut_at"] <= now:
        if flow["cut_at"] <= flow["rise_at"]:
            _cut_rate(fabric, f, flow["cut_at"])
            flow["cut_at"], flow["next_cut_at"], flow["last_cut_at"] = flow["next_cut_at"], flow["last_cut_at"], NEVER
        else:
            flow["by_time"] += 1
            _rise(fabric, f)
            at_line = flow["rate"] * rules["ps_per_byte"] >= 1.0
            flow["rise_at"] = NEVER if at_line else flow["rise_at"] + rules["rise_time"]


@njit_norefcount
def on_sent(fabric: RunState, f: int, size: int) -> None:
    """Count what is sent; enough of it raises the rate."""
    flow, rules = fabric.flow[f], rules_for(fabric, f)
    if flow["rate"] * rules["ps_per_byte"] >= 1.0:
        return
    flow["paced_bytes"] += size
    if flow["paced_bytes"] >= rules["rise_bytes"]:
        flow["paced_bytes"] = 0
        flow["by_bytes"] += 1
        _rise(fabric, f)


@njit_norefcount
def _cut_rate(fabric: RunState, f: int, when: int) -> None:
    """Cut the rate by half the estimate of congestion, which has decayed since the last notification."""
    flow, rules = fabric.flow[f], rules_for(fabric, f)
    if flow["decayed_at"] >= 0:
        flow["marked"] *= (1.0 - rules["gain"]) ** ((when - flow["decayed_at"]) // rules["decay_time"])
    flow["aim"] = flow["rate"]
    flow["rate"] = max(flow["rate"] * (1.0 - flow["marked"] / 2.0), rules["least"])
    flow["marked"] += rules["gain"] * (1.0 - flow["marked"])
    flow["decayed_at"] = when
    flow["by_time"], flow["by_bytes"], flow["paced_bytes"] = 0, 0, 0
    flow["rise_at"] = when + rules["rise_time"]


@njit_norefcount
def _rise(fabric: RunState, f: int) -> None:
    """Go half-way to the aim: fast recovery, then with an aim that grows, then with one that grows faster."""
    flow, rules = fabric.flow[f], rules_for(fabric, f)
    fewer = min(flow["by_time"], flow["by_bytes"])
    if fewer > rules["recovery"]:
        flow["aim"] += (fewer - rules["recovery"]) * rules["fast_step"]
    elif max(flow["by_time"], flow["by_bytes"]) > rules["recovery"]:
        flow["aim"] += rules["rate_step"]
    line = 1.0 / rules["ps_per_byte"]
    flow["aim"] = min(flow["aim"], line)
    flow["rate"] = (flow["rate"] + flow["aim"]) / 2.0
    if flow["rate"] >= NEARLY * line:
        flow["rate"] = flow["aim"] = line
