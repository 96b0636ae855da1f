"""Pinned routes in a testbed: routers that look at the sender too, for as long as a run takes.

A forwarding table knows where a packet goes, not where it comes from, and neither knows the channel of a message. So a
rule of each router on the way names both hosts (policy routing), and what is pinned is one route for a pair of hosts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from commsim.core.errors import InputError
from commsim.core.placement import Placement

from .build import opened
from .layout import CableEnd, TestbedLayout
from .places import NamesOfTestbed

# Beside the kernel's own: tables by the number of the port, and rules before that of the main table.
FIRST_TABLE, PRIORITY = 1000, 1000
Turns = dict[tuple[int, int, int], int]


def turns_of(layout: TestbedLayout, placement: Placement) -> Turns:
    """Return which link a packet takes at a node, by (node, sender's node, receiver's node), of what is pinned.

    Parameters
    ----------
    layout : TestbedLayout
        The testbed.
    placement : Placement
        Placement of the ranks on its network.

    Raises
    ------
    InputError
        If two channels between the same hosts take different routes, or a route comes to a node twice.
    """
    turns: Turns = {}
    routes, network = placement.routes, layout.network
    if routes is None:
        return turns
    routes.check(network, placement.nodes)
    seen: dict[tuple[int, int], tuple[int, ...]] = {}
    for (src, dst, _), links in zip(routes.ends.tolist(), np.split(routes.link, routes.first[1:-1]), strict=True):
        pair = int(placement.nodes[src]), int(placement.nodes[dst])
        route = tuple(links.tolist())
        names = f"from {network.nodes[pair[0]]} to {network.nodes[pair[1]]}"
        if seen.setdefault(pair, route) != route:
            raise InputError(
                f"a testbed's routers see hosts, not channels, and messages {names} are pinned to several routes; "
                "a schedule with one route per pair of hosts can be built"
            )
        nodes = [int(node) for node in network.src[links]]
        if len(set(nodes)) < len(nodes):
            raise InputError(f"a testbed's routers do not know how often a packet has passed: the route {names} comes "
                             "to a node twice")  # fmt: skip
        turns |= {(node, *pair): link for node, link in zip(nodes, route, strict=True)}
    return turns


@contextlib.contextmanager
def pinned(
    place: NamesOfTestbed, layout: TestbedLayout, placement: Placement, priority: int = PRIORITY
) -> Iterator[None]:
    """Send what a placement pins over its routes for the time of a `with`.

    Parameters
    ----------
    place, layout : NamesOfTestbed, TestbedLayout
        The testbed. With bridges there is one path between any two hosts, which is what can be pinned.
    placement : Placement
        Placement of the ranks on its network.
    priority : int
        Priority of the rules; another one where such rules hold already.

    Raises
    ------
    InputError
        As :func:`turns_of`.
    """
    turns = {} if layout.bridged else turns_of(layout, placement)
    ports = {port.link: (number, port) for number, port in enumerate(layout.ports)}
    with contextlib.ExitStack() as stack:
        doors: dict[int, Any] = {}
        for (node, src, dst), link in turns.items():
            if node not in doors:
                doors[node] = stack.enter_context(opened(place.namespace(node)))
            number, port = ports[link]
            _add(stack, layout, doors[node], number, port, (src, dst), priority)
        yield


def _add(
    stack: contextlib.ExitStack,
    layout: TestbedLayout,
    door: Any,
    number: int,
    port: CableEnd,
    pair: tuple[int, int],
    priority: int,
) -> None:
    """Add a rule for a pair, and the table of its port with it; both go with the stack."""
    table = FIRST_TABLE + number
    over = {"gateway": str(port.peer), "oif": door.link_lookup(ifname=port.device)[0], "table": table}
    door.route("replace", dst="0.0.0.0/0", **over)
    src, dst = (str(layout.address(node)) for node in pair)
    rule = {"src": src, "src_len": 32, "dst": dst, "dst_len": 32, "table": table, "priority": priority}
    door.rule("add", **rule)
    stack.callback(door.rule, "del", **rule)
