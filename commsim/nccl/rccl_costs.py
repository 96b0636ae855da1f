"""What RCCL's calls cost on AMD's GPUs: launch, hops and the rate of xGMI, and its choice of protocol by size."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from commsim.core.machines.hardware import maker_of, read_hardware, transport_of
from commsim.core.machines.parts import NVLINK_METRIC
from commsim.core.network import Network
from commsim.core.network_queries import units
from commsim.nccl.gpu_costs import Plugin, costs

PATH = Path(__file__).parent / "rccl_costs.toml"
# GPUs of a machine up to which a ring over its links is looked for.
MAX_RING = 16
# Rings of a machine that are compared.
MAX_FOUND = 64


@dataclass(frozen=True, slots=True)
class RcclCosts:
    """Costs of one generation of AMD's GPUs.

    Parameters
    ----------
    launch : float, s
        Time of a call besides its messages.
    hop_ll, hop_simple : float, s
        Time from the end of a send to the start of what the receiver does with it, over xGMI.
    efficiency : float
        Share of the xGMI links' rate that messages reach.
    channel : float, bytes/s
        Rate at which one channel moves data, if no link is in its way.
    ll_below, pairs_below : int, bytes
        Sizes up to which a call on one machine takes LL, and an all-reduce on a full mesh of eight GPUs sends between
        all pairs at once. Over several machines :mod:`commsim.nccl.rccl_choice` chooses.
    fitted_on : tuple of str
        Tables that any of them was fitted on.
    """

    launch: float
    hop_ll: float
    hop_simple: float
    efficiency: float
    channel: float
    ll_below: int
    pairs_below: int
    fitted_on: tuple[str, ...]

    def hop(self, protocol: str) -> float:
        """Return the latency of a hop over xGMI; LL128 has that of Simple."""
        return self.hop_ll if protocol == "ll" else self.hop_simple

    def before(self, protocol: str) -> float:
        """Return the time of a call besides its messages: the launch, and one primitive more than there are steps."""
        return self.launch + self.hop(protocol)

    def protocol(self, size: float) -> str:
        """Return the protocol that a call of so many bytes takes."""
        return "ll" if size <= self.ll_below else "simple"

    def schedule(self, size: float) -> dict[str, str]:
        """Return the parameters of an all-reduce on one full mesh of eight GPUs; empty for rings.

        RCCL has schedules of MSCCL for it.
        """
        return {"rings": "pairs"} if size <= self.pairs_below else {}


@functools.cache
def rccl_costs() -> dict[str, RcclCosts]:
    """Return the constants of each generation of AMD's GPUs, as ``rccl_costs.toml`` has them."""
    tree = tomllib.loads(PATH.read_text(encoding="utf-8"))
    return {
        name: RcclCosts(
            table["launch_us"] * 1e-6, table["hop_ll_us"] * 1e-6, table["hop_simple_us"] * 1e-6, table["efficiency"],
            table["channel_GBps"] * 1e9, table["ll_below"], table["pairs_below"],
            tuple(table["fitted_on"]),
        )
        for name, table in tree.items()
    }  # fmt: skip


def costs_of(hardware: str) -> RcclCosts | None:
    """Return the constants of the GPUs of :attr:`Network.hardware`; None where they are not AMD's or not known."""
    if maker_of(hardware) != "amd":
        return None
    return rccl_costs().get(read_hardware(hardware)["gpu"])


def priced(network: Network, known: RcclCosts, protocol: str) -> Network:
    """Return a network whose xGMI links and NICs have RCCL's hops as latency, and the rate that messages reach.

    Parameters
    ----------
    network : Network
        Network as cables make it.
    known : RcclCosts
        Constants of its GPUs.
    protocol : str
        By name.
    """
    unit, bandwidth, latency = units(network), network.bandwidth.copy(), network.latency.copy()
    inside = unit[network.src] == unit[network.dst]
    xgmi = inside & (network.metric == NVLINK_METRIC)
    bandwidth[xgmi] *= known.efficiency
    latency[xgmi] = known.hop(protocol)
    plugin = _plugin(network)
    if plugin is not None:
        crossing = ~inside & ((network.machine[network.src] >= 0) | (network.machine[network.dst] >= 0))
        bandwidth[crossing] *= plugin.efficiency
        latency[crossing] = plugin.hop(protocol) / 2  # out of one machine and into the next
    none = np.zeros(network.n_nodes)
    return dataclasses.replace(network, bandwidth=bandwidth, latency=latency, overhead=none, recv_overhead=none)


def rings_over_links(network: Network, nodes: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Return rings over the direct links of a machine's GPUs, each also backwards, that load the busiest link least.

    Parameters
    ----------
    network : Network
        Network with links between the GPUs.
    nodes : sequence of int
        GPUs of one machine; rings are looked for among 3 to 16.

    Returns
    -------
    tuple of tuple of int
        One or two rings and their reverses, as places in `nodes`; empty where no ring goes over direct links alone.
    """
    if not 3 <= len(nodes) <= MAX_RING:
        return ()
    place = {node: number for number, node in enumerate(nodes)}
    width = {
        (place[a], place[b]): rate
        for a, b, rate in zip(network.src.tolist(), network.dst.tolist(), network.bandwidth.tolist(), strict=True)
        if a in place and b in place
    }
    rings = list(itertools.islice(_closed(sorted(width), (0,), len(nodes)), MAX_FOUND))

    def load(rings: tuple[tuple[int, ...], ...]) -> float:
        uses = Counter(pair for ring in rings for pair in pairwise((*ring, ring[0])))
        return float(max((uses[a, b] + uses[b, a]) / width[a, b] for a, b in uses))

    best = min(itertools.combinations_with_replacement(rings, 2), key=load, default=())
    return tuple(way for ring in dict.fromkeys(best) for way in (ring, ring[::-1]))


def _closed(pairs: Sequence[tuple[int, int]], path: tuple[int, ...], n: int) -> Iterator[tuple[int, ...]]:
    """Go on with a path along pairs to all n places, and give those paths that end beside their start."""
    if len(path) == n:
        yield from (path,) * ((path[-1], path[0]) in pairs)
        return
    for a, b in pairs:
        if a == path[-1] and b not in path:
            yield from _closed(pairs, (*path, b), n)


def _plugin(network: Network) -> Plugin | None:
    """Return what the network below costs, measured with NCCL; None where it is not named."""
    return costs().plugins.get(transport_of(network.hardware))
