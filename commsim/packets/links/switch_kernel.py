"""A switch: the link that each packet takes which may take several."""

from __future__ import annotations

import numpy as np

from commsim.core.jit import njit_norefcount
from commsim.packets.codes import ADAPTIVE, DATA, FLOWLET
from commsim.packets.links.loss_kernel import draw, mix
from commsim.packets.links.port_kernel import serve
from commsim.packets.packet_rows import N_FLOWLETS, RunState
from commsim.packets.rule_kernel import rules_of_packet


@njit_norefcount
def choose(fabric: RunState, switch: int, p: int) -> int:
    """Choose the link that a packet takes: the receiver's, or one of those that lead to its switch.

    Parameters
    ----------
    fabric : RunState
        All state; changed in place.
    switch : int
        Number of the switch that it is at, among the switches.
    p : int
        Number of the packet.
    """
    packet, state = fabric.packet[p], fabric.state
    target = packet["target"]
    if fabric.edge_switch[target] == switch:
        return int(state["n_hosts"] + target)
    row = switch * state["n_edges"] + fabric.edge[target]
    first, count = fabric.way[row], fabric.way[row + 1] - fabric.way[row]
    if count == 1:
        return int(fabric.ways[first])
    rules = rules_of_packet(fabric, p)
    balancing = rules["balancing"]
    if balancing in (ADAPTIVE, FLOWLET) and packet["kind"] == DATA:
        # a pause longer than the paths differ lets a message change its path without reordering
        has_flowlets = balancing == FLOWLET
        let = fabric.flowlet[switch * N_FLOWLETS + packet["flow"] % N_FLOWLETS if has_flowlets else 0]
        stays = has_flowlets and let["link"] >= 0 and packet["when"] - let["when"] <= rules["flowlet_gap"]
        link = let["link"] if stays else _least_loaded(fabric, first, count, rules["choices"], packet["when"])
        if has_flowlets:
            let["link"], let["when"] = link, packet["when"]
        return int(link)
    # the two directions of a message are different connections to a hash, as their targets differ
    key = (np.uint64(packet["flow"]) << np.uint64(20) ^ np.uint64(target)) << np.uint64(16) ^ np.uint64(
        packet["entropy"]
    )
    return int(fabric.ways[first + np.int64(mix(key ^ fabric.salt[switch]) % np.uint64(count))])


@njit_norefcount
def _least_loaded(fabric: RunState, first: int, count: int, choices: int, now: int) -> int:
    """Compare the queues of some of the links, drawn at random, and take the shortest."""
    best, least = -1, 0
    for _ in range(choices):
        i = fabric.ways[first + min(count - 1, int(draw(fabric) * count))]
        if not fabric.link[i]["evented"]:
            serve(fabric, i, now)
        queued = fabric.link[i]["low"] + fabric.link[i]["high"]
        if best < 0 or queued < least:
            best, least = i, queued
    return int(best)
