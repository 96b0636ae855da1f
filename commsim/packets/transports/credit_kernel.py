"""Credit of receivers: RCCC of Ultra Ethernet, and NDP's and EQDS's pulls, which it descends from.

A sender may send a window at once and then only what it was given. Every data packet says how much its sender wants in
all; the receiver's pacer gives one message after the other a few packets' worth, so that what all of them send fills a
share of its link. Those that have what they asked for get credit in advance when nobody else wants any.

Sources: Ultra Ethernet Specification 1.0, section 3.6.14; Olteanu et al., "An edge-queued datagram service for all
datacenter traffic" (EQDS), NSDI 2022; Handley et al., "NDP", SIGCOMM 2017.
"""

from __future__ import annotations

from commsim.core.jit import njit_norefcount
from commsim.packets.event_rows import NEVER
from commsim.packets.links.loss_kernel import draw
from commsim.packets.links.wheel_kernel import schedule
from commsim.packets.packet_rows import RunState
from commsim.packets.rule_kernel import rules_for

LEAST_WAIT = 1024  # bytes that the pacer waits for after credit of nothing
TARGET = 0.3  # share of marked packets that a receiver in a narrow network aims at
SMOOTHING, RAISE, CUT = 0.5, 0.05, 0.75
INTERVAL = 18e6  # ps from one decision to the next, on average: 1.5 round trips of 12 us


@njit_norefcount
def wanted_credit(fabric: RunState, f: int, backlog: int) -> int:
    """Compute the sum of credit that a sender asks for with the packet that it sends now.

    Parameters
    ----------
    fabric : RunState
        All state.
    f : int
        The message.
    backlog : int, bytes
        Bytes that the sender still has to send, for the first time or again.
    """
    flow, rules = fabric.flow[f], rules_for(fabric, f)
    more = min(backlog, int(rules["window"])) - flow["credit"]
    if flow["blind"] and backlog > 0:
        more = max(more, rules["mtu"])
    n_ready = fabric.host[flow["src"]]["n_ready"]
    if n_ready > 1:
        more //= n_ready
    return int(flow["pulled"] + more)


@njit_norefcount
def ask(fabric: RunState, f: int, amount: int, now: int) -> None:
    """Note at the receiver how much a sender wants in all; get in line for it if that is news."""
    flow = fabric.flow[f]
    if amount > flow["asked"]:
        flow["asked"] = amount
        pull(fabric, f, now)


@njit_norefcount
def pull(fabric: RunState, f: int, now: int) -> None:
    """Get a message in line for credit, and wake the receiver's pacer."""
    flow = fabric.flow[f]
    host = fabric.host[flow["dst"]]
    if flow["is_pulling"]:
        return
    flow["is_pulling"] = True
    flow["next_pull"] = -1
    if host["pull_head"] < 0:
        host["pull_head"] = f
    else:
        fabric.flow[host["pull_tail"]]["next_pull"] = f
    host["pull_tail"] = f
    if host["pacer"] == NEVER:
        host["pacer"] = max(now, host["pacer_free"])
        schedule(fabric.events, _pacer_of(fabric, flow["dst"]), host["pacer"])


@njit_norefcount
def _pacer_of(fabric: RunState, h: int) -> int:
    """Event of a host's pacer."""
    return int(fabric.state["first_pacer"] + h)


@njit_norefcount
def give(fabric: RunState, h: int, now: int) -> int:
    """Give the next message its credit and set the pacer; return the message, or -1 when nobody waits."""
    host = fabric.host[h]
    f = host["pull_head"]
    if f >= 0:
        flow, rules = fabric.flow[f], rules_for(fabric, f)
        host["pull_head"] = flow["next_pull"]
        credit = min(rules["per_pull"], max(0, flow["asked"] - flow["given"]))
        flow["given"] += credit
        flow["is_pulling"] = False
        if flow["asked"] > flow["given"]:
            pull(fabric, f, now)
        else:
            _rest(fabric, h, f)
    else:
        f = host["idle_head"]
        if f < 0:
            host["pacer"] = NEVER
            return -1
        flow, rules = fabric.flow[f], rules_for(fabric, f)
        host["idle_head"] = flow["next_idle"]
        flow["is_idle"] = False
        credit = rules["per_pull"]
        flow["given"] += credit
        if flow["given"] - flow["asked"] < int(rules["window"]) and flow["received_at"] < 0:
            _rest(fabric, h, f)
    wait = (credit if credit > 0 else LEAST_WAIT) * rules["ps_per_byte"] / (rules["pull_share"] * host["rate"])
    host["pacer"] = host["pacer_free"] = now + int(wait)
    schedule(fabric.events, _pacer_of(fabric, h), host["pacer"])
    return int(f)


@njit_norefcount
def _rest(fabric: RunState, h: int, f: int) -> None:
    """Put a message with those that may get credit in advance."""
    host, flow = fabric.host[h], fabric.flow[f]
    if flow["is_idle"]:
        return
    flow["is_idle"] = True
    flow["next_idle"] = -1
    if host["idle_head"] < 0:
        host["idle_head"] = f
    else:
        fabric.flow[host["idle_tail"]]["next_idle"] = f
    host["idle_tail"] = f


@njit_norefcount
def reconsider(fabric: RunState, h: int, now: int) -> None:
    """Adapt a receiver's rate to the share of packets that were marked, where the network is narrower than its hosts.

    Only whole packets count: the first release of the authors' simulator for the published tables of RCCC,
    does not slow down for trimmed ones.
    """
    host = fabric.host[h]
    share = host["n_marked"] / host["n_got"] if host["n_got"] > 0 else 0.0
    host["congestion"] += SMOOTHING * (share - host["congestion"])
    if host["congestion"] > TARGET:
        host["rate"] *= 1.0 - (host["congestion"] - TARGET) * CUT
    else:
        host["rate"] += RAISE
    host["rate"] = min(max(host["rate"], fabric.state["least_rate"]), 1.0)
    host["n_got"] = host["n_marked"] = 0
    host["rate_at"] = now + int((0.75 + 0.5 * draw(fabric)) * INTERVAL)
