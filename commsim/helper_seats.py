"""Where helpers that are no switches sit, and what is left for ranks: servers on hosts of their own or in memories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .core.errors import InputError
from .core.formats.placement_file import read_placement
from .core.network import Network
from .core.node_kind import PLURALS
from .core.placement import STRATEGIES, Placement, helper_nodes, place
from .core.rank_groups import rank_levels
from .core.registry import Entry
from .core.schedule import Schedule


def usual_ranks(
    entry: Entry[Schedule],
    parameters: Mapping[str, Any],
    network: Network,
    placement: str | Placement,
    seed: int,
    notes: list[str],
) -> int:
    """Return as many ranks as there are places, less those that helpers need; adds to `notes` when these need some.

    Raises
    ------
    InputError
        If helpers leave none.
    """
    n_ranks = len(network.endpoints) if isinstance(placement, str) else len(placement.nodes)
    machines = machines_of(entry, network, placement, n_ranks, seed)
    n_helpers = entry.build(n_ranks, **parameters, **machines).n_helpers
    if not n_helpers or helpers_sit_beside(network, placement):
        return n_ranks
    seats = PLURALS[network.seat_kind]
    if n_helpers >= n_ranks:
        raise InputError(f"{entry.name}: {n_helpers} helpers leave none of the {n_ranks} {seats} to the ranks")
    notes.append(f"{entry.name}: {n_ranks - n_helpers} ranks, since {n_helpers} of the {seats} are needed by helpers")
    return n_ranks - n_helpers


def machines_of(
    entry: Entry[Schedule], network: Network, placement: str | Placement, n_ranks: int, seed: int
) -> dict[str, Any]:
    """Find the ranks of each machine for a collective that asks, where some machine has several and there are several.

    Returns
    -------
    dict of str to tuple of tuple of int
        What to add to its parameters: ``machines``, or nothing.
    """
    fits = 1 <= n_ranks <= len(network.endpoints)
    if "machines" not in entry.parameters or network.machine.max() < 0 or not fits:
        return {}
    if isinstance(placement, str) and placement not in STRATEGIES:
        placement = read_placement(placement, network)
    ranks = placement if isinstance(placement, Placement) else place(network, n_ranks, placement, seed)
    levels = rank_levels(network, ranks, n_ranks)
    return {"machines": levels[0][1]} if levels and levels[0][0] == "machine" else {}


def on_memories(
    schedule: Schedule, network: Network, where: Placement, machines: tuple[tuple[int, ...], ...]
) -> Placement:
    """Put the first helpers, one per machine, on the first memory of the machine that they serve.

    Raises
    ------
    InputError
        If a machine has no memory for them.
    """
    nodes, beside = where.nodes.copy(), helper_nodes(network)
    for helper, ranks in enumerate(machines, schedule.n_ranks):
        mine = beside[network.machine[beside] == network.machine[nodes[ranks[0]]]]
        if not mine.size or network.machine[nodes[ranks[0]]] < 0:
            node = network.nodes[nodes[ranks[0]]]
            raise InputError(f"{schedule.name} adds in the host's memory of {node}, and {network.name} has none there")
        nodes[helper] = mine[0]
    return Placement(nodes)


def helpers_sit_beside(network: Network, placement: str | Placement) -> bool:
    """Whether helpers take no seat from ranks: memories or CPUs inside machines."""
    return isinstance(placement, str) and len(helper_nodes(network)) > 0


def require_seats(schedule: Schedule, network: Network, placement: str | Placement) -> None:
    """Refuse helpers for which no seat is left; where a placement was given, its own check says what is wrong.

    Raises
    ------
    InputError
        Naming how many seats are needed, and how many there are.
    """
    n_seats = schedule.n_participants
    if not schedule.n_helpers or placement not in STRATEGIES or helpers_sit_beside(network, placement):
        return
    if n_seats > len(network.endpoints):
        raise InputError(
            f"{schedule.name}: {schedule.n_ranks} ranks and {schedule.n_helpers} helpers need {n_seats} "
            f"{PLURALS[network.seat_kind]}, {network.name} has {len(network.endpoints)}"
        )
