"""Ports for programs that cannot be given one that listens already."""

import random
import socket


def free_ports(n):
    """Draw ports that are free for TCP and UDP, below those that the system gives out: no other socket gets one."""
    found, draw = set(), random.SystemRandom()
    while len(found) < n:
        port = draw.randrange(20_000, 32_000)
        with socket.socket() as stream, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
            try:
                stream.bind(("127.0.0.1", port))
                datagrams.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.add(port)
    return sorted(found)
