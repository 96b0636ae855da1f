"""Remarks that follow from results: what they do not count, density of data, cost of flaps, rates above a link's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.core.machines.parts import NVLINK_METRIC
from commsim.core.network import CPU, SWITCH, Network
from commsim.core.result import Result
from commsim.core.schedule import Schedule
from commsim.core.units import format_bandwidth, format_time, microseconds
from commsim.routing.link_rows import only_sends
from commsim.routing.network_metrics import fabric_oversubscription

if TYPE_CHECKING:
    from commsim.routing.flaps import Flaps


def remarks_of_results(results: Sequence[Result], of_plan: Sequence[str] = ()) -> list[str]:
    """Return what to say beside predictions of one plan.

    Parameters
    ----------
    results : sequence of Result
        Its predictions, by size.
    of_plan : sequence of str
        What only a plan of this kind says.
    """
    return [
        *_alone(results),
        *_intervals(results),
        *_contention(results),
        *_sparse(results),
        *of_plan,
        *_flaps(results),
    ]


def of_paths(network: Network, results: Sequence[Result]) -> list[str]:
    """Describe what the paths do to times: what a closed form does not see, and rails without PXN."""
    if any(result.engine == "closed-form" for result in results):
        worst = fabric_oversubscription(network)
        unseen = f"links between switches, of which some are {worst:.4g}:1 oversubscribed"
        return [f"the closed form does not see {unseen}: --engine flow does"] if worst > 1 + 1e-9 else []
    if (network.kind == CPU).any() and (told := _between_sockets(network, results)):
        return [told]
    return _of_rails(network, results) if network.name.startswith("rail_optimized:") else []


def _between_sockets(network: Network, results: Sequence[Result]) -> str:
    """Say that the busiest link of a result joins two CPU sockets, whose rate few give; empty where none does."""
    for result in results:
        link, _, _ = result.busiest_link(network)
        if link is None:
            continue
        i = int((result.link_bytes / network.bandwidth).argmax())
        if network.kind[network.src[i]] == network.kind[network.dst[i]] == CPU:
            rate = format_bandwidth(float(network.bandwidth[i]))
            return f"{link}, between two CPU sockets, is the busiest link, at {rate}: inter_cpu= of a machine sets that"
    return ""


def _of_rails(network: Network, results: Sequence[Result]) -> list[str]:
    """Say that messages between rails cross the spines where GPUs on an NVSwitch do not use each other's NICs."""
    if only_sends(network).any():
        return []
    switch = (network.kind == SWITCH) & (network.machine < 0)
    between = switch[network.src] & switch[network.dst]
    has_nvswitch = ((network.kind[network.dst] == SWITCH) & (network.metric == NVLINK_METRIC)).any()
    if not has_nvswitch or not any(result.link_bytes[between].any() for result in results):
        return []
    return [
        "messages between rails cross the spines, since PXN is off (NCCL has it on; pxn=true of the machine does too)"
    ]


def of_detection(flaps: Flaps, network: Network, results: Sequence[Result]) -> list[str]:
    """Describe when switches and senders know of a flap, and that no message met one, or none crosses what flaps."""
    flapped = [result for result in results if "flap_lost_s" in result.counters]
    if not flapped:
        return []
    links = [link for flap in flaps.flaps for link in flap.links]
    is_met = any(one.counters.get("stalled") or one.counters.get("drops_loss") for one in flapped)
    if not (is_met or any(one.counters.get("rerouted") or one.link_bytes[links].any() for one in flapped)):
        return [f"no message crosses a cable that flaps{_busiest_cable(network, flapped[-1])}"]
    told = f"switches route around a cable {format_time(flaps.detection)} after it goes down (--detection)"
    if not is_met:
        missed = f"no message met a cable that was down{_busiest_cable(network, flapped[-1])}"
        return [f"{missed}; {told}" if flaps.detection else missed]
    waits = any("stalled" in one.counters for one in flapped) and not flaps.rto
    no_timer = ["senders' retransmission timers are left out: messages go on as soon as there is a path (--rto)"]
    return ([told] if flaps.detection else []) + (no_timer if waits else [])


def _busiest_cable(network: Network, result: Result) -> str:
    """Name the cable between switches that is busy longest; where there is none, that of any link."""
    busy = result.link_bytes / network.bandwidth
    between = (network.kind == SWITCH) & (network.machine < 0)
    between = between[network.src] & between[network.dst]
    busy = np.where(between, busy, 0.0) if busy[between].any() else busy
    return f" (the busiest: {network.link_name(int(busy.argmax()))})" if busy.any() else ""


def _alone(results: Sequence[Result]) -> list[str]:
    names = dict.fromkeys(r.collective for r in results if r.n_ranks == 1)
    return [f"{name}: one rank has nothing to send, so there is no rate" for name in names]


def _intervals(results: Sequence[Result]) -> list[str]:
    of_tables = [r for r in results if r.interval is not None and r.collective.startswith("nccl_")]
    told = (
        "low to high: where 80 % of the public tables lie, of one machine or of several as here, with any operation "
        "and GPU; nothing was fitted on them"
    )
    return [told] if of_tables else []


def _contention(results: Sequence[Result]) -> list[str]:
    hidden = [r for r in results if r.counters.get("link_bound_s", 0.0) > r.time]
    if not hidden:
        return []
    worst = max(hidden, key=lambda r: r.counters["link_bound_s"] / r.time)
    factor = worst.counters["link_bound_s"] / worst.time
    return [
        f"contention is not modelled: the busiest link needs {factor:.2f} times the predicted time; use engine flow"
    ]


def _sparse(results: Sequence[Result]) -> list[str]:
    """Describe how sparse the data is, and how much denser the sum."""
    return [
        f"{r.size:.0f} B: density {r.counters['density']:.4g}, density of the union {r.counters['union_density']:.4g}, "
        f"densification {r.counters['densification']:.4g}"
        for r in results
        if "union_density" in r.counters
    ]


def _flaps(results: Sequence[Result]) -> list[str]:
    """Describe what flaps cost, and how many connections they met."""
    return [
        f"{r.size:.0f} B: the flap costs {microseconds(r.counters['flap_lost_s'])} us; {_met(r.counters)}, connections "
        f"that were rerouted: {r.counters['rerouted']:.0f}"
        for r in results
        if "flap_lost_s" in r.counters
    ]


def _met(counters: Mapping[str, float]) -> str:
    if "stalled" in counters:
        return f"connections that waited: {counters['stalled']:.0f}"
    late = f", timeouts (--rto): {counters['timeouts']:.0f}" if counters.get("timeouts") else ""
    return f"packets that were lost: {counters['drops_loss']:.0f}, sent again: {counters['retransmissions']:.0f}{late}"


def of_switches(schedule: Schedule, network: Network, results: Sequence[Result], more: Sequence[str]) -> list[str]:
    """Describe what the numbers of in-network aggregation mean; nothing of collectives that switches do not aggregate.

    Parameters
    ----------
    schedule, network
        Schedule of the collective, and its network.
    results : sequence of Result
        Its predictions.
    more : sequence of str
        What a plan of this kind says beside.
    """
    from collectives import COLLECTIVES

    name = schedule.name
    if name not in COLLECTIVES or not COLLECTIVES[name].metadata["systems"] or not schedule.n_helpers:
        return []
    why = "with aggregation in switches each byte is sent only once"
    return [f"{name}: {line}" for line in (*above_line_rate(network, results, why), *more)]


def of_shared_machines(name: str, network: Network, ranks: NDArray[np.integer]) -> list[str]:
    """Say that ranks of one machine send their arrays to switches one by one, without a sum in the machine first.

    Parameters
    ----------
    name : str
        Name of the collective.
    network : Network
        Network of the ranks.
    ranks : int[n_ranks]
        Nodes of the ranks.
    """
    machine = network.machine[ranks]
    counts = np.unique(machine[machine >= 0], return_counts=True)[1]
    if len(counts) < 2 or counts.max() < 2:
        return []
    told = "every rank is a worker and sends its whole array over its NIC, also where a machine has several ranks"
    nccl = "; NCCL sums inside a machine first: `nccl` with MACHINE:sharp=on" if name.startswith("sharp") else ""
    return [f"{told}{nccl}"]


def above_line_rate(network: Network, results: Sequence[Result], why: str) -> list[str]:
    """Describe that busbw is larger than what the busiest link carries, where it is, and why."""
    for r in results:
        rate = network.bandwidth[int((r.link_bytes / network.bandwidth).argmax())] if r.link_bytes.any() else np.inf
        if r.time > 0 and r.busbw > rate:
            return [
                f"busbw is above the {rate / 1e9:.4g} GB/s of the busiest link: its factor is that of point-to-point "
                f"algorithms, and {why}"
            ]
    return []
