"""What limits a prediction: a kind of link with its share of the time, a switch's slots, or what is waited for.

All predictions have these words; `switch simulate` and bounds name what their own models have. A kind of link is as
busy as the busiest of its links: the bytes that it carried, at its rate, over the time.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.core.machines.hardware import maker_of
from commsim.core.machines.parts import NVLINK_METRIC
from commsim.core.network import CPU, MEMORY, NIC, SWITCH, Network
from commsim.core.network_queries import AT_ONCE, tiers
from commsim.core.result import Result
from commsim.core.units import format_size
from commsim.prediction.plans.dense import Plan
from commsim.prediction.work_plan import WorkPlan

# Share of the time from which on links limit it: those of one kind, or of the kinds that are busy in turn together.
BUSY = 0.5
# NICs limit also where another kind of link is busier by less than 3 %.
ABOUT = 0.97
MESSAGES, SLOTS = "messages in turn", "the switch's slots"
NICS, NVLINK, SOCKETS, HOST_MEMORY, PCIE = "the NICs", "NVLink", "the links between CPU sockets", "host memory", "PCIe"
XGMI, HOST_CABLES = "xGMI", "the cables between hosts"
# What senders wait for while no link is busy, by the counter of packets that shows it.
OF_PACKETS = {"marks": "the senders' congestion control", "timeouts": "timeouts after losses"}
WAITS = (MESSAGES, SLOTS, *OF_PACKETS.values())
__all__ = ["Limit", "bytes_up", "kind_of_link", "limit_of", "row_of_limit", "short_limit", "told_limits"]


class Limit(NamedTuple):
    """What limits a time.

    Parameters
    ----------
    what : str
        Kind of link, ``the switch's slots``, ``the senders' congestion control``, ``timeouts after losses`` or
        ``messages in turn``.
    busy : float
        Share of the time in which the busiest link is busy: of the kind, else of all.
    """

    what: str
    busy: float

    def __str__(self) -> str:
        if self.what in WAITS:
            return f"{self.what} (no link is busy for more than {self.busy:.0%} of the time)"
        return f"{self.what} ({self.busy:.0%} of the time)"


def kind_of_link(network: Network, link: int) -> str:
    """Return what a link is called in every answer.

    Parameters
    ----------
    network : Network
        Network with the link.
    link : int
        Number of the link.
    """
    ends = np.array([network.src[link], network.dst[link]])
    kinds, machines = network.kind[ends], network.machine[ends]
    if machines[0] == machines[1] >= 0:
        if (kinds == MEMORY).any():
            return HOST_MEMORY
        if (kinds == CPU).all():
            return SOCKETS
        if (kinds == NIC).any():  # its plug has the NIC's rate
            return NICS
        if network.metric[link] == NVLINK_METRIC:
            return XGMI if maker_of(network.hardware) == "amd" else NVLINK
        return PCIE
    if (kinds == SWITCH).all():
        tier = tiers(network)[ends]
        names = [_stem(network.nodes[end]) for end in ends[np.argsort(tier, kind="stable")]]
        return f"{'-'.join(sorted(names) if tier[0] == tier[1] else names)} cables"
    return NICS if (kinds == SWITCH).any() else HOST_CABLES


def _stem(name: str) -> str:
    """Return the name of a kind of node: ``leaf`` of ``leaf12`` and ``p3.leaf12``."""
    return re.sub(r"[\d_.\-]+$", "", name.rpartition(".")[2]) or "switch"


def bytes_up(network: Network, link_bytes: NDArray[np.float64]) -> dict[str, float]:
    """Return the bytes that leave the switches of each tier upwards, such as all that leave the leaves.

    Parameters
    ----------
    network : Network
        Network of the links.
    link_bytes : float64[n_links], bytes
        Load of each link; of an engine without links it is empty.

    Returns
    -------
    dict of str to float
        By the kind of link, ``leaf-spine cables``; without kinds that carry nothing.
    """
    if link_bytes.size != network.n_links:
        return {}
    tier, ends = tiers(network), np.stack((network.src, network.dst))
    between = (network.kind[ends] == SWITCH).all(axis=0) & (network.machine[ends] < 0).all(axis=0)
    up = np.flatnonzero(between & (tier[network.src] < tier[network.dst]) & (link_bytes > 0))
    steps, first, group = np.unique(tier[network.src[up]], return_index=True, return_inverse=True)
    carried = np.bincount(group.ravel(), weights=link_bytes[up], minlength=len(steps))
    names = [kind_of_link(network, int(link)) for link in up[first]]
    return dict(zip(names, carried.tolist(), strict=True))


def limit_of(plan: WorkPlan, result: Result) -> Limit | None:
    """Return what limits the time of a result; None where it takes none, or its engine has no links.

    Parameters
    ----------
    plan : WorkPlan
        Plan that the result is of.
    result : Result
        Prediction.
    """
    network = plan.network
    if not result.time or result.link_bytes.size != network.n_links or result.engine == "closed-form":
        return None
    busy = result.link_bytes / network.bandwidth
    busy /= result.time
    most = float(busy.max(initial=0.0))
    if most < BUSY and _waits_for_slots(plan, result):
        return Limit(SLOTS, most)
    by_kind = _by_kind(network, busy)
    if not by_kind or sum(by_kind.values()) < BUSY:
        return Limit(next((what for key, what in OF_PACKETS.items() if result.counters.get(key)), MESSAGES), most)
    what = max(by_kind, key=by_kind.__getitem__)
    # A machine's PCIe links are made for its NICs: where both are as busy, the NICs are what one would look for.
    if by_kind.get(NICS, 0.0) > ABOUT * by_kind[what]:
        what = NICS
    return Limit(what, min(1.0, by_kind[what]))


def _by_kind(network: Network, busy: NDArray[np.float64]) -> dict[str, float]:
    """Return the share of the time of the busiest link of each kind; links of the same kinds of ends are one kind."""
    of_ends = network.kind.astype(np.int32) * 64 + np.minimum(tiers(network), 31).astype(np.int32) + 1
    n = of_ends.max(initial=0) + 1
    busiest: dict[int, int] = {}  # link of each kind; of equals the one behind
    for low in range(0, network.n_links, AT_ONCE):
        some = slice(low, low + AT_ONCE)
        src, dst = network.src[some], network.dst[some]
        inside = (network.machine[src] >= 0) & (network.machine[src] == network.machine[dst])
        is_nvlink = network.metric[some] == NVLINK_METRIC
        key = (of_ends[src] * n + of_ends[dst]) * 4 + np.int32(2) * inside + is_nvlink
        for one in np.flatnonzero(np.bincount(key)).tolist():  # few, so that sorting links would take longer
            links = low + np.flatnonzero(key == one)[::-1]
            link = int(links[np.argmax(busy[links])])
            if busy[link] >= busy[busiest.get(one, link)]:
                busiest[one] = link
    limits: dict[str, float] = {}
    for _, link in sorted(busiest.items()):
        if busy[link] > 0:
            name = kind_of_link(network, link)
            limits[name] = max(limits.get(name, 0.0), float(busy[link]))
    return limits


def _waits_for_slots(plan: WorkPlan, result: Result) -> bool:
    """Whether a switch system's windows allow less than the links of its hosts carry."""
    return isinstance(plan, Plan) and plan.in_slots and bool(np.isfinite(plan.at(result.size).paths.job.rate_cap))


def row_of_limit(limit: Limit | None) -> dict[str, str | float | None]:
    """Return the part of the JSON row on what limits a time."""
    what, busy = (None, None) if limit is None else limit
    return {"limited_by": what, "limit_busy": busy}


def short_limit(limit: Limit | None) -> str:
    """Return what limits a time, for a cell of a table: links with their share of the time, else what is waited for."""
    if limit is None:
        return "-"
    return limit.what if limit.what in WAITS else f"{limit.what} {limit.busy:.0%}"


def told_limits(limits: Sequence[Limit | None], sizes: Sequence[float]) -> str:
    """Say what limits times by size, each kind with the first size that it limits; empty where nothing is known.

    Parameters
    ----------
    limits : sequence of Limit or None
        What limits each time.
    sizes : sequence of float, bytes
        Size of each.
    """
    starts: list[tuple[float, Limit]] = []
    for size, limit in sorted(zip(sizes, limits, strict=True), key=operator.itemgetter(0)):
        if limit is not None and (not starts or starts[-1][1].what != limit.what):
            starts.append((size, limit))
    lines = [str(limit) if k == 0 else f"{limit} from {format_size(size)}" for k, (size, limit) in enumerate(starts)]
    return f"limited by: {', '.join(lines)}" if lines else ""
