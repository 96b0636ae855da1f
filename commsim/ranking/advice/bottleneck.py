"""Terms of a collective's time (latency, overhead, bandwidth, reduction) and its bottleneck in one phrase."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from commsim.core.network import CPU, MEMORY, SWITCH, Network
from commsim.core.placement import Placement
from commsim.core.result import Result
from commsim.engine.critical_path import CriticalPath, critical_path
from commsim.engine.flow import payload
from commsim.prediction.plans.dense import Plan

# Share of the time for which the busiest link has to be busy before it is said to decide.
BUSY = 0.5


@dataclass(frozen=True, slots=True)
class Bound:
    """What decides the time.

    Parameters
    ----------
    term : {"bandwidth", "rounds", "latency", "overhead", "reduction", "nothing"}
        Largest part of the critical path; rounds when bytes are that, but no link is busy for half of the time.
    phrase : str
        The same for readers, with the link or the node.
    terms : mapping of str to float, s
        Parts of the critical path: bandwidth, overhead, latency and reduction, which add up to the time.
    busiest_link : str
        The link that its bytes keep busy longest; empty where none carries any.
    busy : float
        Share of the time for which it decides.
    """

    term: str
    phrase: str
    terms: dict[str, float]
    busiest_link: str = ""
    busy: float = 0.0


def find_bound(prepared: Plan, result: Result) -> Bound:
    """Find what a simulated result is bound by.

    Parameters
    ----------
    prepared : Plan
        Plan of the size that was simulated.
    result : Result
        Result of its flow engine, with a trace, without packet headers but a switch system's, and without late
        starters.

    Returns
    -------
    Bound
    """
    if not result.time or result.trace is None:
        return Bound("nothing", "nothing to send", {})
    network, plan = prepared.network, prepared.plan
    n_bytes = payload(plan, result.size if prepared.sent is None else prepared.sent)
    if prepared.framing is not None:
        n_bytes = prepared.framing.on_wire(n_bytes)
    path = critical_path(plan, result.trace, n_bytes)
    terms = dict(path.terms)
    if prepared.before:  # less than 0: packets pass links at their rate, where a window caps that of whole chunks
        terms["latency" if prepared.before >= 0 else "bandwidth"] += prepared.before
    term = max(terms, key=lambda name: terms[name])
    needs = result.link_bytes / network.bandwidth
    link = int(needs.argmax()) if needs.size and needs.any() else -1
    name, busy = (network.link_name(link), float(needs[link] / result.time)) if link >= 0 else ("", 0.0)
    if term == "bandwidth":
        whose = whose_link(network, prepared.placement, prepared.schedule.n_ranks, link)
        phrase = f"bandwidth of {whose} {name}, busy {busy:.0%}"
        if busy < BUSY:
            term = "rounds"
            phrase = f"rounds: {path.n_flights} messages in turn, no link busy above {busy:.0%}"
    elif network.software and term == "latency" and prepared.before > path.terms["latency"]:
        phrase = f"time of a call of software {network.software}, {prepared.before / result.time:.0%}"
    else:
        phrase = _phrase(term, path, network, result.time)
    return Bound(term, phrase, terms, name, busy)


def _phrase(term: str, path: CriticalPath, network: Network, time: float) -> str:
    share = f"{path.terms[term] / time:.0%}"
    if term == "latency":
        return f"latency of {path.n_flights} messages in turn, {share}"
    if term == "overhead":
        return f"overhead per message, {path.n_messages} in turn, {share}"
    return f"reduction at {network.nodes[path.adder]}, {share}"


def whose_link(network: Network, placement: Placement, n_ranks: int, link: int) -> str:
    """Describe what a link is: inside of a machine, a helper's or a worker's, or between switches.

    Inside of a machine it is staging when it leads through a CPU or the host's memory.

    Parameters
    ----------
    network : Network
        Network that the workers are on.
    placement : Placement
        Ranks first, then helpers.
    n_ranks : int
        How many of the participants are ranks.
    link : int
        Number of the link.
    """
    ends = (int(network.src[link]), int(network.dst[link]))
    machines = {int(network.machine[end]) for end in ends}
    if machines != {-1}:
        staging = np.isin(network.kind[list(ends)], (CPU, MEMORY)).any()
        inside = "the staging link" if staging else "a link inside a machine,"
        return inside if len(machines) == 1 else "a machine's link"
    ranks, helpers = placement.nodes[:n_ranks], placement.nodes[n_ranks:]
    hosts = [end for end in ends if network.kind[end] != SWITCH]
    if np.isin(hosts, ranks).any():
        return "a worker's link"
    if np.isin(hosts, helpers).any():
        return "a server's link"
    return "the link between switches" if not hosts else "the link"
