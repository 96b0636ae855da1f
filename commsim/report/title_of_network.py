"""What the title of a table says of a network: its name, the overhead of messages, and its oversubscription."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commsim.core.units import format_time
from commsim.routing.network_metrics import fabric_oversubscription

if TYPE_CHECKING:
    from commsim.core.network import Network


def costs_in_title(network: Network, *, has_own_costs: bool = False) -> str:
    """Return what ends a title: the overhead of a message that times include, and the ratio of a fabric above 1:1.

    Parameters
    ----------
    network : Network
        Network with its faults and costs, as the times were computed on it.
    has_own_costs : bool
        Whether messages have the costs of a library's primitives; then no overhead is named.
    """
    sent, received = float(network.overhead.max(initial=0.0)), float(network.recv_overhead.max(initial=0.0))
    if has_own_costs:
        said = "the library's own costs of messages"
    elif network.curves is not None:
        said = "measured costs of messages"
    elif received:
        said = f"{format_time(sent)} of overhead to send a message, {format_time(received)} to receive it"
    else:
        said = f"{format_time(sent)} of overhead per message" if sent else "no overhead per message"
    ratio = fabric_oversubscription(network)
    return said + (f", fabric {ratio:.3g}:1 oversubscribed" if ratio > 1 + 1e-9 else "")
