"""The shape of a cable in a testbed: its rate, queue and losses, as options of the kernel's queueing disciplines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from commsim.core.cost import Framing
from commsim.core.errors import InputError
from commsim.core.network import Network
from switch_model.bpf.commands import output_of

from .places import has_netem, has_nftables

# Bytes that may wait unless the network says otherwise: nothing is lost in a shaped queue.
QUEUE = 16_000_000
SLOWEST, FASTEST = 10_000.0, 4e9  # bytes/s
LOSS_UNIT = 1_000_000


@dataclass(frozen=True, slots=True)
class Frame:
    """What travels on a cable.

    Parameters
    ----------
    mtu : int, bytes
        MTU of all interfaces. Small frames would cost a quarter of the processor at 200 Mbit/s.
    """

    mtu: int = 9000
    # Headers inside the MTU, with TCP's time stamps.
    ip_and_tcp: int = 52
    # Header that the kernel's queues count beside the MTU.
    ethernet: int = 14

    @property
    def framing(self) -> Framing:
        """How messages over TCP are cut."""
        return Framing(payload=self.mtu - self.ip_and_tcp, header=self.ip_and_tcp + self.ethernet)


FRAME = Frame()
# Bytes that may pass at once: two frames, so that a timer may be late by one; what more there is, is free credit.
BURST = 2 * (FRAME.mtu + FRAME.ethernet)


@dataclass(frozen=True, slots=True)
class CableShape:
    """What is put on the port where a link begins.

    Parameters
    ----------
    queues : tuple of (str, mapping)
        Kinds of queueing discipline and their options, the outer one first.
    loss : float
        Probability that a rule drops a packet.
    warnings : tuple of str
        What could not be had.
    """

    queues: tuple[tuple[str, dict[str, Any]], ...]
    loss: float = 0.0
    warnings: tuple[str, ...] = field(default=())

    def lose(self, namespace: str, device: str) -> None:
        """Put the rule that loses packets on a port."""
        if self.loss:
            rule = f'table netdev losses {{ chain c {{ type filter hook egress device "{device}" priority 0; '
            rule += f"numgen random mod {LOSS_UNIT} < {round(self.loss * LOSS_UNIT)} drop; }}; }}\n"
            rule = rule.replace("losses", f"losses_{device}")
            output_of(["nsenter", f"--net=/run/netns/{namespace}", "nft", "-f", "-"], rule)


def shape_of(network: Network, link: int) -> CableShape:
    """Return how a link's rate, latency, buffer and loss are made.

    Raises
    ------
    InputError
        If a rate is out of what a token bucket can do.
    """
    bandwidth, latency, loss = (float(getattr(network, name)[link]) for name in ("bandwidth", "latency", "loss"))
    if not SLOWEST <= bandwidth <= FASTEST:
        raise InputError(f"a testbed's links carry {SLOWEST:g} to {FASTEST:g} bytes/s, got {bandwidth:g} on "
                         f"{network.link_name(link)}; scale the network down")  # fmt: skip
    limit = int(min(max(float(network.buffer[link]), BURST), QUEUE))
    bucket = {"rate": round(bandwidth), "burst": BURST, "limit": limit}
    if (latency or loss) and has_netem():
        delayed = {"delay": round(latency * 1e6), "loss": 100 * loss, "limit": 100_000}
        return CableShape(
            (("netem", {"handle": "1:", **delayed}), ("tbf", {"parent": "1:1", "handle": "2:", **bucket}))
        )
    warnings: tuple[str, ...] = ()
    if latency:
        warnings += ("this kernel has no netem: links have their rates, but not their latencies",)
    if loss and not has_nftables():
        return CableShape(
            (("tbf", {"handle": "1:", **bucket}),), 0.0, (*warnings, "neither netem nor nftables: no losses")
        )
    return CableShape((("tbf", {"handle": "1:", **bucket}),), loss, warnings)
