"""Fair queues at ports: every pair of hosts has a queue of its own, and these take turns.

In one queue for all, the acknowledgements of one flow wait behind the data of another; its sender, which may have no
more under way than a window, stops meanwhile: with one host at half rate a ring took 11 % longer than its bytes. It is
no way out to let all acknowledgements pass: TCP drops data whose own acknowledgement became too old meanwhile.
"""

from __future__ import annotations

from typing import Any

from switch_model.bpf.commands import output_of

from .cable_shape import FRAME, QUEUE, CableShape
from .layout import TestbedLayout

HANDLE = 3
# Pairs share queues beyond this; on the port of a host no two of its pairs do, up to as many hosts.
MAX_QUEUES = 32
# No class may ever wait: the bucket around them gives the link its rate.
UNLIMITED = "rate 4gbps burst 1m cburst 1m"


def queue_fairly(layout: TestbedLayout, namespace: str, node: int, shapes: dict[int, CableShape]) -> None:
    """Give pairs of hosts queues of their own at a node's ports, but where a buffer's size was set, which all share.

    Parameters
    ----------
    layout : TestbedLayout
        The testbed's.
    namespace : str
        Namespace of the node.
    node : int
        Node with the ports.
    shapes : dict of int to CableShape
        What is on the port where each link begins.
    """
    ports = [port for port in layout.ports_of(node) if _bucket(shapes[port.link])["limit"] >= QUEUE]
    n_queues = min(len(layout.seats), MAX_QUEUES)
    if not ports or n_queues < 2:
        return
    tc: list[str] = []
    for port in ports:
        dev = f"dev {port.device} parent"
        tc.append(f"qdisc add {dev} {_bucket(shapes[port.link])['handle']}1 handle {HANDLE}: htb default {n_queues:x}")
        for number in range(1, n_queues + 1):
            quantum = FRAME.mtu + FRAME.ethernet
            tc.append(f"class add {dev} {HANDLE}: classid {HANDLE}:{number:x} htb {UNLIMITED} quantum {quantum}")
            tc.append(f"qdisc add {dev} {HANDLE}:{number:x} bfifo limit {QUEUE}")
    output_of(["tc", "-n", namespace, "-batch", "-"], "\n".join(tc))
    seats = [str(layout.address(seat)) for seat in layout.seats]
    queues = ", ".join(
        f"{a} . {b} : {hex((HANDLE << 16) + (j - i) % n_queues + 1)}"
        for i, a in enumerate(seats)
        for j, b in enumerate(seats)
        if i != j
    )
    chains = "".join(
        f'chain {port.device} {{ type filter hook egress device "{port.device}" priority 0\n'
        f"meta priority set ip saddr . ip daddr map @queues\n}}\n"
        for port in ports
    )
    table = f"table netdev fair {{\nmap queues {{ type ipv4_addr . ipv4_addr : classid\nelements = {{ {queues} }}\n}}\n"
    output_of(["nsenter", f"--net=/run/netns/{namespace}", "nft", "-f", "-"], f"{table}{chains}}}\n")


def _bucket(shape: CableShape) -> dict[str, Any]:
    """Return the options of the token bucket, the inner one of a port's queues."""
    return shape.queues[-1][1]
