"""Seats of aggregators on switches above their ranks, and of the parameter server of a switch system."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from commsim.core.errors import InputError, NoAggregatorError, OtherAggregatorsError
from commsim.core.machines.hardware import read_hardware
from commsim.core.network import KINDS, PLURALS, SWITCH, Network
from commsim.core.placement import PACKED, Placement, helper_nodes, helper_order
from commsim.core.remark import Remark
from commsim.core.units import count_text
from commsim.prediction.inputs import load_placement
from commsim.prediction.node_lists import placement_file
from commsim.routing.aggregator_placement import AggregatorPlacement, able_switches, place_aggregators
from switch_model.system import System

MAX_NAMED = 4
# The collective of the systems that ``sharp=on`` says the switches of a fabric have.
SHARP = "sharp"


@dataclass(frozen=True, slots=True)
class SeatedPlacement:
    """Placement of ranks, aggregators and server.

    Parameters
    ----------
    n_ranks : int
        Ranks.
    aggregators : AggregatorPlacement or None
        Placement of its helpers; None for a single rank, which needs none.
    placement : Placement
        Ranks, then helpers.
    network : Network
        Network on which the switches with aggregators can aggregate.
    notes : tuple of Remark
        What was chosen or assumed, and should be printed.
    """

    n_ranks: int
    aggregators: AggregatorPlacement | None
    placement: Placement
    network: Network
    notes: tuple[Remark, ...]


def seat_aggregators(
    name: str,
    system: System,
    network: Network,
    *,
    n_ranks: int | None = None,
    placement: str | Placement = PACKED,
    seed: int = 0,
    assume_programmable: bool = True,
) -> SeatedPlacement:
    """Place ranks, aggregators and, where one is wanted, a parameter server.

    Parameters
    ----------
    name : str
        The collective.
    system : System
        Whether it has a parameter server, how many trees, and switches of what kind.
    network : Network
        Network that it runs on.
    n_ranks : int, optional
        Default: as many as the placement has, or all seats less the one of a server.
    placement : str or Placement
        A strategy, a file or a placement: of the ranks only, or of the ranks, the aggregators (the root first) and
        the server. Aggregators that it does not place go to the switches where the ranks' paths to a root join.
    seed : int
        Seed of random placement.
    assume_programmable : bool
        Whether switches may aggregate where the network says so of none.

    Raises
    ------
    InputError
        If ranks or the server have no place, or no switch may aggregate.
    """
    able, assumed = able_switches(network, in_machines=system.in_machines)
    if assumed and not assume_programmable:
        raise NoAggregatorError(f"{name}: {network.name} has no aggregating switch; name {name} to assume it")
    why = _other_hardware(name, system, network)
    if why and not assume_programmable:
        raise OtherAggregatorsError(f"{name}: {why}; name {name} to assume it")
    ranks, given, server, notes = _who_sits_where(name, system, network, n_ranks, placement, seed)
    if len(ranks) == 1:
        return SeatedPlacement(1, None, Placement(ranks), network, tuple(notes))
    where = place_aggregators(network, ranks, able, server=server, chosen=given, n_trees=system.n_trees)
    switches = where.helpers if server is None else where.helpers[:-1]
    if assumed:
        can = network.aggregates.copy()
        can[list(switches)] = True
        network = dataclasses.replace(network, aggregates=can)
    said = f"{name}: aggregators on {_listed([network.nodes[node] for node in (*switches[1:], switches[0])])}"
    taken = ", assumed to be programmable" if assumed or why else ""
    notes.append(Remark("aggregators-assumed" if taken else "aggregators", said + taken))
    if server is not None:
        notes.append(Remark("server", f"{name}: parameter server on {network.nodes[server]}"))
    return SeatedPlacement(len(ranks), where, Placement([*ranks, *where.helpers]), network, tuple(notes))


def _other_hardware(name: str, system: System, network: Network) -> str:
    """Return why the switches that can aggregate are not those of a system; empty where they may be."""
    if system.in_machines and not (network.aggregates & (network.kind == SWITCH) & (network.machine >= 0)).any():
        return f"{network.name} has no NVSwitch that reduces"
    if not system.in_machines and name != SHARP and read_hardware(network.hardware).get("sharp") == "on":
        return f"the switches of {network.name} reduce by SHARP only"
    return ""


def _who_sits_where(
    name: str, system: System, network: Network, n_ranks: int | None, placement: str | Placement, seed: int
) -> tuple[Sequence[int], Sequence[int], int | None, list[Remark]]:
    """Nodes of the ranks, of aggregators that are placed already, and of the server; and what should be said."""
    notes: list[Remark] = []
    if isinstance(placement, str) and (file := placement_file(placement)):
        from commsim.core.files.store import read_placement

        placement = read_placement(file[0], network, file[1])
    if isinstance(placement, Placement):
        nodes = placement.nodes.tolist()
        on_switches = np.flatnonzero(network.kind[placement.nodes] == SWITCH)
        first_helper = int(on_switches[0]) if on_switches.size else len(nodes)
        n_ranks = first_helper if n_ranks is None else n_ranks
        ranks, rest = nodes[:n_ranks], nodes[n_ranks:]
        if len(ranks) < max(1, n_ranks):
            raise InputError(f"{name}: the placement has {count_text(len(ranks), 'rank')}, got n_ranks={n_ranks}")
        if not system.server:
            return ranks, rest, None, notes
        return ranks, rest[:-1], rest[-1] if rest else free_seat(name, network, ranks), notes
    if n_ranks is None:
        n_ranks = len(network.endpoints)
        if system.server and not len(helper_nodes(network)):
            n_ranks -= 1
            seats = PLURALS[network.seat_kind]
            told = f"{name}: {count_text(n_ranks, 'rank')}, since one of the {seats} is its server"
            notes.append(Remark("fewer-ranks", told))
        if n_ranks < 1:
            raise InputError(f"{name}: no {KINDS[network.seat_kind]} is left for a rank: its server takes the only one")
    n_servers = int(system.server and n_ranks > 1)
    if n_servers and n_ranks == len(network.endpoints) and not len(helper_nodes(network)):
        raise _no_seat_for_server(name, network, n_ranks)
    ranks = load_placement(placement, network, n_ranks, seed).nodes.tolist()
    return ranks, (), free_seat(name, network, ranks) if n_servers else None, notes


def free_seat(name: str, network: Network, ranks: Sequence[int]) -> int:
    """Return the node of a parameter server beside these ranks; errors as in :func:`free_seats`."""
    return free_seats(name, network, ranks)[0]


def free_seats(name: str, network: Network, ranks: Sequence[int]) -> list[int]:
    """Return the nodes for parameter servers beside these ranks: memories, or the seats that are free.

    Raises
    ------
    InputError
        If there is none.
    """
    beside = helper_order(network, np.asarray(ranks))
    free = beside if beside.size else network.endpoints[~np.isin(network.endpoints, ranks)]
    if not free.size:
        raise _no_seat_for_server(name, network, len(ranks))
    return [int(node) for node in free]


def _no_seat_for_server(name: str, network: Network, n_ranks: int) -> InputError:
    seat = KINDS[network.seat_kind]
    return InputError(f"{name} needs a {seat} beside its {count_text(n_ranks, 'rank')}, for its server")


def _listed(names: Sequence[str]) -> str:
    """Write ``a, b and c``; of many the first few and the last."""
    if len(names) > MAX_NAMED:
        names = [*names[: MAX_NAMED - 1], f"{len(names) - MAX_NAMED} more", names[-1]]
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)
