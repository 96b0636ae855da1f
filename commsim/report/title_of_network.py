"""What the title of a table says of a network: its name, the overhead of messages, and its oversubscription."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from commsim.core.machines.hardware import guesses_of
from commsim.core.remark import Remark
from commsim.core.units import format_time
from commsim.routing.network_metrics import fabric_oversubscription

if TYPE_CHECKING:
    from commsim.core.network import Network

_MAX_COSTS = 4


def software_costs(network: Network, *, has_own_costs: bool = False) -> str:
    """Return what times include of the cost of software; parameters as for :func:`costs_in_title`."""
    sent, received = float(network.overhead.max(initial=0.0)), float(network.recv_overhead.max(initial=0.0))
    if has_own_costs:
        return "the library's own costs of messages"
    if network.curves is not None:
        return "measured costs of messages"
    library = f"software {network.software}, " if network.software else ""
    if received:
        return f"{library}{format_time(sent)} of overhead to send a message, {format_time(received)} to receive it"
    return library + (f"{format_time(sent)} of overhead per message" if sent else "no overhead per message")


def remark_on_costs(texts: Iterable[str]) -> tuple[Remark, ...]:
    """Return the remark on the software costs of several results: one if they are the same, else each."""
    costs = tuple(dict.fromkeys(text for text in texts if text))
    more = ("...",) if len(costs) > _MAX_COSTS else ()
    return (Remark("costs", f"software costs: {'; '.join((*costs[:_MAX_COSTS], *more))}"),) if costs else ()


def costs_in_title(network: Network, *, has_own_costs: bool = False) -> str:
    """Return what ends a title: overhead per message, the ratio of a fabric above 1:1, and what is guessed of machines.

    Parameters
    ----------
    network : Network
        Network with its faults and costs, as the times were computed on it.
    has_own_costs : bool
        Whether messages have the costs of a library's primitives; then no overhead is named.
    """
    said = software_costs(network, has_own_costs=has_own_costs)
    ratio = fabric_oversubscription(network)
    said += f", fabric {ratio:.3g}:1 oversubscribed" if ratio > 1 + 1e-9 else ""
    if "guessed=" not in network.hardware:
        return said
    guessed = guesses_of(network.hardware, has_fabric=bool(network.machine.max(initial=0) > 0))
    return said + (f", {guessed}" if guessed else "")
