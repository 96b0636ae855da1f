"""The links of a machine as NCCL sees them: rates of GPUs and NICs, and how they reach each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.machines.hardware import read_hardware, transport_of
from commsim.core.machines.local_nics import near_nics
from commsim.core.machines.parts import NVLINK_METRIC
from commsim.core.network import CPU, GPU, NIC, SWITCH, Network
from commsim.core.network_queries import live_nics
from topologies.sold_rates import sold_rate

if TYPE_CHECKING:
    from .nccl_setting import NcclSetting

# Code of what says that NVLinks do not join all GPUs.
ISLANDS = "nvlink-islands"
# Since this release NCCL's own transport takes the ports of a NIC for one ("port fusion": src/transport/net_ib.cc, now
# in src/graph/topo.cc, NCCL_NET_MERGE_LEVEL=PORT).
PORTS_JOINED = (2, 20)


def links_inside(network: Network, unit: NDArray[np.int64], ranks: NDArray[np.integer[Any]]) -> tuple[float, str]:
    """Rate of a GPU's links to the other GPUs that are used of its machine, and the kind of path.

    Direct links to GPUs without a rank carry nothing, so that two of four GPUs in a mesh have a third of the links.
    """
    node = int(ranks[0])
    beside = ranks[unit[ranks] == unit[node]]
    within = (network.src == node) & (unit[network.dst] == unit[node])
    if len(beside) == 1:
        return float("inf"), "NVL"
    nvlinks = within & (network.metric == NVLINK_METRIC)
    useful = nvlinks & ((network.kind[network.dst] == SWITCH) | np.isin(network.dst, beside))
    if useful.any() and len(islands_inside(network, unit, beside)) == 1:
        return float(network.bandwidth[useful].sum()), "NVL"
    if not (within & ~nvlinks).any():
        raise InputError(f"{network.name}: ranks share a machine whose inside has no links between GPUs")
    return float(network.bandwidth[within & ~nvlinks].max()), "PHB"


def islands_inside(
    network: Network, unit: NDArray[np.int64], gpus: NDArray[np.integer[Any]]
) -> list[NDArray[np.integer[Any]]]:
    """Split GPUs of one machine into those that NVLinks join, by a switch or through each other.

    Parameters
    ----------
    network : Network
        Network with the machine.
    unit : int64[n_nodes]
        Machine of each node.
    gpus : int[n]
        GPUs of one machine that are used; the others carry nothing.
    """
    usable = np.isin(np.arange(network.n_nodes), gpus) | (network.kind == SWITCH)
    links = (network.metric == NVLINK_METRIC) & usable[network.src] & usable[network.dst]
    links &= unit[network.src] == unit[gpus[0]]
    src, dst = network.src[links], network.dst[links]
    island = np.full(network.n_nodes, -1)
    for gpu in gpus:
        if island[gpu] < 0:
            reached = np.zeros(network.n_nodes, np.bool_)
            reached[gpu] = True
            for _ in range(len(gpus) + 1):  # as many steps as a chain of them with a switch has
                reached[dst[reached[src]]] = True
            island[reached & (island < 0)] = gpu
    return [gpus[island[gpus] == first] for first in dict.fromkeys(island[gpus].tolist())]


def told_islands(network: Network, islands: Sequence[NDArray[np.integer[Any]]]) -> str:
    """Name the GPUs that no NVLink joins to the others; empty where all or none are joined."""
    if len(islands) == 1 or all(len(gpus) == 1 for gpus in islands):
        return ""
    alone = [network.nodes[gpus[0]] for gpus in islands if len(gpus) == 1]
    sets = [gpus for gpus in islands if len(gpus) > 1]
    lines = [f"no NVLink joins {', '.join(alone)} to other GPUs"] * bool(alone)
    lines += [f"NVLinks join only {'; '.join(_row(network, gpus) for gpus in sets)}"] * (len(sets) > 1)
    return ", and ".join(lines)


def has_islands(setting: NcclSetting) -> bool:
    """Whether GPUs are off NVLink, whose bytes NCCL may copy through the host: no public table is of such a machine."""
    return any(assumption.code == ISLANDS for assumption in setting.assumed)


def _row(network: Network, gpus: NDArray[np.integer[Any]]) -> str:
    names = [network.nodes[gpu] for gpu in gpus]
    is_run = len(gpus) > 2 and bool((np.diff(gpus) == 1).all())
    return f"{names[0]} to {names[-1]}" if is_run else ", ".join(names)


def fewest_nics(
    network: Network, unit: NDArray[np.int64], nodes: NDArray[np.integer[Any]]
) -> NDArray[np.integer[Any]]:  # fmt: skip
    """Return the GPUs of the machine that has the fewest live NICs near them: NCCL takes the fewest channels of any.

    Parameters
    ----------
    network : Network
        Network with the machines.
    unit : int64[n_nodes]
        Machine of each node.
    nodes : int[n]
        GPUs, at least one.

    References
    ----------
    NCCL 2.30.7, ``src/init.cc`` (initTransportsRank: the least of all ranks' graphs).
    """
    live, n_units = live_nics(network), int(unit.max()) + 1
    joined, used = (np.bincount(unit[each], minlength=n_units) for each in (live, nodes))
    machines = unit[nodes]
    # Machines with as many live NICs and GPUs are alike; the first of each kind stands for them.
    _, first = np.unique(np.stack((joined[machines], used[machines])), axis=1, return_index=True)
    kinds = [np.asarray(nodes[machines == machines[i]]) for i in np.sort(first)]
    if len(kinds) == 1:
        return kinds[0]
    return min(kinds, key=lambda gpus: np.isin(near_nics(network, gpus), live).sum() or joined[unit[gpus[0]]])


def links_outside(
    network: Network, unit: NDArray[np.int64], gpus: NDArray[np.integer[Any]], *, as_read: bool = False
) -> tuple[float, int, str, bool]:  # fmt: skip
    """Rate and number of the NICs near GPUs, how they reach one, and whether the NICs' own links are the limit.

    Where GPUs have ports to the network themselves, each is a NIC beside its GPU.

    Parameters
    ----------
    network : Network
        Network with the machine.
    unit : int64[n_nodes]
        Machine of each node.
    gpus : int[n]
        GPUs of the machine that are used.
    as_read : bool
        Whether ports have the rate that NCCL reads (:func:`port_rate`) in place of the one that they deliver.
    """
    node = int(gpus[0])
    in_unit = unit == unit[node]
    ports, rate = ports_outside(network, in_unit)
    if not ports.size:
        return 0.0, 0, "PIX", False
    rate = port_rate(rate) if as_read else rate
    if network.kind[node] != GPU or not (in_unit & (network.kind == NIC)).any():
        return rate, len(ports), "PIX", False
    nics = in_unit & (network.kind == NIC)
    plugs = in_unit[network.src] & nics[network.dst]  # the PCIe links of the NICs, which may be slower than their ports
    beside = network.dst[(network.src == node) & in_unit[network.dst]]
    shared = network.dst[np.isin(network.src, beside[network.kind[beside] == SWITCH])]
    near = "PIX" if nics[shared].any() else ("PHB" if (network.kind[in_unit] == CPU).any() else "PXB")
    own = float(network.bandwidth[plugs].min(initial=rate))
    own = port_rate(own) if as_read else own  # a NIC delivers to its machine what its port does
    live = np.isin(ports, near_nics(network, gpus)).sum()  # those that have lost their cable carry nothing
    return min(rate, own), int(live or nics.sum()), near, own < rate


def ports_outside(network: Network, in_unit: NDArray[np.bool_]) -> tuple[NDArray[np.integer[Any]], float]:
    """Nodes of a machine that have cables to others, and the rate of most of these, bytes/s; 0 without any.

    One slow cable does not change what NCCL takes the others for; it slows down the messages that cross it.
    """
    leaving = in_unit[network.src] & ~in_unit[network.dst]
    ports = np.unique(network.src[leaving])
    rate = np.bincount(network.src[leaving], network.bandwidth[leaving], minlength=network.n_nodes)[ports]
    return ports, float(np.sort(rate)[rate.size // 2]) if ports.size else 0.0


def ports_apart(network: Network, version: tuple[int, ...]) -> int:
    """Return how many NICs a release of NCCL takes each NIC of a machine for: its ports (``nic_ports=``), or one."""
    joins = version >= PORTS_JOINED and transport_of(network.hardware) in ("infiniband", "roce")
    return 1 if joins else int(read_hardware(network.hardware).get("nic_ports", 1))


def port_rate(rate: float) -> float:
    """Return the rate that a port of so many bytes/s is sold with, which NCCL reads of it; `rate` if it is none.

    References
    ----------
    NCCL 2.30.7, ``src/graph/topo.cc`` (ncclTopoAddNet): the speed that the driver says, headers and all.
    """
    return sold_rate(rate)


def gpus_outside(network: Network, unit: NDArray[np.int64], gpus: NDArray[np.integer[Any]]) -> float:
    """Rate of the GPUs' own links to the NICs near them, for each NIC: what no faster NIC can raise.

    A NIC whose PCIe switch has such GPUs is fed by these; others by all of them. Infinite where GPUs have ports.

    Parameters
    ----------
    network : Network
        Network with the machine.
    unit : int64[n_nodes]
        Machine of each node.
    gpus : int[n]
        GPUs of the machine that are used.
    """
    kind = network.kind
    own = _own_links(network, unit, np.isin(np.arange(network.n_nodes), gpus) & (kind == GPU))
    nics = near_nics(network, gpus) if own.any() else gpus[:0]
    if not nics.size:
        return float("inf")
    in_unit = unit == unit[gpus[0]]
    at_hub = np.bincount(network.dst[own], network.bandwidth[own], minlength=network.n_nodes)
    plugs = np.isin(network.src, nics) & in_unit[network.dst] & (kind[network.dst] == SWITCH)
    hubs = network.dst[plugs]
    beside = at_hub[hubs] / np.maximum(np.bincount(hubs, minlength=network.n_nodes)[hubs], 1)
    every = float(network.bandwidth[own].sum()) / nics.size
    return min(every, float(beside[beside > 0].min(initial=every)))


def _own_links(network: Network, unit: NDArray[np.int64], gpus: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Mark the links from some GPUs, bool[n_nodes], into their machines that are no NVLinks."""
    inside = unit[network.src] == unit[network.dst]
    return np.asarray(gpus[network.src] & inside & (network.metric != NVLINK_METRIC))


def gpus_beside_a_nic(network: Network, unit: NDArray[np.int64], node: int) -> int:
    """Return the number of GPUs on the PCIe switches that join a GPU to a NIC; 0 where none does.

    A GPU with a port of its own has a NIC that no other GPU is near, as :func:`links_outside` takes it.
    """
    in_unit, kind = unit == unit[node], network.kind
    if not (in_unit & (kind == NIC)).any() and (~in_unit[network.dst[network.src == node]]).any():
        return 1
    hubs = network.dst[_own_links(network, unit, np.arange(network.n_nodes) == node)]
    hubs = hubs[kind[hubs] == SWITCH]
    beside = np.unique(network.dst[np.isin(network.src, hubs) & in_unit[network.dst]])
    return int((kind[beside] == GPU).sum()) if (kind[beside] == NIC).any() else 0


def through_host(network: Network, unit: NDArray[np.int64], node: int, near: str) -> float:
    """Rate that the way between a GPU and its NIC carries where all bytes go through the host's memory.

    Below one PCIe switch what is sent and what is received both go up to the CPU and down again, so that NICs have half
    of the switch's link to the CPU together; else a GPU's own link is the bound. Infinite where no CPU is described.

    Parameters
    ----------
    network : Network
        Network with the machine.
    unit : int64[n_nodes]
        Machine of each node.
    node : int
        A GPU.
    near : str
        How it reaches a NIC: ``PIX`` below one switch.
    """
    in_unit, kind = unit == unit[node], network.kind
    own = _own_links(network, unit, np.arange(network.n_nodes) == node)
    if not (in_unit & (kind == CPU)).any() or not own.any():
        return float("inf")
    rate = float(network.bandwidth[own].max())
    if near != "PIX":
        return rate
    hub = int(network.dst[own][np.argmax(network.bandwidth[own])])
    up = (network.src == hub) & in_unit[network.dst] & np.isin(kind[network.dst], (CPU, SWITCH))
    n_nics = int(((network.src == hub) & in_unit[network.dst] & (kind[network.dst] == NIC)).sum())
    return min(rate, float(network.bandwidth[up].max(initial=0.0)) / (2 * max(1, n_nics)) or rate)


def adding_switches(
    network: Network, unit: NDArray[np.int64], gpus: NDArray[np.integer[Any]]
) -> NDArray[np.integer[Any]]:
    """Switches inside a machine that can reduce and that each of these GPUs has NVLinks to."""
    inside = (unit == unit[gpus[0]]) & (network.machine >= 0) & network.aggregates & (network.kind == SWITCH)
    links = inside[network.dst] & np.isin(network.src, gpus) & (network.metric == NVLINK_METRIC)
    n_gpus = np.bincount(np.unique(network.src[links] * network.n_nodes + network.dst[links]) % network.n_nodes,
                         minlength=network.n_nodes)  # fmt: skip
    return np.flatnonzero(n_gpus == len(np.unique(gpus)))
