"""Times of KV caches and weight pushes on a network, beside the bound of the ports and the best broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.placement import PACKED, Placement
from commsim.core.remark import Remark
from commsim.prediction.inputs import NetworkLike, load_placement, network_of
from commsim.prediction.read import changed_network, scenario_of
from commsim.prediction.solve import solve

from .transfers import Side, port_bound, transfer_schedule


def transfer_rows(
    network: NetworkLike,
    senders: Side,
    receivers: Side,
    size: float,
    ways: Sequence[str] = ("direct",),
    *,
    placement: str = PACKED,
    seed: int = 0,
    fail: Sequence[str] = (),
    scale: Sequence[str] = (),
    overhead: float | str | None = None,
    software: str | None = None,
    hashes: int | None = None,
) -> tuple[list[dict[str, Any]], tuple[Remark, ...]]:
    """Simulate a transfer in several ways.

    Parameters
    ----------
    network : str, Network or NetworkBuilder
        Network.
    senders, receivers : Side
        Who has what, and who needs what.
    size : float, bytes
        Size of the whole tensor.
    ways : sequence of str
        Ways of :data:`commsim.training.parallel.transfers.WAYS`.
    placement, seed, fail, scale, overhead, software, hashes
        As in :func:`commsim.prediction.read.scenario_of`; the fixed time of a call of the software is added.

    Returns
    -------
    list of dict, tuple of Remark
        A row for each way, the fastest first, and remarks.

    Raises
    ------
    InputError
        If the ranks do not fit on the network.
    """
    n = senders.ranks + receivers.ranks
    built, where, remarks = _place_ranks(
        network, n, placement, seed, fail=fail, scale=scale, overhead=overhead, software=software
    )
    ports, between = _fastest_ports(built, where), _rate_between(built, where, senders.ranks)
    bound = max(port_bound(senders, receivers, size, ports), size / between)
    rows, notes = [], dict.fromkeys(remarks)
    for way in ways:
        schedule = transfer_schedule(senders, receivers, way)
        solution = solve(scenario_of(schedule, built, n_ranks=n, placement=where, seed=seed, hashes=hashes), [size])
        notes.update(dict.fromkeys(solution.said))
        result = solution.results[0]
        time = result.time
        rows.append({"way": way, "size_B": size, "time_s": time, "rate_Bps": size / time, "bound_s": bound,
                     "messages": len(schedule.expand()), **result.spread_row()})  # fmt: skip
    return sorted(rows, key=lambda row: row["time_s"]), tuple(notes)


def best_push(
    network: NetworkLike,
    receivers: int,
    size: float,
    *,
    placement: str = PACKED,
    seed: int = 0,
    fail: Sequence[str] = (),
    scale: Sequence[str] = (),
    overhead: float | str | None = None,
    software: str | None = None,
) -> dict[str, Any]:
    """Make the fastest broadcast from the first rank to the receivers, with its proven bound; a row of the same kind.

    Parameters
    ----------
    network, size, placement, seed, fail, scale, overhead, software
        As in :func:`transfer_rows`.
    receivers : int
        Ranks that need all of it.
    """
    from commsim.ranking.synthesis.synthesize import synthesize

    n = receivers + 1
    built, where, _ = _place_ranks(
        network, n, placement, seed, fail=fail, scale=scale, overhead=overhead, software=software
    )
    synthesis = synthesize("broadcast", built, [int(size)], ranks=where.nodes)
    best = synthesis.best(int(size))
    return {"way": f"synthesized: {best.method}", "size_B": size, "time_s": best.time, "rate_Bps": size / best.time,
            "bound_s": synthesis.bounds.get(int(size)), "messages": None}  # fmt: skip


def _fastest_ports(network: Network, where: Placement) -> float:
    """Return the most bytes a second that a rank's node can send or receive, over all its ports together."""
    both = (np.bincount(end, network.bandwidth, len(network.kind)) for end in (network.src, network.dst))
    return float(max(rates[where.nodes].max() for rates in both))


def _rate_between(network: Network, where: Placement, n_senders: int) -> float:
    """Return the most bytes a second that leave the machines of the senders, or enter those of the receivers.

    Infinite where a machine has both, or ranks are on plain hosts, whose ports bound them.
    """
    machine = network.machine[where.nodes]
    if machine.min() < 0 or np.isin(machine[:n_senders], machine[n_senders:]).any():
        return float("inf")
    have, need = (np.isin(network.machine, side) for side in (machine[:n_senders], machine[n_senders:]))
    out, into = have[network.src] & ~have[network.dst], ~need[network.src] & need[network.dst]
    return float(min(network.bandwidth[out].sum(), network.bandwidth[into].sum()))


def _place_ranks(
    network: NetworkLike, n_ranks: int, placement: str, seed: int, **costs: Any
) -> tuple[Network, Placement, list[Remark]]:
    built, remarks = changed_network(network_of(network), seed=seed, **costs)
    if n_ranks > len(built.endpoints):
        raise InputError(f"senders and receivers are {n_ranks} ranks, the network has {len(built.endpoints)}")
    return built, load_placement(placement, built, n_ranks, seed), remarks
