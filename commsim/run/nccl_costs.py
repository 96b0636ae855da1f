"""What NCCL's primitives cost on the engines that send messages: hops as latency, channels' rates, shares of links.

The closed form has the same constants. A message of a channel moves no faster than a primitive does, and arrives a hop
later; links carry what NCCL reaches of them; what fills a pipeline of loops is added to the launch. That channels which
fill a link together wait for each other no engine shows: there the closed form says more.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from collectives.nccl.call import ALLOWED, BY_RANK, PROTOCOLS, Call
from collectives.nccl.exchanges import CHANNELS as EXCHANGE_CHANNELS
from collectives.nccl.point_to_point import message, peer_channels
from collectives.nccl.rules import Part, cut
from commsim.core.machine import NVLINK_METRIC
from commsim.core.network import GPU, Network
from commsim.core.network_queries import units
from commsim.nccl.choice import Cell
from commsim.nccl.in_switch import FILLING, SEPARATE_CHUNKS, loop_time
from commsim.nccl.prediction import Site, call_of, ways_of
from commsim.nccl.primitive_costs import costs
from commsim.nccl.steps import SHARE_TOGETHER, Ways

# Algorithms whose messages are steps of primitives.
STEPS = ("ring", "tree", "pat")


class MessageTimes(NamedTuple):
    """Costs of one call as the engines take them.

    Parameters
    ----------
    network : Network
        With latencies and rates as NCCL has them.
    rate_cap : float, bytes/s
        On the wire, of a channel.
    launch : float, s
        Of the call, before and after its messages.
    """

    network: Network
    rate_cap: float
    launch: float


def message_times(
    network: Network, site: Site, operation: str, size: int, parameters: Mapping[str, Any]
) -> MessageTimes:
    """Return what messages of a call cost.

    Parameters
    ----------
    network : Network
        Where.
    site : Site
        What NCCL takes it for.
    operation : str
        By name.
    size : int, bytes
        Of the array.
    parameters : mapping of str to value
        Of the schedule: algorithm and protocol where the operation has them.

    Raises
    ------
    InputError
        If the costs of the GPUs' primitives or of the network are not known.
    """
    ways = ways_of(site, costs())
    if operation not in ALLOWED:
        is_pair = operation == "send_recv" or site.setting.n_ranks == 2
        return _exchange(
            network, site, ways, size // (1 if operation == "send_recv" else site.setting.n_ranks), is_pair
        )
    cell = Cell(parameters["algorithm"], parameters["protocol"], 0.0, 0.0)
    launch = ways.primitives.launch
    if cell.algorithm.startswith("collnet"):
        return MessageTimes(_priced(network, site, ways, cell.protocol), float("inf"), launch)
    call = call_of(site, operation, cell, size)
    part = cut(call)[0]
    if cell.algorithm in STEPS:
        return MessageTimes(_priced(network, site, ways, cell.protocol), _rate(ways, call, part), launch)
    # NVLink SHARP: a channel serves all heads in a loop, of which it has three under way.
    p, chunk = ways.primitives, part.chunk if part.n_loops > 1 else part.last_chunk
    loop = loop_time(p, call.n_heads, chunk)
    bare = _priced(network, site, without_hops(ways, site.link), "simple")
    return MessageTimes(bare, call.n_heads * chunk / loop, launch + FILLING * loop)


def _rate(ways: Ways, call: Call, part: Part) -> float:
    """Bytes on the wire over what a channel's primitives take for them, every slice with what it costs by itself."""
    p, protocol = ways.primitives, PROTOCOLS[call.protocol]
    rate = p.rate(call.protocol) * (SHARE_TOGETHER if call.algorithm == "tree" else 1.0)
    each = part.n_bytes * (call.n_ranks if call.operation in BY_RANK else 1) / max(1, part.n_slices)
    fixed = p.slice if call.protocol == "simple" else 0.0
    return each / (each / rate + fixed) * protocol.wire / protocol.payload


def _exchange(network: Network, site: Site, ways: Ways, each: int, is_pair: bool) -> MessageTimes:
    """Messages to all peers at once: a fixed part by protocol, and of its first chunks; a pair has its link alone."""
    p, many = ways.primitives, ways.plugin is not None
    n = 2 if is_pair else site.setting.n_ranks
    least, most = peer_channels(EXCHANGE_CHANNELS, n, site.nics / site.n_nics if many else None)
    sent = message(each, least, most, network=many, many_nodes=many)
    link = site.link if site.pcie or is_pair else site.link * p.p2p_efficiency
    priced = _priced(network, site, without_hops(ways, link), "simple")
    if sent.protocol == "ll" and not many:
        return MessageTimes(priced, p.rate_ll, p.launch + p.p2p_ll)
    chunks = min(float(SEPARATE_CHUNKS), sent.part / sent.chunk)
    return MessageTimes(priced, float("inf"), p.launch + p.p2p_simple + (0.0 if many else chunks * p.p2p_chunk))


def without_hops(ways: Ways, link: float) -> Ways:
    """Return the ways with no latency inside a machine, and another rate of its links."""
    primitives = dataclasses.replace(ways.primitives, hop_ll=0.0, hop_ll128=0.0, hop_simple=0.0)
    return dataclasses.replace(ways, primitives=primitives, link=link)


def _priced(network: Network, site: Site, ways: Ways, protocol: str) -> Network:
    """Give links the part of their rate that NCCL reaches, and the ends of each way the latency of its hop.

    A hop has what software takes for a message, as in the closed form: the network's overhead would count twice.
    """
    unit = units(network)
    inside = unit[network.src] == unit[network.dst]
    gpu = network.kind == GPU
    ends = gpu[network.src].astype(np.int64) + gpu[network.dst]
    nvlink = inside & (network.metric == NVLINK_METRIC)
    between = nvlink if not site.pcie else inside & ~nvlink
    crossing = ~inside & ((network.machine[network.src] >= 0) | (network.machine[network.dst] >= 0))
    hop = ways.primitives.hop(protocol)
    bandwidth, latency = network.bandwidth.copy(), np.where(inside, 0.0, network.latency)
    if site.link:
        bandwidth[between] *= ways.inside("simple") / site.link * (ways.ll_link if protocol == "ll" else 1.0)
    latency[between] = ends[between] * hop / 2
    if ways.plugin is not None:
        whole = PROTOCOLS[protocol].wire / PROTOCOLS[protocol].payload
        bandwidth[crossing] *= ways.outside(protocol) * whole / site.nics
        # From a GPU by its NIC to another: over PCIe alone the GPUs' links have a part of it already.
        latency[crossing] = max(0.0, ways.plugin.hop(protocol) - (hop if site.pcie else 0.0)) / 2
        latency[~inside & ~crossing] = 0.0
    none = np.zeros(network.n_nodes)
    return dataclasses.replace(network, bandwidth=bandwidth, latency=latency, overhead=none, recv_overhead=none)
