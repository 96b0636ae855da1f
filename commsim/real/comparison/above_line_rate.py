"""Why a bus bandwidth may be above the rate of the links, and whether that can be the reason here.

Busbw is algbw times a factor that says how often each byte crosses the busiest link *when only ranks send to ranks, and
each link is one rank's*. Where a switch adds, where several links belong to one host, or where units were mixed up, the
number is right and yet no link ever carried it.

References
----------
nccl-tests, ``doc/PERFORMANCE.md``: the factors, and the note that they assume point-to-point transfers.

The line rate of a prediction: all links of a host, and what they carry; where there is one host, those of a rank.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from commsim.core.network import SWITCH
from commsim.core.network_queries import units
from commsim.core.operations import operation as known_operation
from commsim.core.result import Result
from commsim.formats.measurement import Measurement
from commsim.prediction.plans.dense import Plan

# Busbw is above the line only if it is by more than half a per cent: programs print four digits.
SLACK = 1.005
_IN_NETWORK = ("nvls", "nvls_tree", "collnet_direct", "collnet_chain", "sharp", "switchml", "atp")
# What a reason allows may be exceeded by this: rates are measured, and lines are nominal or effective.
MARGIN = 1.05


@dataclass(frozen=True, slots=True)
class LineRate:
    """What a rank can send at most.

    Parameters
    ----------
    rate : float, bytes/s
        Rate of all links of a host, or of one rank's link where the user gives it; one way.
    source : str
        Source of the rate.
    load : float or None, bytes/s
        What these links really carry in our prediction of the same run.
    links_per_host : int or None
        Links that leave one host, where that is known and there are several hosts.
    ranks_per_host : int or None
        Ranks of one host, where that is known.
    n_hosts : int or None
        Hosts, where that is known.
    switch_adds : bool
        Whether some switch of the network can add.
    is_given : bool
        Whether the user says the rate, rather than the network.
    """

    rate: float
    source: str
    load: float | None = None
    links_per_host: int | None = None
    ranks_per_host: int | None = None
    n_hosts: int | None = None
    switch_adds: bool = False
    is_given: bool = False


def explain_above(row: Measurement, line: LineRate) -> tuple[str, ...]:
    """Describe why the busbw of a measurement is above the line; nothing if it is not.

    Parameters
    ----------
    row : Measurement
        Row with a number of ranks.
    line : LineRate
        What it is held against.

    Returns
    -------
    tuple of str
        What is above what; then each reason that fits, the most specific first.
    """
    busbw = row.busbw
    if busbw is None or row.n_ranks is None or busbw <= line.rate * SLACK:
        return ()
    factor = known_operation(row.operation).busbw_factor(row.n_ranks)
    ratio = busbw / line.rate
    head = (
        f"busbw {busbw / 1e9:.4g} GB/s is {ratio:.3g} times the {line.rate / 1e9:.4g} GB/s of {line.source}; it is "
        f"algbw {row.algbw / 1e9:.4g} GB/s times {factor:.4g}, the factor of {row.operation} on {row.n_ranks} ranks"
    )
    if line.load is not None:
        head += f"; in our prediction it carries {line.load / 1e9:.4g} GB/s"
    causes = [*_in_network(row, line, factor), *_many_links(line)]
    alone = [text for text, most in causes if ratio <= most * MARGIN]
    reasons = (alone or _together(causes, ratio)) + _units(ratio)
    return (head, *(reasons or ["no known reason fits: check the line rate and the measurement"]))


def _together(causes: list[tuple[str, float]], ratio: float) -> list[str]:
    """Combine reasons of which none is enough alone: rails times what a switch saves. The smallest product counts."""
    products = [
        (a * b, f"{first}; and {second}: together up to {a * b:.3g} times")
        for (first, a), (second, b) in itertools.combinations(causes, 2)
        if math.isfinite(a * b) and min(a, b) > 1 and ratio <= a * b * MARGIN
    ]
    return [min(products)[1]] if products else []


def _in_network(row: Measurement, line: LineRate, factor: float) -> list[tuple[str, float]]:
    """Reasons of algorithms that send each byte less often than the factor says, and up to how many times the line."""
    algorithm = row.algorithm.lower()
    if algorithm.startswith(_IN_NETWORK):
        text = f"{row.algorithm} lets the network add, so that each byte crosses a link once and not {factor:.4g} times"
        return [(text, factor if line.links_per_host is not None and line.links_per_host > 1 else math.inf)]
    reasons = []
    if not algorithm and line.switch_adds:
        reasons.append((
            "a switch of this network can add (NVLS, SHARP): each byte then crosses a link once, and busbw may be up "
            f"to {factor:.4g} times the link", factor,
        ))  # fmt: skip
    if algorithm in ("", "tree") and row.operation == "all_reduce" and line.n_hosts == 2:
        reasons.append((
            f"on two hosts a tree crosses the network once each way, where the factor counts a ring's {factor:.4g} "
            "times", 2.0,
        ))  # fmt: skip
    return reasons


def _many_links(line: LineRate) -> list[tuple[str, float]]:
    reasons = []
    if line.is_given and line.links_per_host is not None and line.links_per_host > 1:
        reasons.append((
            f"a host has {line.links_per_host} such links: rings over all of them share what crosses the network, so "
            "the line is their sum", float(line.links_per_host),
        ))  # fmt: skip
    if line.is_given and line.n_hosts == 1:
        text = "all ranks are in one host: what they send crosses NVLink or PCIe, not the network"
        reasons.append((text, math.inf))
    return reasons


def _units(ratio: float) -> list[str]:
    reasons = []
    if 6.4 <= ratio <= 8.4:
        # Busbw follows from the measured time and size: only the line can be in another unit.
        reasons.append("about 8 times: the line's rate may be in Gb/s where GB/s were meant")
    if 1.6 <= ratio <= 2.1:
        reasons.append(
            "about 2 times: the line is one direction, and vendors add both (NVLink 900 GB/s is 450 each way)"
        )
    if 1.06 <= ratio <= 1.08:
        reasons.append("about 7 per cent: one of the two counts GiB/s (2^30), the other GB/s (1e9)")
    return reasons


def line_of_prediction(prepared: Plan, result: Result) -> LineRate | None:
    """Find the links of the busiest host of a prediction; where all ranks are in one host, those of a rank.

    Parameters
    ----------
    prepared : Plan
        What was predicted.
    result : Result
        The prediction of the flow engine, which counts the bytes of every link.

    Returns
    -------
    LineRate or None
        None where nothing crosses a link.
    """
    network = prepared.network
    if not result.time:
        return None
    n_ranks = prepared.schedule.n_ranks
    nodes, hosts = prepared.placement.nodes[:n_ranks], units(network)
    n_hosts = len(np.unique(hosts[nodes]))
    unit = hosts if n_hosts > 1 else np.arange(network.n_nodes)
    src, dst = unit[network.src], unit[network.dst]
    sending = np.flatnonzero((src != dst) & np.isin(src, unit[nodes]))
    busy = result.link_bytes[sending] / network.bandwidth[sending]
    if not busy.any():
        return None
    busiest = int(sending[busy.argmax()])
    links = sending[src[sending] == src[busiest]]
    owner = "host" if n_hosts > 1 else "rank"
    source = f"link {network.link_name(busiest)}, the only one of a {owner}"
    if len(links) > 1:
        source = f"the {len(links)} links of a {owner}, such as {network.link_name(busiest)}"
    return LineRate(
        rate=float(network.bandwidth[links].sum()),
        source=source,
        load=float(result.link_bytes[links].sum() / result.time),
        links_per_host=len(links) if n_hosts > 1 else None,
        ranks_per_host=n_ranks // n_hosts,
        n_hosts=n_hosts,
        switch_adds=bool((network.aggregates & (network.kind == SWITCH)).any()),
    )
