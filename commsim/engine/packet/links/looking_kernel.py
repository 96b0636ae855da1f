"""Looks at links: samples for those who draw them, and ahead for the processor's cache."""

from __future__ import annotations

from commsim.core.jit import njit_norefcount
from commsim.engine.packet.links.port_kernel import (
    serve,
)
from commsim.engine.packet.run_state import N_COUNTED, Fabric


@njit_norefcount
def look(fabric: Fabric, now: int) -> None:
    """Write down counts, what waits before the links that are watched, less what is being sent, and what has left."""
    state, n = fabric.state, len(fabric.watched)
    at = state["n_samples"] * (N_COUNTED + 2 * n)
    fabric.sample[at] = now
    fabric.sample[at + 1] = state["retransmissions"]
    fabric.sample[at + 2] = state["n_trimmed"]
    fabric.sample[at + 3] = state["marks"]
    fabric.sample[at + 4] = state["busy_slots"]
    for k in range(n):
        if fabric.watched[k] >= state["n_hosts"] and not fabric.link[fabric.watched[k]]["evented"]:
            serve(fabric, fabric.watched[k], now - 1)
        link = fabric.link[fabric.watched[k]]
        going = fabric.packet[link["serving"]]["size"] if link["serving"] >= 0 else 0
        fabric.sample[at + N_COUNTED + k] = max(0, link["low"] + link["high"] - going)
        fabric.sample[at + N_COUNTED + n + k] = link["n_bytes"]
    state["n_samples"] += 1
    state["sample_at"] += (
        (now - state["sample_at"] + state["sample_every"]) // state["sample_every"] * state["sample_every"]
    )


@njit_norefcount
def look_ahead(fabric: Fabric) -> None:
    """Bring what the next events need into the cache, while the present one is served.

    With thousands of hosts a packet's time is mostly that of memory; an event knows no more of the next than its link.
    """
    queue, n_links = fabric.events, len(fabric.link)
    number = queue.wheel["open_head"]
    if number < 0:
        return
    i = number - n_links
    touched = 0
    if 0 <= i < n_links:
        p = fabric.link[i]["pipe_head"]
        touched = fabric.link[i]["low"]
        if p >= 0:
            touched += fabric.packet[p]["next"]
    number = queue.event[number]["after"]
    i = number - n_links
    if 0 <= i < n_links:
        touched += fabric.link[i]["low"]
        touched += fabric.link[i]["pipe_head"]
    fabric.state["touched"] = touched
