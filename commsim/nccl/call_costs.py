"""What NCCL's primitives cost on a network: hops as latency, channels' rates, shares of links, and the call's time.

A message of a channel moves no faster than its rate and arrives a hop later; links carry what NCCL reaches of them.
:mod:`commsim.nccl.call_messages` says what these are, so that the longest chain of messages takes the time
that :mod:`commsim.nccl.prediction` says. What rounding leaves between the two is found on the reference
network: the same machines with nothing in the way between and inside them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from collectives.nccl.call import ALLOWED, PROTOCOLS
from collectives.nccl.exchanges import cut_message
from commsim.core.cache import Cache
from commsim.core.machines.parts import NVLINK_METRIC
from commsim.core.network import GPU, Network
from commsim.core.network_queries import units, with_rates
from commsim.nccl.call_messages import CallMessageCosts, messages_of, messages_of_exchange
from commsim.nccl.call_times import CallLinks
from commsim.nccl.gpu_costs import costs
from commsim.nccl.prediction import call_of, cell_seconds, exchange_at, on_rails, spread_of, switch_rate, ways_of
from commsim.nccl.site import Site
from commsim.nccl.tuning_table import Cell

# Rate of a link that is in nobody's way, bytes/s.
ENDLESS = 1e24
__all__ = ["CallCosts", "call_costs"]


# Networks as the calls see them that were asked for last, by all that decides their rates and latencies; with the
# network itself, so that its id stays its own. Sizes with the same costs of messages so have the same networks.
_PRICED: Cache[tuple[Network, ...]] = Cache(16, lambda found: found[0].n_links <= 2**18)
# Costs of the last calls, which a plan and its remarks both ask for.
_LATEST: Cache[tuple[Network, Site, CallCosts]] = Cache(4, lambda found: found[0].n_links <= 2**18)


class CallCosts(NamedTuple):
    """Costs of one call as the engines take them.

    Parameters
    ----------
    network : Network
        Network with latencies and rates as NCCL has them.
    reference : Network
        The same machines with endless links, but for those of a GPU to a switch and of a NIC to the network: these are
        as fast as the fastest of their kind.
    rate_cap : float, bytes/s
        Largest rate of a channel on the wire.
    launch : float, s
        Time of the call before and after its messages.
    seconds : float
        Time of the call on the reference network.
    spread : (float, float)
        Parts of it between which 80 % of the tables lie.
    """

    network: Network
    reference: Network
    rate_cap: float
    launch: float
    seconds: float
    spread: tuple[float, float]


class _Shares(NamedTuple):
    """Parts of the rates of links in a machine, and of NICs, that a call reaches."""

    inside: float
    outside: float


def call_costs(
    network: Network, site: Site, operation: str, size: int, parameters: Mapping[str, Any]
) -> CallCosts:  # fmt: skip
    """Return what a call costs.

    Parameters
    ----------
    network : Network
        Network that the call runs on.
    site : Site
        What NCCL takes it for.
    operation : str
        Name of the operation.
    size : int, bytes
        Size of the array.
    parameters : mapping of str to value
        Parameters of the schedule: algorithm, protocol and channels where the operation has them.

    Raises
    ------
    InputError
        If the costs of the GPUs' primitives or of the network are not known.
    """
    key = id(network), id(site), operation, size, *parameters.items()
    return _LATEST.get(key, lambda: (network, site, _found(network, site, operation, size, parameters)))[2]


def _found(network: Network, site: Site, operation: str, size: int, parameters: Mapping[str, Any]) -> CallCosts:
    known = costs()
    ways = ways_of(site, known)
    if operation in ALLOWED:
        messages, shares, seconds = _of_call(site, ways, operation, size, parameters)
    else:
        messages, shares, seconds = _of_exchange(site, ways, operation, size, parameters)
    crosses = site.setting.n_nodes > 1 or not site.p2p
    said = crosses, site.nics / site.n_nics, site.pcie, messages.inside, messages.between, shares
    _, priced, reference = _PRICED.get((id(network), *said), lambda: _both(network, site, messages, shares))
    spread = spread_of(site, size, str(parameters.get("algorithm", "")))
    return CallCosts(priced, reference, messages.rate, messages.fixed, seconds, spread)


def _both(network: Network, site: Site, messages: CallMessageCosts, shares: _Shares) -> tuple[Network, ...]:
    priced = _priced(network, site, messages, shares)
    return network, priced, _reference(priced)


def _of_call(
    site: Site, ways: CallLinks, operation: str, size: int, parameters: Mapping[str, Any]
) -> tuple[CallMessageCosts, _Shares, float]:
    cell = Cell(parameters["algorithm"], parameters["protocol"], 0.0, 0.0)
    call = call_of(site, operation, cell, size, parameters.get("channels", 0))
    if parameters.get("heads"):  # as the schedule has them
        call = dataclasses.replace(call, heads=parameters["heads"])
    seconds = cell_seconds(site, ways, operation, cell, size, call)
    ways = on_rails(site, ways, cell.algorithm)
    messages = messages_of(ways, call, seconds, switch_rate(site))
    whole = PROTOCOLS[cell.protocol].wire / PROTOCOLS[cell.protocol].payload
    outside = ways.outside(cell.protocol) * whole / ways.nics if ways.plugin is not None else 1.0
    if cell.algorithm.startswith("nvls"):  # the switch is reached at the links' rate
        return messages, _Shares(1.0, outside), seconds
    inside = ways.inside(cell.protocol) * whole / site.link if np.isfinite(site.link) else 1.0
    return messages, _Shares(inside, outside), seconds


def _of_exchange(
    site: Site, ways: CallLinks, operation: str, size: int, parameters: Mapping[str, Any]
) -> tuple[CallMessageCosts, _Shares, float]:
    exchange, many = exchange_at(site, ways, operation, size), ways.plugin is not None
    n, per_node = site.setting.n_ranks, site.setting.n_ranks // site.setting.n_nodes
    machines, channels = parameters.get("machines"), parameters.get("channels")
    chunks = site.setting.buffer, site.setting.version, site.setting.net_chunk
    if operation == "send_recv":
        sent, _ = cut_message(n, channels, size, machines, *chunks)
        peers, together, batches = 1.0, 1, 1
    else:
        sent, at_once = cut_message(n, channels, size // n, machines, *chunks)
        out = n - per_node if many else n - 1
        together, batches = per_node if many else 1, -(-n // at_once)
        peers = out / batches
    hop = ways.plugin.hop("simple") / batches if ways.plugin is not None else 0.0
    messages = messages_of_exchange(exchange, peers * sent.n_channels, together, hop)
    outside = ways.outside("simple") * ways.plugin.exchange / site.nics if ways.plugin is not None else 1.0
    # In a machine the exchange's own rate is what the link carries; a pair has the link for itself.
    inside = exchange.rate / site.link if not many and np.isfinite(site.link) else 1.0
    return messages, _Shares(min(1.0, inside), outside), exchange.seconds


def _priced(network: Network, site: Site, messages: CallMessageCosts, shares: _Shares) -> Network:
    """Give links the part of their rate that NCCL reaches, and the ends of each way the latency of its hop.

    A hop has what software takes for a message, as in the closed form: the network's overhead would count twice.
    """
    inside, between, crossing, ends = _kinds(network, is_pcie=site.pcie)
    bandwidth, latency = network.bandwidth.copy(), np.where(inside, 0.0, network.latency)
    bandwidth[between] *= shares.inside
    latency[between] = ends[between] * messages.inside / 2
    if site.setting.n_nodes > 1 or not site.p2p:
        # A port may be faster than the way to it: its NIC has what NCCL takes it to have, as in the closed form.
        bandwidth[crossing] = np.minimum(bandwidth[crossing], site.nics / site.n_nics) * shares.outside
        # From a GPU by its NIC to another: over PCIe alone the GPUs' links have a part of it already.
        latency[crossing] = max(0.0, messages.between - (messages.inside if site.pcie else 0.0)) / 2
        latency[~inside & ~crossing] = 0.0
    none = np.zeros(network.n_nodes)
    return with_rates(network, bandwidth=bandwidth, latency=latency, overhead=none, recv_overhead=none)


def _kinds(network: Network, *, is_pcie: bool) -> tuple[NDArray[Any], ...]:
    """Describe which links are inside machines, between GPUs, and cross from a machine; and how many ends are GPUs."""
    unit = units(network)
    inside = unit[network.src] == unit[network.dst]
    gpu = network.kind == GPU
    ends = gpu[network.src].astype(np.int64) + gpu[network.dst]
    nvlink = inside & (network.metric == NVLINK_METRIC)
    between = nvlink if not is_pcie else inside & ~nvlink
    crossing = ~inside & ((network.machine[network.src] >= 0) | (network.machine[network.dst] >= 0))
    return inside, between, crossing, ends


def _reference(network: Network) -> Network:
    """Return the machines with nothing in the way but links of a GPU to a switch, and of NICs to the network."""
    inside, nvlink, crossing, ends = _kinds(network, is_pcie=False)
    ports = crossing | (nvlink & (ends == 1)) | (inside & ~nvlink & (ends == 1) & ~_has_nvlink(network, nvlink))
    bandwidth = np.full(network.n_links, ENDLESS)
    kinds = np.stack((network.kind[network.src], network.kind[network.dst], network.metric), axis=1)[ports]
    _, of_kind = np.unique(kinds, axis=0, return_inverse=True)
    fastest = np.zeros(int(of_kind.max(initial=-1)) + 1)
    np.maximum.at(fastest, of_kind.ravel(), network.bandwidth[ports])
    bandwidth[ports] = fastest[of_kind.ravel()]
    return with_rates(network, bandwidth=bandwidth)


def _has_nvlink(network: Network, nvlink: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether a GPU at an end of each link has NVLinks, so that its other link is its way to the NIC only."""
    has = np.zeros(network.n_nodes, np.bool_)
    has[network.src[nvlink]] = has[network.dst[nvlink]] = True
    return has[network.src] | has[network.dst]
