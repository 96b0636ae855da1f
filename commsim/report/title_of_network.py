"""What the title of a table says of a network: its name, the overhead of messages, and its oversubscription."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.machines.hardware import SPREADING, guesses_of, net_of
from commsim.core.network_queries import locality_levels
from commsim.core.remark import Remark
from commsim.core.units import count_text, format_time
from commsim.prediction.inputs import PACKED
from commsim.routing.network_metrics import fabric_oversubscription, oversubscribed_uplinks

if TYPE_CHECKING:
    from commsim.core.network import Network
    from commsim.core.placement import Placement
    from commsim.core.result import Result

_MAX_COSTS = 4
# Parameters of a topology in the name of a network, such as ``:machines=16,n_leaves=2``.
_PARAMETERS = re.compile(r":(?=\w+=)[^@\s]*")
# What may go from beside a ratio or a fault: words, the reason, the number of parallel cables.
_BESIDE = re.compile(r"(?<=:1) oversubscribed|: all [a-z ]* in one (?:group|rack)| \(\d+ of \d+ cables\)")
# Switches that are not called by their names and "switches".
_PLURALS = {"leaf": "leaves", "rack": "racks"}


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


def spreading_in_title(network: Network, routing: str | None = None) -> str:
    """Return what a title says, after a comma, where the network of the machines spreads packets; else nothing.

    Parameters
    ----------
    network : Network
        Network with machines, or without.
    routing : str, optional
        Routing in place of the network's own.
    """
    net = net_of(network.hardware)
    spreads = (routing or network.routing) == "spray" and net in SPREADING and network.machine.max(initial=0) > 0
    return f", {net} spreads packets" if spreads else ""


def placement_in_title(
    placement: str | Placement | None, network: Network, nodes: NDArray[np.integer[Any]] | Sequence[int] = ()
) -> str:
    """Return what a title says, after a comma, of where ranks are; nothing of the placement that is usual.

    Parameters
    ----------
    placement : str or Placement or None
        What was asked for.
    network : Network
        Network with the ranks.
    nodes : int[n_ranks]
        Node of each rank, of one job. Where machines are used in part only, it is said how many are used.
    """
    if placement in (None, PACKED):
        return ""
    machines, counts = np.unique(network.machine[np.asarray(nodes, np.intp)], return_counts=True)
    told = f", placement {placement if isinstance(placement, str) else 'given'}"
    if len(machines) < 2 or machines[0] < 0 or counts.min() != counts.max():
        return told
    if counts[0] == (network.machine[network.endpoints] == machines[0]).sum():  # whole machines
        return told
    return f"{told}: {len(machines)} machines of {count_text(int(counts[0]), 'rank')}"


def least_in_title(
    network: Network, results: Sequence[Result] = (), routing: str | None = None, *, has_own_costs: bool = False
) -> list[str]:
    """Return what a narrow terminal leaves out of a title, the least important first.

    First what is usual and what times include, then the parameters of the topology, of the network before those of
    machines, then words beside a ratio and a fault: the ratio of a fabric, faults, ranks, placement and what a library
    chooses always stand.

    Parameters
    ----------
    network, results, has_own_costs
        As for :func:`costs_in_title`.
    routing : str, optional
        As for :func:`spreading_in_title`.
    """
    costs = software_costs(network, has_own_costs=has_own_costs)
    whole = costs_in_title(network, results, has_own_costs=has_own_costs)
    spec = network.name.partition(" ")[0]
    said = [", engine flow", f", {costs}", spreading_in_title(network, routing), *_PARAMETERS.findall(spec)[::-1]]
    return [*filter(None, said), *_BESIDE.findall(whole), *_BESIDE.findall(network.name)]


def costs_in_title(network: Network, results: Sequence[Result] = (), *, has_own_costs: bool = False) -> str:
    """Return what ends a title: overhead per message, the ratio of a fabric above 1:1, and what is guessed of machines.

    Where no byte reaches an oversubscribed tier, this is said in place of the ratio.

    Parameters
    ----------
    network : Network
        Network with its faults and costs, as the times were computed on it.
    results : sequence of Result
        What the title is about, where that is known.
    has_own_costs : bool
        Whether messages have the costs of a library's primitives; then no overhead is named.
    """
    said = software_costs(network, has_own_costs=has_own_costs)
    ratio = fabric_oversubscription(network)
    if ratio > 1 + 1e-9:
        said += f", {_met_by_nobody(network, results) or f'fabric {ratio:.3g}:1 oversubscribed'}"
    if "guessed=" not in network.hardware:
        return said
    guessed = guesses_of(network.hardware, has_fabric=bool(network.machine.max(initial=0) > 0))
    return said + (f", {guessed}" if guessed else "")


def _met_by_nobody(network: Network, results: Sequence[Result]) -> str:
    """Say that no byte goes up from a switch that has less capacity upwards, and why; empty where some do."""
    carried = np.zeros(network.n_links)
    for result in results:
        if result.link_bytes.shape != carried.shape or not result.link_bytes.any():
            return ""  # of an engine that does not say which links are used
        carried += result.link_bytes
    narrow = oversubscribed_uplinks(network)
    if not results or carried[narrow].any():
        return ""
    from commsim.routing.cable_counts import kind_of

    below = kind_of(network.nodes[network.src[int(narrow.argmax())]])
    text = f"no traffic above the {_PLURALS.get(below, f'{below} switches')}"
    used = np.isin(network.endpoints, network.src[carried > 0])
    groups = {level.name: level.group[used] for level in locality_levels(network)}
    if not used.any() or "rack" not in groups or np.ptp(groups["rack"]):
        return text
    return f"{text}: all {'machines are in one group' if (network.machine >= 0).any() else 'hosts are in one rack'}"
