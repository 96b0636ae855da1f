"""Seats of helpers that are no switches: servers on hosts of their own, or in memories."""

from __future__ import annotations

from typing import Any

import numpy as np

from commsim.core.errors import InputError
from commsim.core.network import KINDS, PLURALS, Network
from commsim.core.placement import Placement, helper_nodes, helper_order, is_strategy, place
from commsim.core.registry import Entry
from commsim.core.remark import Remark
from commsim.core.schedule import Schedule
from commsim.core.units import count_text
from commsim.prediction.inputs import load_placement
from commsim.prediction.locality import rank_levels

MAX_NAMED = 4


def ranks_left(schedule: Schedule, network: Network) -> tuple[int, str]:
    """Return the number of ranks where helpers need some of their places, and what to say of it.

    Parameters
    ----------
    schedule : Schedule
        Collective with a rank on every place.
    network : Network
        Network that they sit on.

    Raises
    ------
    InputError
        If helpers leave none.
    """
    name, seats, n_helpers = schedule.name, PLURALS[network.seat_kind], schedule.n_helpers
    left = schedule.n_ranks - n_helpers
    if left <= 0:
        places = count_text(schedule.n_ranks, KINDS[network.seat_kind], seats)
        raise InputError(f"{name}: no place is left for a rank: {count_text(n_helpers, 'helper')}, {places}")
    return left, f"{name}: {count_text(left, 'rank')}, since helpers need {n_helpers} of the {seats}"


def machines_of(
    entry: Entry[Schedule], network: Network, placement: str | Placement, n_ranks: int, seed: int
) -> dict[str, Any]:
    """Find the ranks of each machine for a collective that needs them, where several machines have several.

    Returns
    -------
    dict of str to tuple of tuple of int
        What to add to its parameters: ``machines``, or nothing.
    """
    fits = 1 <= n_ranks <= len(network.endpoints)
    if "machines" not in entry.metadata["needs"] or network.machine.max() < 0 or not fits:
        return {}
    if isinstance(placement, str) and not is_strategy(placement):
        from commsim.core.files.store import read_placement

        placement = read_placement(placement, network)
    ranks = placement if isinstance(placement, Placement) else place(network, n_ranks, placement, seed)
    levels = rank_levels(network, ranks, n_ranks)
    return {"machines": levels[0][1]} if levels and levels[0][0] == "machine" else {}


def on_memories(
    schedule: Schedule, network: Network, where: Placement, machines: tuple[tuple[int, ...], ...]
) -> Placement:
    """Put the first helpers, one per machine, on the first memory of the machine that they serve, and others elsewhere.

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
    servers = schedule.n_ranks + len(machines)  # their places do not start behind those of the memories
    nodes[servers:] = np.resize(helper_order(network, nodes[: schedule.n_ranks]), len(nodes) - servers)
    return Placement(nodes)


def with_helpers(schedule: Schedule, network: Network, ranks: Placement) -> Placement:
    """Add the helpers to a placement of the ranks only: where they usually go, else on endpoints that are free.

    Raises
    ------
    InputError
        If too few endpoints are free.
    """
    free = helper_order(network, ranks.nodes)
    if not free.size:
        free = network.endpoints[~np.isin(network.endpoints, ranks.nodes)]
        if len(free) < schedule.n_helpers:
            raise _too_few_seats(schedule, network)
    return Placement(np.concatenate((ranks.nodes, np.resize(free, schedule.n_helpers))), ranks.routes)


def where_helpers_sit(name: str, network: Network, where: Placement, n_ranks: int) -> Remark:
    """Describe on which nodes helpers sit, and which of them share a machine, and so its NIC, with ranks."""
    helpers = where.nodes[n_ranks:]
    n, machines = len(helpers), network.machine[where.nodes[:n_ranks]]
    n_shared = int(np.isin(network.machine[helpers], machines).sum()) if network.machine.max() > 0 else 0
    names = [network.nodes[node] for node in helpers[:MAX_NAMED]]
    text = f"{name}: helpers on {', '.join(names)}{' and so on' if n > MAX_NAMED else ''}"
    shared = f"{n_shared} of {n} in machines of ranks, whose NICs they share" if n_shared else ""
    return Remark("helpers", text, details=shared)


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
    if (
        not schedule.n_helpers
        or not (isinstance(placement, str) and is_strategy(placement))
        or helpers_sit_beside(network, placement)
    ):
        return
    if schedule.n_participants > len(network.endpoints):
        raise _too_few_seats(schedule, network)


def _too_few_seats(schedule: Schedule, network: Network) -> InputError:
    wanted = f"{count_text(schedule.n_ranks, 'rank')} and {count_text(schedule.n_helpers, 'helper')}"
    return InputError(
        f"{schedule.name}: {wanted} need {schedule.n_participants} {PLURALS[network.seat_kind]}, "
        f"{network.name} has {len(network.endpoints)}{_without_seats(schedule)}"
    )


def _without_seats(schedule: Schedule) -> str:
    """Name the parameter by which helpers sit on the ranks' hosts, where the collective has it."""
    from collectives import COLLECTIVES

    known = COLLECTIVES[schedule.name].parameters if schedule.name in COLLECTIVES else {}
    return f"; {schedule.name}:colocated=true puts them on the ranks' own" if "colocated" in known else ""


def placement_of(placement: str | Placement, network: Network, schedule: Schedule, seed: int) -> Placement:
    """Return the placement, that of a file, or that of the ranks by a strategy with the helpers beside them."""
    if isinstance(placement, Placement):
        return placement
    if not is_strategy(placement):
        return load_placement(placement, network, schedule.n_participants, seed)
    ranks = load_placement(placement, network, schedule.n_ranks, seed)
    if not schedule.n_helpers:
        return ranks
    return with_helpers(schedule, network, ranks)
