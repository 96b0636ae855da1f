"""Remarks that follow from results: what they do not count, density of data, cost of flaps, rates above a link's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.core.machines.parts import NVLINK_METRIC
from commsim.core.network import CPU, NIC, SWITCH, Network
from commsim.core.network_queries import fabric_oversubscription, fabric_switches
from commsim.core.remark import Remark
from commsim.core.result import Result
from commsim.core.schedule import Schedule
from commsim.core.units import format_bandwidth, format_time, microseconds
from commsim.extensions import house
from commsim.routing.link_rows import only_sends

if TYPE_CHECKING:
    from commsim.routing.flaps import Flaps


# Seconds that a flap costs by rounding, where no message met it.
NOTHING_LOST = 1e-9


def remarks_of_results(results: Sequence[Result], of_plan: Sequence[Remark] = ()) -> list[Remark]:
    """Return what to say beside predictions of one plan; extensions say it by counters, engine or interval.

    Parameters
    ----------
    results : sequence of Result
        Its predictions, by size.
    of_plan : sequence of Remark
        What only a plan of this kind says.
    """
    marks = {name for one in results for name in (*one.counters, one.engine, *(["interval"] if one.interval else []))}
    alone = dict.fromkeys(one.collective for one in results if one.n_ranks == 1)
    text = "one rank has nothing to send, so there is no rate"
    found = [Remark("one-rank", f"{name}: {text}", needed=True) for name in alone]
    found += [line for name in house().remarks if name in marks for line in house().remarks[name](results)]
    found += _contention(results) if "link_bound_s" in marks else []
    return [*found, *of_plan, *(_flaps(results) if "flap_lost_s" in marks else ())]


def of_paths(network: Network, results: Sequence[Result]) -> list[Remark]:
    """Describe what the paths do to times: what a closed form does not see, and rails without PXN."""
    cut = _of_cut_machines(network) if (network.kind == NIC).any() else []
    if any(result.engine == "closed-form" for result in results):
        worst = fabric_oversubscription(network)
        text = f"the closed form does not see the fabric, {worst:.4g}:1 oversubscribed; --engine flow does"
        return [*cut, Remark("fabric-unseen", text, worst - 1, needed=True)] if worst > 1 + 1e-9 else cut
    if (network.kind == CPU).any() and (of_sockets := _between_sockets(network, results)):
        return [*cut, of_sockets]
    return [*cut, *_of_rails(network, results)] if (network.kind == NIC).any() else cut


def _of_cut_machines(network: Network) -> list[Remark]:
    """Say that machines have NICs on several leaves, where others have all of theirs on one."""
    _, machines, switches = _ports_of_machines(network)
    pairs, n_nics = np.unique(machines * network.n_nodes + switches, return_counts=True)
    known, first, n_leaves = np.unique(pairs // network.n_nodes, return_index=True, return_counts=True)
    if not ((n_leaves == 1) & (n_nics[first] > 1)).any() or n_leaves.max() == 1:
        return []
    cut = np.flatnonzero(n_leaves > 1)
    where = range(first[cut[0]], first[cut[0]] + n_leaves[cut[0]])
    parts = " and ".join(f"{n_nics[i]} on {network.nodes[pairs[i] % network.n_nodes]}" for i in where)
    are = "is" if len(cut) == 1 else "are"
    text = f"{len(cut)} of {len(known)} machines {are} cut over leaves: NICs of m{known[cut[0]]} are {parts}"
    return [Remark("machine-cut", text, needed=True)]


def _ports_of_machines(network: Network) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return NIC, machine and switch of each cable from a NIC to a switch outside of machines."""
    port = (
        (network.kind[network.src] == NIC) & (network.kind[network.dst] == SWITCH) & (network.machine[network.dst] < 0)
    )
    nics = network.src[port].astype(np.int64)
    return nics, network.machine[nics].astype(np.int64), network.dst[port].astype(np.int64)


def _between_sockets(network: Network, results: Sequence[Result]) -> Remark | None:
    """Say that the busiest link of a result joins two CPU sockets, whose rate few give; None where none does."""
    for result in results:
        link, _, _ = result.busiest_link(network)
        if link is None:
            continue
        i = int((result.link_bytes / network.bandwidth).argmax())
        if network.kind[network.src[i]] == network.kind[network.dst[i]] == CPU:
            rate = format_bandwidth(float(network.bandwidth[i]))
            text = f"{link}, the busiest link, joins CPU sockets: {rate} is a default, inter_cpu= sets it"
            busy = float(result.link_bytes[i] / network.bandwidth[i] / result.time) if result.time else 0.0
            return Remark("sockets-busiest", text, busy)
    return None


def _of_rails(network: Network, results: Sequence[Result]) -> list[Remark]:
    """Say that messages between rails cross the spines where GPUs on an NVSwitch do not use each other's NICs."""
    if only_sends(network).any() or not _has_rails(network):
        return []
    switch = fabric_switches(network)
    between = switch[network.src] & switch[network.dst]
    has_nvswitch = ((network.kind[network.dst] == SWITCH) & (network.metric == NVLINK_METRIC)).any()
    if not has_nvswitch or not any(result.link_bytes[between].any() for result in results):
        return []
    text = "messages between rails cross the spines: PXN is off here, and on in NCCL (pxn=true)"
    return [Remark("pxn-off", text, needed=True)]


def _has_rails(network: Network) -> bool:
    """Whether machines have several NICs, each on a switch with NICs of other machines and no other of its own."""
    nics, _, switches = _ports_of_machines(network)
    nics, switches = np.unique(np.stack((nics, switches)), axis=1)
    machines = network.machine[nics]
    is_apart = np.unique(np.stack((machines, switches)), axis=1).shape[1] == len(nics)
    return is_apart and len(np.unique(switches)) < len(nics) and len(np.unique(nics)) > len(np.unique(machines))


def of_detection(flaps: Flaps, network: Network, results: Sequence[Result]) -> list[Remark]:
    """Describe when switches and senders know of a flap, and that no message met one, or none crosses what flaps."""
    flapped = [result for result in results if "flap_lost_s" in result.counters]
    if not flapped:
        return []
    links = [link for flap in flaps.flaps for link in flap.links]
    is_met = any(result.counters.get("stalled") or result.counters.get("drops_loss") for result in flapped)
    if not (is_met or any(result.counters.get("rerouted") or result.link_bytes[links].any() for result in flapped)):
        missed = f"no message crosses a cable that flaps{_busiest_cable(network, flapped[-1])}"
        return [Remark("flap-missed", missed, needed=True)]
    text = f"switches route around a cable {format_time(flaps.detection)} after it goes down (--detection)"
    remarks = [Remark("detection", text)] if flaps.detection else []
    if not is_met:
        missed = f"no message met a cable that was down{_busiest_cable(network, flapped[-1])}"
        return [Remark("flap-missed", missed, needed=True), *remarks]
    waits = any("stalled" in result.counters for result in flapped) and not flaps.rto
    no_timer = "senders' retransmission timers are left out: messages go on once there is a path (--rto)"
    return remarks + ([Remark("no-timers", no_timer)] if waits else [])


def _busiest_cable(network: Network, result: Result) -> str:
    """Name the cable between switches that is busy longest; where there is none, that of any link."""
    busy = result.link_bytes / network.bandwidth
    between = fabric_switches(network)
    between = between[network.src] & between[network.dst]
    busy = np.where(between, busy, 0.0) if busy[between].any() else busy
    return f" (the busiest: {network.link_name(int(busy.argmax()))})" if busy.any() else ""


def _contention(results: Sequence[Result]) -> list[Remark]:
    hidden = [r for r in results if r.counters.get("link_bound_s", 0.0) > r.time > 0]
    if not hidden:
        return []
    worst = max(hidden, key=lambda r: r.counters["link_bound_s"] / r.time)
    factor = worst.counters["link_bound_s"] / worst.time
    text = f"no contention in this engine: the busiest link alone needs {factor:.2f} times this; --engine flow"
    return [Remark("contention", text, factor - 1, needed=True)]


def _flaps(results: Sequence[Result]) -> list[Remark]:
    """Describe what flaps cost, and how many connections they met."""
    return [
        Remark(
            "flap-cost",
            f"{r.size:.0f} B: the flap costs {microseconds(r.counters['flap_lost_s'])} us; {_met(r.counters)}; "
            f"{r.counters['rerouted']:.0f} rerouted",
            r.counters["flap_lost_s"] / r.time if r.time else None,
            needed=True,
        )
        for r in results
        if r.counters.get("flap_lost_s", 0.0) > NOTHING_LOST
    ]


def _met(counters: Mapping[str, float]) -> str:
    if "stalled" in counters:
        return f"{counters['stalled']:.0f} connections waited"
    late = f", {counters['timeouts']:.0f} timeouts" if counters.get("timeouts") else ""
    return f"{counters['drops_loss']:.0f} packets lost, {counters['retransmissions']:.0f} sent again{late}"


def remarks_of_switches(
    schedule: Schedule, network: Network, results: Sequence[Result], more: Sequence[Remark]
) -> list[Remark]:
    """Describe what the numbers of helpers mean that add on switches; nothing of other helpers.

    Parameters
    ----------
    schedule, network
        Schedule of the collective, and its network.
    results : sequence of Result
        Its predictions.
    more : sequence of Remark
        What a plan of this kind says beside.
    """
    from collectives import COLLECTIVES

    name = schedule.name
    if name not in COLLECTIVES or not COLLECTIVES[name].metadata["systems"]:
        return []
    above = above_line_rate(network, results, "switches add")
    return [remark.of(name) for remark in (*above, *more)]


def above_line_rate(network: Network, results: Sequence[Result], why: str) -> list[Remark]:
    """Describe that busbw is larger than what the busiest link carries, where it is, and why."""
    for r in results:
        rate = network.bandwidth[int((r.link_bytes / network.bandwidth).argmax())] if r.link_bytes.any() else np.inf
        if r.time > 0 and r.busbw > rate:
            text = f"busbw is above the link's {rate / 1e9:.4g} GB/s: {why}"
            factor = "its factor is that of algorithms that send point to point"
            return [Remark("busbw-above-link", text, r.busbw / rate - 1, needed=True, details=factor)]
    return []
