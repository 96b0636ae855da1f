"""Large networks by rack and by tier: loads over time, and how they are spread among the links of a tier."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import PLURALS, SWITCH, Network
from commsim.core.network_queries import first_above, locality_levels, tiers, units
from commsim.pages.figure import Figure, NothingToDraw
from commsim.pages.figure_tables import Column, FigureTable, number_column
from commsim.pages.pictures.boxes import link_loads
from commsim.pages.simulated_run import SimulatedRun, group_bins

N_BINS, MAX_GROUPS, MAX_POINTS = 120, 256, 4000
# What a rack's links do, by the ends that are inside of it.
INTO, INSIDE, OUT_OF = "into", "inside", "out of"
Numbers = NDArray[np.int64]


def racks(run: SimulatedRun) -> Figure:
    """Draw the mean load of the links that lead out of each rack, into it, and that stay inside of it, over time.

    Groups of a higher level of locality stand for racks where there are more than 256.
    """
    require_bytes(run)
    network = run.prepared.network
    unit = units(network)
    above = first_above(network, unit)
    levels = locality_levels(network)
    at, level = unit, 0
    while level + 1 < len(levels) and (level == 0 or len(np.unique(levels[level].group)) > MAX_GROUPS):
        at, level = above[at], level + 1
    members, of_endpoint = np.unique(at[network.endpoints], return_inverse=True)
    if level == 0 or len(members) < 2:
        raise NothingToDraw("all hosts are in one rack")
    of_node = np.full(network.n_nodes, -1)
    step = unit
    for _ in range(level + 1):  # the switch above a rack's hosts is inside of it
        inside = np.isin(step, members) & (of_node < 0)
        of_node[inside] = np.searchsorted(members, step[inside])
        step = above[step]
    src, dst = of_node[network.src], of_node[network.dst]
    # a link between two racks counts for both: out of one and into the other
    kinds: list[tuple[str, Numbers]] = [
        (OUT_OF, np.where((src >= 0) & (src != dst), src, -1)),
        (INTO, np.where((dst >= 0) & (src != dst), dst, -1)),
        (INSIDE, np.where((src >= 0) & (src == dst), src, -1)),
    ]
    first = np.unique(of_endpoint, return_index=True)[1]
    order = np.argsort(np.argsort(first))  # in the order of their first hosts
    words = _rack_names(run, of_node, order)
    columns: list[tuple[Numbers, Numbers, NDArray[np.float64], NDArray[np.float64]]] = []
    shown = [(kind, group) for kind, group in kinds if (group >= 0).any()]
    for k, (_, group) in enumerate(shown):
        bins = group_bins(run, N_BINS, group)
        used = np.flatnonzero(np.bincount(group[group >= 0], minlength=len(bins.link)) > 0)
        which = np.repeat(order[used], N_BINS)
        columns.append((np.full(len(which), k), which, np.tile(bins.edges[:-1], len(used)), bins.load[used].ravel()))
    links, rack, time, load = (np.concatenate(part) for part in zip(*columns, strict=True))
    name = levels[level].name
    table = FigureTable.of((
        Column("links", links, "", tuple(f"{kind} the {name}" for kind, _ in shown)),
        Column(name.replace(" ", "_"), rack, "", words),
        number_column("time_s", time),
        number_column("load", load, ""),
    ))  # fmt: skip
    caption = (
        f"Mean load of the links that lead out of each {name}, into it or stay inside, in {N_BINS} equal parts of the "
        f"time; {len(members)} times {len(network.endpoints) / len(members):.4g} {PLURALS[network.seat_kind]}."
    )
    roles = {"x": "time_s", "y": name.replace(" ", "_"), "value": "load", "facet": "links"}
    return Figure("racks", "heat", f"Load by {name} over time", caption, table, roles,
                  {"x": "time", "value": "mean load"}, of_run=run.name)  # fmt: skip


def tiers_over_time(run: SimulatedRun) -> Figure:
    """Draw the mean load of all links from one tier to another, over time."""
    require_bytes(run)
    network = run.prepared.network
    group, words = between_tiers(run.prepared.network)
    bins = group_bins(run, N_BINS, group)
    n = len(words)
    table = FigureTable.of((
        Column("tier", np.repeat(np.arange(n), N_BINS), "", words),
        number_column("time_s", np.tile(bins.edges[:-1], n)),
        number_column("load", bins.load.ravel(), ""),
    ))  # fmt: skip
    caption = (
        f"Mean load of all links from tier to tier in {N_BINS} equal parts of the time. A switch is in the tier of the "
        f"number of links that lead to the nearest of the {PLURALS[network.seat_kind]}."
    )
    return Figure("tiers", "heat", "Load by tier over time", caption, table,
                  {"x": "time_s", "y": "tier", "value": "load"}, {"x": "time", "value": "mean load"},
                  of_run=run.name)  # fmt: skip


def loads(run: SimulatedRun) -> Figure:
    """Draw which share of the links of each tier has at most a load over the whole run."""
    require_bytes(run)
    network = run.prepared.network
    group, words = between_tiers(run.prepared.network)
    load = link_loads(network, run.result.link_bytes, run.result.time)
    parts: list[NDArray[np.float64]] = []
    lines: list[str] = []
    for g, word in enumerate(words):
        of_tier = np.sort(load[group == g])
        keep = np.unique(np.linspace(0, len(of_tier) - 1, min(MAX_POINTS, len(of_tier))).astype(np.int64))
        parts.append(of_tier[keep])
        lines.append(f"{word}: mean {of_tier.mean():.1%}, most {of_tier[-1]:.1%}")
    table = FigureTable.of((
        Column("tier", np.repeat(np.arange(len(words)), [len(part) for part in parts]), "", words),
        number_column("load", np.concatenate(parts), ""),
    ))  # fmt: skip
    caption = f"Which share of a tier's links has at most a load over the whole run. {'; '.join(lines)}."
    return Figure("loads", "cdf", "Loads of links by tier", caption, table, {"x": "load", "by": "tier"},
                  {"x": "load, as a share of capacity", "y": "share of links"}, of_run=run.name)  # fmt: skip


def require_bytes(run: SimulatedRun) -> None:
    """Raise NothingToDraw if no link carried anything, as with one rank."""
    if not run.result.link_bytes.any():
        raise NothingToDraw("nothing was sent over a link")


def between_tiers(network: Network) -> tuple[Numbers, tuple[str, ...]]:
    """Group links by the tiers of their ends; return the groups and what they are called, with their counts."""
    tier = tiers(network)
    pair = np.stack((tier[network.src], tier[network.dst]), axis=1)
    pairs, group = np.unique(pair, axis=0, return_inverse=True)
    group = group.reshape(-1)
    names = {level: f"tier {level}" for level in np.unique(tier).tolist()} | {0: PLURALS[network.seat_kind]}
    count = np.bincount(group).tolist()
    return group, tuple(
        f"{names[a]} to {names[b]} ({n} links)" for (a, b), n in zip(pairs.tolist(), count, strict=True)
    )


def _rack_names(run: SimulatedRun, of_node: Numbers, order: Numbers) -> tuple[str, ...]:
    """Name each rack by its switch, if it has one of its own, and its first and last host."""
    network = run.prepared.network
    words = [""] * len(order)
    for rack, place in enumerate(order.tolist()):
        nodes = np.flatnonzero(of_node == rack)
        ends = nodes[network.kind[nodes] == network.seat_kind]
        above = nodes[(network.kind[nodes] == SWITCH) & (network.machine[nodes] < 0)]
        hosts = f"{network.nodes[ends[0]]} to {network.nodes[ends[-1]]}" if len(ends) > 1 else network.nodes[ends[0]]
        words[place] = f"{network.nodes[above[0]]}: {hosts}" if len(above) else hosts
    return tuple(words)


# Of networks whose links are too many to be shown one by one.
OF_LARGE: Mapping[str, Callable[[SimulatedRun], Figure]] = {"tiers": tiers_over_time, "loads": loads, "racks": racks}
