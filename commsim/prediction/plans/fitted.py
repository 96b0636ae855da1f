"""Collectives that are fitted to the network: helpers get seats, and groups, rails and dimensions follow locality."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from collectives import NEEDS
from commsim.core.network import Network
from commsim.core.network_queries import is_torus
from commsim.core.placement import Placement, count_places, helper_nodes, spare_nodes
from commsim.core.remark import Remark
from commsim.core.schedule import Schedule
from commsim.core.units import count_text
from commsim.prediction.good_parameters import by_rails, count_rails, servers_that_fit
from commsim.prediction.helper_placement import (
    helpers_sit_beside,
    machines_of,
    on_memories,
    placement_of,
    ranks_left,
    require_seats,
    where_helpers_sit,
    with_helpers,
)
from commsim.prediction.locality import rank_grid, rank_levels

if TYPE_CHECKING:
    from commsim.prediction.build import CollectiveRequest

# Needs of collectives whose number of servers follows from the network; the number of ranks stays as it is.
SERVING = frozenset({"servers", "aggregators"})


def build_fitted(request: CollectiveRequest) -> tuple[Schedule, dict[str, Any], Placement, tuple[Remark, ...]]:
    """Build and place a collective, with the parameters that the network and the placement of its ranks decide.

    Returns
    -------
    Schedule, dict of str to value, Placement, tuple of Remark
        Schedule with its parameters, where its participants are, and what was derived.
    """
    entry, network, placement, seed = request.entry, request.network, request.placement, request.seed
    name, needs = entry.name, entry.metadata["needs"]
    parameters, n_ranks, notes = request.parameters, request.all_ranks, list[Remark]()
    as_many_as_fit = request.n_ranks is None
    if SERVING.intersection(needs):
        fitting = servers_that_fit(entry, parameters, network, placement, n_ranks, seed)
        parameters |= fitting
        notes += [_where_servers_sit(name, needs, key, value) for key, value in fitting.items()]

    def build(n_ranks: int) -> tuple[Schedule, dict[str, Any]]:
        machines = machines_of(entry, network, placement, n_ranks, seed) if "machines" in needs else {}
        return entry.build(n_ranks, **{**parameters, **machines}), machines

    schedule, machines = build(n_ranks)
    if as_many_as_fit and schedule.n_helpers and not helpers_sit_beside(network, placement):
        n_ranks, why = ranks_left(schedule, network)
        beside = "colocated" in entry.parameters and not parameters.get("colocated")
        notes.append(Remark("fewer-ranks", why, details="colocated=true puts them beside the ranks" if beside else ""))
        schedule, machines = build(n_ranks)
    parameters |= machines
    notes += [
        Remark("machines", f"{name}: {len(groups)} machines of {_sizes(groups)} ranks each")
        for groups in machines.values()
    ]
    own = isinstance(placement, str)  # whether helpers go where it is usual
    if isinstance(placement, Placement) and schedule.n_helpers and len(placement.nodes) == n_ranks:
        placement, own = with_helpers(schedule, network, placement), True
    if schedule.n_helpers:
        require_seats(schedule, network, placement)
    where = placement_of(placement, network, schedule, seed)
    if "memories" in needs and parameters.get(NEEDS["memories"]) and own:
        where = on_memories(schedule, network, where, parameters.get("machines", (tuple(range(n_ranks)),)))
    if schedule.n_helpers and own and len(helper_nodes(network)):
        notes.append(where_helpers_sit(name, network, where, n_ranks))
    if "groups" in needs:
        for level, groups in rank_levels(network, where, n_ranks)[:1]:
            parameters["groups"] = by_rails(network, where, groups) if "rails" in needs else groups
            rails = count_rails(network, where, groups) if "rails" in needs else None
            if rails is not None and parameters.get(NEEDS["rails"]) is None:
                parameters[NEEDS["rails"]] = rails
                notes.append(Remark("rails", f"{name}: {NEEDS['rails']}={rails}, a ring for each rail of a machine"))
            schedule = entry.build(n_ranks, **parameters)
            text = f"{name}: groups are the {len(groups)} {level}s, of {_sizes(groups)} ranks each"
            notes.append(Remark("groups", text))
    if "dims" in needs and "dims" not in request.raw:
        dims = rank_grid(network, where, n_ranks)
        if dims is not None:
            parameters["dims"] = dims
            text = f"{name}: dims are {'x'.join(map(str, dims))}, from the outermost level to the innermost"
            schedule = entry.build(n_ranks, **parameters)
            notes.append(Remark("dims", text))
    if "all_links" in entry.parameters.keys() - request.raw.keys() and is_torus(network):
        parameters["all_links"] = True
        schedule = entry.build(n_ranks, **parameters)
        notes.append(Remark("all-links", f"{name}: all links of a host at once; all_links=false takes one at a time"))
    usual = getattr(entry.parameters.get("n_servers"), "default", None)
    if usual is not None and "n_servers" not in request.raw and (free := _free_hosts(network, where, n_ranks)) > usual:
        text = f"{name}: n_servers={usual}, its default; {count_text(free, 'host')} beside the ranks are free"
        notes.append(Remark("servers-default", text, needed=True))
    return schedule, parameters, where, tuple(notes)


def _where_servers_sit(name: str, needs: Sequence[str], key: str, value: int) -> Remark:
    """Say what was chosen: a number of servers on hosts beside the ranks, or that they share those of the ranks."""
    if key != "colocated":
        return Remark("servers", f"{name}: {key}={value}, on hosts beside the ranks")
    what = next(need for need in needs if need in SERVING)
    text = f"{name}: {what} on the ranks' hosts; {NEEDS[what]}=N puts N on other hosts"
    return Remark("servers", text, needed=True)


def _free_hosts(network: Network, where: Placement, n_ranks: int) -> int:
    """Count the hosts beside the ranks; none where helpers sit inside of the ranks' machines."""
    ranks = where.nodes[:n_ranks]
    inside = len(helper_nodes(network)) and not spare_nodes(network, ranks).size
    return 0 if inside else count_places(network, ranks)


def _sizes(groups: tuple[tuple[int, ...], ...]) -> str:
    return " or ".join(map(str, sorted({len(group) for group in groups})))
