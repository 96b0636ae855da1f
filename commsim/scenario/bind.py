"""From a collective and a network, by name or as values, to a plan."""

from __future__ import annotations

import dataclasses
from typing import Any

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.placement import Placement
from commsim.core.result import Result
from commsim.core.schedule import Schedule
from commsim.core.units import parse_size
from commsim.scenario.inputs import PACKED, load_network, load_schedule
from commsim.scenario.plans.dense import Plan

from .build import build_named, laid_out, placed


def prepare(
    collective: str | Schedule,
    network: str | Network,
    *,
    n_ranks: int | None = None,
    placement: str | Placement | None = None,
    routing: str | None = None,
    seed: int = 0,
    assume_programmable: bool = True,
) -> Plan:
    """Build and place a collective, and lay out its simulation.

    Parameters
    ----------
    collective : str or Schedule
        ``name:key=value,...`` of a registered collective, the .npz file of a schedule, or a schedule.
    network : str or Network
        ``name:key=value,...`` of a registered topology, a file, or a network.
    n_ranks : int, optional
        Default: as many as the placement has, or all hosts less those that helpers need.
    placement : str or Placement, optional
        ``packed``, ``spread``, ``random``, a file, or a placement. Default: what a file of a schedule says that it was
        made for, else ``packed``.
    routing : str, optional
        Routing in place of the network's own.
    seed : int
        Seed of random placement and of ECMP's hash.
    assume_programmable : bool
        Whether aggregators may sit on switches of a network that says of none that it can aggregate.

    Raises
    ------
    InputError
        If a name is unknown, a parameter is wrong, or the placement does not fit.
    """
    network = load_network(network) if isinstance(network, str) else network
    notes: tuple[str, ...] = ()
    if isinstance(collective, str) and collective.endswith(".npz"):
        path = collective
        if placement is None:
            from commsim.files.schedule_file import read_placed_schedule

            collective, placement = read_placed_schedule(path, network)
            if placement is not None and placement.routes is not None:
                notes = (f"{path}: {len(placement.routes)} connections take the routes that it pins",)
        else:
            collective = load_schedule(path)
    placement = PACKED if placement is None else placement
    if isinstance(collective, Schedule):
        ready = laid_out(collective, network, placed(placement, network, collective, seed), routing, seed, {})
        ready = dataclasses.replace(ready, notes=notes)
    else:
        ready = build_named(collective, network, n_ranks, placement, routing, seed, assume_programmable)
    if n_ranks is not None and n_ranks != ready.schedule.n_ranks:
        raise InputError(f"the schedule has {ready.schedule.n_ranks} ranks, got n_ranks={n_ranks}")
    return ready


def predict(collective: str | Schedule, network: str | Network, size: float | str, **options: Any) -> Result:
    """Predict how long a collective takes.

    Parameters
    ----------
    collective, network
        Same as in :func:`prepare`.
    size : float or str
        Bytes, or text such as ``64MiB``.
    **options
        The other parameters of :func:`prepare` and of :meth:`Plan.predict`.

    Returns
    -------
    Result

    Examples
    --------
    >>> predict("ring_all_reduce", "star:n_hosts=4,bandwidth=100Gbps,latency=1us", "64MiB").time  # doctest: +SKIP
    """
    placing = {k: options.pop(k) for k in ("n_ranks", "placement", "routing") if k in options}
    ready = prepare(collective, network, seed=options.get("seed", 0), **placing)
    return ready.predict(parse_size(size) if isinstance(size, str) else size, **options)
