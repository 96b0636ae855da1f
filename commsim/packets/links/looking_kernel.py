"""Looks at links: samples for those who draw them, and ahead for the processor's cache."""

from __future__ import annotations

from commsim.core.jit import fetch, njit_norefcount
from commsim.packets.links.port_kernel import serve
from commsim.packets.packet_rows import N_COUNTED, RunState


@njit_norefcount
def look(fabric: RunState, now: int) -> None:
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
def look_ahead(fabric: RunState) -> None:
    """Bring what the next events need into the cache, while the present one is served.

    With thousands of hosts a packet's time is mostly that of memory. An arrival knows its link, that one its packet,
    and that one the next on the link: each is asked for one event before it is looked at.
    """
    event, n_links = fabric.events.event, len(fabric.link)
    first = fabric.events.wheel["open_head"]
    if first < 0:
        return
    second = event[first]["after"]
    if n_links <= first < 2 * n_links:
        p = fabric.link[first - n_links]["pipe_head"]
        if p >= 0:
            fetch(fabric.packet, fabric.packet[p]["next"])
    if second < 0:
        return
    if n_links <= second < 2 * n_links:
        fetch(fabric.packet, fabric.link[second - n_links]["pipe_head"])
    third = event[second]["after"]
    if third < 2 * n_links:
        fetch(fabric.link, third - n_links if third >= n_links else third)
