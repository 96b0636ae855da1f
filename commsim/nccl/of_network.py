"""Derive NCCL's setting from a network and a placement, and write down everything that had to be assumed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from collectives.nccl.call import MAX_HEADS, NEWEST
from commsim.core.errors import InputError
from commsim.core.machines.hardware import maker_of, read_hardware
from commsim.core.network import Network
from commsim.core.network_queries import units
from commsim.core.placement import Placement
from commsim.core.remark import Remark
from commsim.nccl.machine_links import (
    ISLANDS,
    adding_switches,
    fewest_nics,
    gpus_beside_a_nic,
    gpus_outside,
    islands_inside,
    links_inside,
    links_outside,
    ports_apart,
    ports_outside,
    through_host,
    told_islands,
)

from .channel_search import (
    CHANNEL_GBS,
    RAISED_HEADS,
    REPORTED_LATENCY,
    doubled,
    nvls_channels,
    nvls_inter,
    packed_channels,
    tree_intra,
)
from .model_versions import FIRST_RELEASE
from .nccl_setting import SINCE_HOPPER, Assumption, Channels, NcclSetting
from .site import SET_BY_PLUGIN, as_plugin_sets, efa_of
from .tuning_table import lacks_nvls_of_two

# Times the rate of a NIC from which on a cable is faster: less is a header or a rounded rate.
FASTER = 1.1
# Code of what says so.
CABLE_ABOVE = "cable-above-nic"
# NCCL's tables have a row for each of four generations, and know three vendors of CPUs.
_ROW_OF = {"turing": "volta", "ada": "ampere"}
CPU_OF = {"intel": "intel", "amd": "amd", "arm": "other", "other": "other"}


@dataclass(frozen=True, slots=True)
class NcclOptions:
    """What the user says instead of what would be derived; None: derive it.

    Parameters
    ----------
    gpu, cpu : str
        Generation and vendor.
    channels : (int, float), bytes/s
        Number and bandwidth of channels of rings and trees, after doubling.
    nvls : (int, float), bytes/s
        Number and bandwidth of channels of NVLink SHARP; (0, 0) for a machine without.
    nic : float, bytes/s
        Bandwidth that NCCL takes a NIC to have.
    path_inter : str
        Path between a GPU and its NIC.
    net_latency : float, s
        Latency of the network plugin.
    collnet : bool
        Whether the network reduces; also true where the hardware says ``sharp=on``.
    by_pattern : dict of str to Channels
        Channels of each pattern from NCCL's own dump; replaces all of the above that it has.
    version : (int, int)
        Version of NCCL.
    min_ctas, max_ctas : int
        Bounds of the channels of a call (``NCCL_MIN_CTAS``, ``NCCL_MAX_CTAS``); 0 for none.
    buffer : int, bytes
        Buffer of a connection with Simple (``NCCL_BUFFSIZE``); 0 for NCCL's own.
    socket_threads : int
        Threads of a rank that copy over sockets (``NCCL_SOCKET_NTHREADS``); 0 for NCCL's own.
    net_chunk, nvls_chunk : int, bytes
        Chunk of messages between machines (``NCCL_P2P_NET_CHUNKSIZE``), and largest chunk of NVLink SHARP
        (``NCCL_NVLS_CHUNKSIZE``); 0 for NCCL's own.
    """

    gpu: str | None = None
    cpu: str | None = None
    channels: tuple[int, float] | None = None
    nvls: tuple[int, float] | None = None
    nic: float | None = None
    path_inter: str | None = None
    net_latency: float | None = None
    collnet: bool = False
    by_pattern: dict[str, Channels] | None = None
    version: tuple[int, int] = NEWEST
    min_ctas: int = 0
    max_ctas: int = 0
    buffer: int = 0
    socket_threads: int = 0
    net_chunk: int = 0
    nvls_chunk: int = 0


def setting_of(network: Network, placement: Placement, n_ranks: int, setting: NcclOptions) -> NcclSetting:
    """Derive the setting.

    Parameters
    ----------
    network, placement
        Network and placement of the ranks.
    n_ranks : int
        Number of ranks, at least 2.
    setting : NcclOptions
        What is known better.

    Raises
    ------
    InputError
        If no channel fits, or something given is out of its range.
    """
    nodes = placement.nodes[:n_ranks]
    unit = units(network)
    machines, counts = np.unique(unit[nodes], return_counts=True)
    # All nodes have as many channels as the one that finds the fewest (init.cc: the least nChannels of all ranks).
    fewest = int(counts.min())
    assumed: list[Assumption] = []
    hardware = read_hardware(network.hardware)
    if setting.gpu is None and maker_of(network.hardware) == "amd":
        raise InputError(f"NCCL runs on NVIDIA's GPUs, {network.name} has {hardware['gpu']}; --gpu sets another")
    gpu = setting.gpu or _ROW_OF.get(hardware.get("gpu", ""), hardware.get("gpu", ""))
    if not gpu:
        gpu = next(one for one in ("hopper", "ampere") if setting.version >= FIRST_RELEASE[one])
        assumed.append(Assumption(f"GPUs are {gpu.capitalize()}", "--gpu"))
    cpu = setting.cpu or CPU_OF.get(hardware.get("cpu", ""), "")
    if not cpu:
        cpu = "intel"
        assumed.append(Assumption("CPUs are Intel's", "--cpu"))
    if counts.min() != counts.max():
        spread = f"nodes have {counts.min()} to {counts.max()}"
        assumed.append(Assumption(f"ranks must be spread evenly; {spread}, and NCCL rounds down"))
    node = int(nodes[0])
    outer = fewest_nics(network, unit, nodes)
    inside, path = links_inside(network, unit, nodes)
    outside, n_nics, near, is_own = links_outside(network, unit, outer, as_read=True)
    ports = ports_apart(network, setting.version)
    outside, n_nics = outside / ports, n_nics * ports
    if setting.nic is not None:
        outside = setting.nic
    elif len(machines) > 1:
        by_gpus = gpus_outside(network, unit, outer) / ports
        outside, is_own = min(outside, by_gpus), is_own or by_gpus < outside
        whose = "machine's NIC and PCIe links" if is_own else "network"
        assumed.append(Assumption(f"NCCL takes a NIC to have the {outside / 1e9:.4g} GB/s of the {whose}", "--nic"))
        assumed += _cable_above(ports_outside(network, unit == unit[node])[1] / ports, outside)
    many, net = len(machines) > 1, hardware.get("net", "")
    if many and (net in ("ena", "sockets") or hardware.get("gpudirect") == "no"):
        near, staged = "PHB", through_host(network, unit, node, near)
        if staged < outside:
            outside = staged
            assumed.append(Assumption(f"bytes go through the host's memory, {outside / 1e9:.4g} GB/s for a NIC"))
    name = efa_of(gpu, hardware.get("gpudirect") != "no") if net == "efa" else net
    if setting.net_latency is None and many and setting.by_pattern is None:
        reported = REPORTED_LATENCY.get(name, 0.0)
        setting = replace(setting, net_latency=reported)
        does = f"reports a latency of {reported * 1e6:.4g} us" if reported else "adds no latency"
        assumed.append(Assumption(f"the network plugin {does}", "--net-latency"))
    if name in SET_BY_PLUGIN:
        assumed.append(Assumption("aws-ofi-nccl of 1.16 or later sets buffers of 8 MiB, chunks of 512 KiB", "--buffer"))
    channels = _channels(gpu, inside, path, outside, n_nics, many, net, setting, near, fewest, assumed)
    if many and setting.channels is None and setting.by_pattern is None:
        ring = channels["ring"]
        channels["tree"] = replace(ring, intra=tree_intra(gpu, ring.n, ring.intra, inside, fewest))
    beside = nodes[unit[nodes] == unit[node]]
    if lines := told_islands(network, islands_inside(network, unit, beside)):
        assumed.append(Assumption(lines, code=ISLANDS))
    adds = adding_switches(network, unit, beside).size > 0 and gpu in SINCE_HOPPER and fewest > 1
    adds = adds and not lacks_nvls_of_two(setting.version, fewest)
    if setting.nvls is not None or (adds and "nvls" not in channels):
        n, rate = setting.nvls or nvls_channels(gpu, min(fewest, MAX_HEADS), inside, n_nics if many else 0)
        fastest = next((gbs * 1e9 for gbs in CHANNEL_GBS[gpu] if gbs * 1e9 <= inside), 0.0)
        channels["nvls"] = _with(channels["ring"], n, rate, fastest, len(machines) > 1)
        if many and setting.nvls is None and setting.channels is None and setting.by_pattern is None:
            between = nvls_inter(gpu, n, rate, outside, n_nics)
            channels["nvls"] = replace(channels["nvls"], inter=between or channels["nvls"].inter)
        if setting.nvls is None:
            of = "GPU" if n >= fewest or n == MAX_HEADS else "NIC"
            heads = f"{n} channels of {rate / 1e9:.4g} GB/s, one for each {of}"
            assumed.append(Assumption(f"NVLink SHARP has {heads}", "--nvls"))
    collnet = setting.collnet or (many and hardware.get("sharp") == "on")
    if collnet and "collnet" not in channels:
        ring = channels["ring"]
        channels["collnet"] = replace(ring, intra=tree_intra(gpu, ring.n, ring.intra, inside, fewest))
        assumed.append(Assumption("CollNet has as many channels as the ring, inside a node those of trees"))
    # A tree wants two GPUs near each NIC, and since Hopper takes one if no second is (search.cc, ncclTopoCompute). In a
    # rack two GPUs share a CPU, behind which their NICs are.
    is_alone = many and gpu in SINCE_HOPPER and fewest <= RAISED_HEADS
    is_alone = is_alone and gpus_beside_a_nic(network, unit, node) == 1
    one_nic = n_nics == 1 or bool(is_alone)
    found = NcclSetting(n_ranks, len(machines), gpu, cpu, channels, collnet, one_nic, tuple(assumed), setting.version,
                    setting.min_ctas, setting.max_ctas, setting.buffer, setting.socket_threads, setting.net_chunk,
                    setting.nvls_chunk, outside if many else 0.0)  # fmt: skip
    return as_plugin_sets(found, name)


def shown_by_network(setting: NcclSetting) -> list[Remark]:
    """Return remarks on what the network itself shows, beside its cables: those with an unknown effect are needed."""
    found = (one for one in setting.assumed if one.code not in ("", CABLE_ABOVE))
    return [Remark(one.code, one.what, one.effect, needed=one.effect is None) for one in found]


def shown_by_cables(setting: NcclSetting) -> list[Remark]:
    """Say that cables are faster than NICs, with the most that this takes of a time; a plan knows what limits it."""
    return [Remark(one.code, one.what, one.effect) for one in setting.assumed if one.code == CABLE_ABOVE]


def _cable_above(cable: float, nic: float) -> list[Assumption]:
    """Say that cables are faster than what the machines put on them, with the most that this takes of a time."""
    if cable <= FASTER * nic:
        return []
    rates = f"cables carry {cable / 1e9:.4g} GB/s, the machines' NICs or PCIe links {nic / 1e9:.4g}"
    return [Assumption(f"{rates}: a higher bandwidth changes nothing", code=CABLE_ABOVE, effect=1 - nic / cable)]


def _channels(
    gpu: str,
    inside: float,
    path: str,
    outside: float,
    n_nics: int,
    many: bool,
    net: str,
    setting: NcclOptions,
    near: str,
    n_gpus: int,
    assumed: list[Assumption],
) -> dict[str, Channels]:
    """Return channels of rings and trees: as NCCL dumped them, as the user says, or packed."""
    rates = dict(setting.by_pattern or {})
    if "ring" in rates:
        rates.setdefault("tree", rates["ring"])
        return rates
    if setting.channels is not None:
        n, rate = setting.channels
    else:
        each = n_gpus if many and near == "PIX" and n_nics >= n_gpus else 0
        n, rate = doubled(
            gpu, *packed_channels(gpu, inside, outside if many else None, n_nics, net, each, setting.version)
        )
        links = f"{inside / 1e9:.4g} GB/s inside a node" if inside != float("inf") else "one GPU per node"
        beside = f" and {n_nics} NICs of {outside / 1e9:.4g} GB/s" if many else ""
        most = f"what carries the most within {links}{beside}"
        packed = f"rings and trees have {n} channels of {rate / 1e9:.4g} GB/s: {most}"
        assumed.append(Assumption(packed, "--channels, or --graph with NCCL's own"))
    reach = setting.path_inter or near
    if many and setting.path_inter is None:
        shown = "" if n_nics else " (the network does not show it)"
        assumed.append(Assumption(f"a GPU reaches its NIC by {near}{shown}"))
    channels = Channels(n, rate, rate if many else 0.0, setting.net_latency or 0.0, path, reach if many else "PIX")
    return {"ring": channels, "tree": channels} | rates


def _with(ring: Channels, n: int, rate: float, fastest: float, many: bool) -> Channels:
    """Channels of another pattern over the same NICs; without any the search raises the rate to the fastest."""
    outside = (ring.n * ring.inter / n if n else 0.0) if many else fastest
    return Channels(n, rate, outside, ring.latency, ring.path_intra, ring.path_inter, ring.same)
