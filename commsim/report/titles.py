"""Titles of tables: what was asked for and chosen, what times include, and what a narrow terminal leaves out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.machines.hardware import SPREADING, guesses_of, net_of
from commsim.core.network_queries import fabric_oversubscription, locality_levels
from commsim.core.operations import meaning_of_size
from commsim.core.placement import PACKED
from commsim.core.remark import Remark
from commsim.core.units import count_text, format_size, format_time
from commsim.extensions import house
from commsim.routing.network_metrics import oversubscribed_uplinks

if TYPE_CHECKING:
    from commsim.core.network import Network
    from commsim.core.placement import Placement
    from commsim.core.result import Result
    from commsim.prediction.plans.dense import Plan
    from commsim.prediction.solve import Solution

_MAX_COSTS = 4
# Parameters of a topology in the name of a network, such as ``:machines=16,n_leaves=2``.
_PARAMETERS = re.compile(r":(?=\w+=)[^@\s]*")
# What may go from beside a ratio or a fault: words, the reason, the numbers of parallel cables and of unused switches.
_BESIDE = re.compile(r"(?<=:1) oversubscribed|: all [a-z ]* in one (?:group|rack)| \(\d+ of \d+ cables\)"
                     r"| \(\d+ of [^()]* left out\)")  # fmt: skip
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
    if (routing or network.routing) != "spray" or not network.machine.max(initial=0) > 0:
        return ""
    net = net_of(network.hardware)
    return f", {net} spreads packets" if net in SPREADING else ""


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
        Node of each rank of one job, or nothing. Where machines are used in part only, it is said how many are used.
    """
    if placement in (None, PACKED):
        return ""
    machines, counts = np.unique(network.machine[np.asarray(nodes, np.intp)], return_counts=True)
    text = f", placement {placement if isinstance(placement, str) else 'given'}"
    if not len(machines) or machines[0] < 0 or counts.min() != counts.max():
        return text
    if counts[0] == (network.machine[network.endpoints] == machines[0]).sum():  # whole machines
        return text
    return f"{text}: {count_text(len(machines), 'machine')} of {count_text(int(counts[0]), 'rank')}"


def hashes_in_title(results: Sequence[Result]) -> str:
    """Return what a title says, after a comma, of times that are medians; nothing where none is."""
    drawn = {result.hashes.n for result in results if result.hashes is not None}
    return f", median of {'/'.join(map(str, sorted(drawn)))} hashes of ECMP" if drawn else ""


def least_in_title(
    network: Network, results: Sequence[Result] = (), routing: str | None = None, *, has_own_costs: bool = False
) -> list[str]:
    """Return what a narrow terminal leaves out of a title, the least important first.

    First what is usual and what times include, then the parameters of the topology, of the network before those of
    machines, which were asked for; then that packets spread, and words beside a ratio and a fault: the ratio of a
    fabric, faults, ranks, placement and what a library chooses always stand.

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
    pieces = [", engine flow", f", {costs}", *_PARAMETERS.findall(spec)[::-1], spreading_in_title(network, routing)]
    return [*filter(None, pieces), *_BESIDE.findall(whole), *_BESIDE.findall(network.name)]


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
    text = software_costs(network, has_own_costs=has_own_costs)
    ratio = fabric_oversubscription(network)
    if ratio > 1 + 1e-9:
        left_out = f" ({network.left_out} left out)" if network.left_out else ""
        text += f", {_met_by_nobody(network, results) or f'fabric {ratio:.3g}:1 oversubscribed{left_out}'}"
    if "guessed=" not in network.hardware:
        return text
    guessed = guesses_of(network.hardware, has_fabric=bool(network.machine.max(initial=0) > 0))
    return text + (f", {guessed}" if guessed else "")


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


def title_of(solution: Solution, groups: Sequence[str] = ()) -> list[str]:
    """Return the title of a solution's table in phrases: collective, network, ranks, engine, and what times include."""
    from commsim.prediction.plans.dense import Plan

    results, plan = solution.results, solution.plan
    engines = "/".join(dict.fromkeys(r.engine for r in results))
    if engines in house().reports:
        engines = f"{engines}, {house().reports[engines].told(solution.scenario.wish)}"
    what = f"{count_text(len(groups), 'group')} at once" if groups else count_text(plan.schedules[0].n_ranks, "rank")
    if solution.scenario.placement is not None and not solution.scenario.is_left:
        nodes = plan.placement.nodes[: plan.schedule.n_ranks] if isinstance(plan, Plan) else ()
        what += placement_in_title(solution.scenario.placement, plan.network, nodes)
    if isinstance(plan, Plan) and plan.chooses:
        what += choice_in_title(plan, results)
    costs = costs_in_title(plan.network, results, has_own_costs=plan.has_own_costs)
    costs += spreading_in_title(plan.network, solution.scenario.routing)
    costs += hashes_in_title(results)
    if not groups:
        costs += meaning_of_size(results[0].operation, results[0].n_ranks, sorted({r.size for r in results}))
    return [
        solution.scenario.work.title or results[0].collective,
        plan.network.name,
        *f"{what}, engine {engines}, {costs}".split(", "),
    ]


def choice_in_title(plan: Plan, results: Sequence[Result]) -> str:
    """Return, after a comma, what a library chooses at the largest size, and from which size on it does."""
    sizes = sorted({result.size for result in results})
    choices = [plan.choice_at(size) for size in sizes]
    if not choices[-1]:
        return ""
    first = len(choices)
    while first and choices[first - 1] == choices[-1]:
        first -= 1
    return f", {choices[-1]}" + (f" from {format_size(sizes[first])}" if first else "")


def least_of_run(solution: Solution) -> list[str]:
    """Return what a narrow terminal leaves out of the title of a solution, the least important first."""
    plan, results = solution.plan, solution.results
    pieces = least_in_title(plan.network, results, solution.scenario.routing, has_own_costs=plan.has_own_costs)
    meaning = meaning_of_size(results[0].operation, results[0].n_ranks, sorted({r.size for r in results}))
    return [*pieces, meaning] if meaning else pieces


def titles_beside(solutions: Sequence[Solution]) -> tuple[str, list[str]]:
    """Return the title of several solutions on one network, and what the title of each says beside it.

    Where networks have different names there is no common title.
    """
    phrases = [title_of(solution) for solution in solutions]
    if len({network for _, network, *_ in phrases}) > 1:
        return "", [f"{name} on {network}, {', '.join(rest)}" for name, network, *rest in phrases]
    common = [phrase for phrase in phrases[0][2:] if all(phrase in rest for _, _, *rest in phrases)]
    own = [", ".join((name, *(solution for solution in rest if solution not in common))) for name, _, *rest in phrases]
    return f"{count_text(len(solutions), 'collective')} on {phrases[0][1]}, {', '.join(common)}", own
