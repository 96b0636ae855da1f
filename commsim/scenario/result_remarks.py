"""Remarks that follow from results: what they do not count, density of data, cost of flaps, rates above a link's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from commsim.core.result import Result
from commsim.core.units import microseconds


def remarks_of_results(
    prepared: Any, results: Sequence[Result], *, has_framing: bool = False, verbose: bool = False
) -> list[str]:
    """Return what to say beside predictions of one prepared collective.

    Parameters
    ----------
    prepared : Plan
        Or the same with a compressor.
    results : sequence of Result
        Its predictions, by size.
    has_framing : bool
        Whether packets with headers were asked for.
    verbose : bool
        Whether to say in what the flow engine differs from the packet engine.
    """
    lines = [*_intervals(results), *_contention(results), *_sparse(results)]
    return [*lines, *_in_network(prepared, results, has_framing, verbose), *_flaps(results)]


def _intervals(results: Sequence[Result]) -> list[str]:
    of_tables = [r for r in results if r.interval is not None and r.collective.startswith("nccl_")]
    told = (
        "low to high: the range of 80 % of the public tables for these GPUs and sizes, without those used for fitting"
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
    return f"packets that were lost: {counters['drops_loss']:.0f}, sent again: {counters['retransmissions']:.0f}"


def _in_network(prepared: Any, results: Sequence[Result], has_framing: bool, verbose: bool) -> list[str]:
    """Describe what the numbers of in-network aggregation mean; when verbose, why the packet engine says otherwise."""
    from collectives import COLLECTIVES
    from commsim.scenario.plans.aggregated import AggregatedPlan

    if (schedule := getattr(prepared, "schedule", None)) is None:  # groups, or jobs that share a network
        return []
    name = schedule.name
    if name not in COLLECTIVES or not COLLECTIVES[name].metadata["systems"] or not prepared.schedule.n_helpers:
        return []
    lines, inner = _above_line_rate(prepared, results), getattr(prepared, "prepared", prepared)  # of a compressor
    if not isinstance(inner, AggregatedPlan):
        lines += [] if has_framing or results[0].engine == "packet" else ["headers are not counted"]
    elif results[0].engine == "packet":
        lines.append("packets, windows and retransmissions are those of the system; transport flags have no effect")
        if inner.network.recv_overhead.any() or inner.network.gamma.any():
            lines.append("receive overheads and the reduction rate of hosts are not counted")
    elif verbose:
        views = {r.size: inner.view(r.size) for r in results}
        gaps = {size: view.differences for size, view in views.items() if view is not None}
        lines += [f"{size:.0f} B: against engine packet: {'; '.join(gap)}" for size, gap in gaps.items() if gap]
    return [f"{name}: {line}" for line in lines]


def _above_line_rate(prepared: Any, results: Sequence[Result]) -> list[str]:
    """Describe why busbw is larger than what the busiest link carries, where it is."""
    network = prepared.network
    for r in results:
        rate = network.bandwidth[int((r.link_bytes / network.bandwidth).argmax())] if r.link_bytes.any() else np.inf
        if r.time > 0 and r.busbw > rate:
            return [
                f"busbw is above the {rate / 1e9:.4g} GB/s of the busiest link: its factor is that of point-to-point "
                "algorithms, and with aggregation in switches each byte is sent only once"
            ]
    return []
