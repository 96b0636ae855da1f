"""Who hears whom in a testbed: datagrams between sockets that were made in its namespaces, and nothing else."""

import contextlib
import socket
from collections.abc import Iterator

from commsim.real.testbed.build import inside
from commsim.real.testbed.layout import TestbedLayout
from commsim.real.testbed.places import NamesOfTestbed

PORT = 40000
SO_RCVBUFFORCE = 33  # of Linux: beyond what is allowed to everybody


@contextlib.contextmanager
def ears(place: NamesOfTestbed, layout: TestbedLayout, nodes: tuple[int, ...]) -> Iterator[dict[int, socket.socket]]:
    """A socket at each node's own address; they stay in their namespaces, where this process was for a moment."""
    with contextlib.ExitStack() as stack:
        found = {}
        for node in nodes:
            with inside(place.namespace(node)):
                found[node] = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            found[node].bind((str(layout.address(node)), PORT))
            found[node].setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 22)
            found[node].settimeout(60.0)  # of sending, too: a busy kernel frees a full buffer late
        yield found


def heard(one: socket.socket, seconds: float = 0.2) -> list[bytes]:
    """Return what has arrived, until nothing does for some time."""
    one.settimeout(seconds)
    found = []
    while True:
        try:
            found.append(one.recv(9000))
        except TimeoutError:
            return found
