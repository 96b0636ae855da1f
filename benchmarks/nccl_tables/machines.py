"""Measured NCCL tables: reads a folder of them, and tells by its words which machine a table is from.

The folder has an ``index.csv`` (machine, hosts, GPUs and NICs of a host, fabric, version, forced algorithm) and a CSV
per table with ``size_bytes, time_us, algbw_GBps, busbw_GBps``. :attr:`Table.assumed` lists what the words do not say
and what was taken instead.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.nccl_tables.host_pace import FITTED_ON, host_pace
from benchmarks.nccl_tables.releases import LOGGED, newest_by
from collectives.nccl.call import NEWEST, OLDEST
from commsim.core.errors import InputError
from commsim.core.operations import operation as operation_of
from commsim.nccl.channel_search import (
    CHANNEL_GBS,
    REPORTED_LATENCY,
    doubled,
    nvls_channels,
    nvls_inter,
    packed_channels,
    tree_intra,
)
from commsim.nccl.gpu_costs import GpuCosts
from commsim.nccl.nccl_setting import Channels, NcclSetting
from commsim.nccl.site import NEWEST_PLUGIN, Site, as_plugin_sets, efa_of

SMALLEST = 1024
# What is assumed of a table without a version; its interval is one over releases.
NO_VERSION = "the newest NCCL of its day"
# GPUs by what a machine is called, the first that matches: generation, and whether PCIe is all that joins them.
GPUS = (
    (r"rtx pro 6000|rtx 6000d|g7e", "blackwell", True), (r"\bg?b[23]00|hgxb|blackwell", "blackwell", False),
    (r"l40s?\b", "ampere", True), (r"g?h[12]00|\bp5\b|a3-", "hopper", False), (r"a100|p4de?\b", "ampere", False),
    (r"v100|p3dn", "volta", False), (r"\bt4\b|g4dn", "volta", True),
)  # fmt: skip
NOT_NVIDIA = r"mi\d{3}|amd instinct"
# Of a GPU's NVLinks together, in GB/s: links x what NCCL's topology gives one (src/graph/topo.h).
NVLINK_GBS = {"volta": 6 * 20.0, "ampere": 12 * 20.0, "hopper": 18 * 20.6, "blackwell": 18 * 40.1}
PCIE_GBS = {"PCIe3": 12.0, "PCIe4": 24.0, "PCIe5": 48.0}
# NICs in GB/s where the words give none: what the generation's machines have.
USUAL_NIC_GBPS = {"volta": 100.0, "ampere": 200.0, "hopper": 400.0, "blackwell": 400.0}
NETWORKS = (
    ("fastrak", "tcpxo"), ("tcpxo", "tcpxo"), ("tcpx", "tcpx"), ("(ena)", "ena"), ("tcp socket", "sockets"),
    ("efa", "efa"),
    ("slingshot", "slingshot-2025"), ("roce", "roce"), ("infiniband", "infiniband"), ("rdma", "roce"),
)  # fmt: skip
TRAYS_OF_A_RACK = 18
# NICs of a host and Gb/s of each where the index does not say it and the operator does: CoreWeave's A100 hosts have
# ibp0 to ibp3 and 800 Gb/s together, 1.6 Tb/s "effective with SHARP" (its job files of 2022 and 2023, and its pages).
SAID_BY_OPERATOR = ((r"coreweave.*a100", 4, 200.0),)
OPERATIONS = {"alltoall": "all_to_all", "sendrecv": "send_recv"}


@dataclass(frozen=True, slots=True)
class Table:
    """One measured table.

    Parameters
    ----------
    id, operation, algorithm, protocol : str
        Of the index; algorithm and protocol where they were forced.
    site : Site or None
        Where it was measured; None if the machine is not known.
    healthy, is_known : bool
        As the index says; whether version and NICs are given.
    rows : tuple of (int, float)
        Bytes and seconds, from 1 KiB.
    system : str
        Tables of one system share it.
    assumed : tuple of str
        What the index does not say.
    why_not : str
        Why `site` is None.
    trusted_from : int, bytes
        Size below which the index says that something else was measured, such as the waiting for other ranks.
    host_pace : float, s
        Time that the slowest host takes for a call, where that was measured (:mod:`benchmarks.nccl_tables.host_pace`).
    """

    id: str
    operation: str
    algorithm: str
    protocol: str
    site: Site | None
    healthy: bool
    is_known: bool
    rows: tuple[tuple[int, float], ...]
    system: str
    assumed: tuple[str, ...] = ()
    why_not: str = ""
    trusted_from: int = 0
    host_pace: float = 0.0

    def is_fitted(self, known: GpuCosts) -> bool:
        """Whether a constant was fitted on it."""
        return self.id in (*known.fitted_on, *FITTED_ON)

    def shown(self, seconds: float) -> float:
        """Return the time that the table shows of a call that takes so long."""
        return max(seconds, self.host_pace)


def read_tables(folder: Path) -> tuple[Table, ...]:
    """Read all tables of NCCL; those of MPI are left out.

    Raises
    ------
    InputError
        If the folder has no ``index.csv``, or a table is missing.
    """
    if not (folder / "index.csv").is_file():
        raise InputError(f"{folder} has no index.csv; give --data a folder with one and a CSV for each of its ids")
    with (folder / "index.csv").open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    notes = {line["id"]: line["notes"] for line in lines}
    tables = []
    for line in lines:
        if "not NCCL" in line["nccl_version"] or line["forced_algo"].startswith("MPI"):
            continue
        line |= LOGGED.get(line["id"], {})
        line["notes"] += f"; aws-ofi-nccl {line['plugin']}" if "plugin" in line else ""
        if same := re.match(r"as case (\w+)", line["notes"]):  # the rest of the notes stands with that table
            line["notes"] += "; " + notes.get(f"{line['id'].rsplit('_', 1)[0]}_c{same[1]}", "")
        tables.append(_table(folder, line))
    return tuple(tables)


def _table(folder: Path, line: dict[str, str]) -> Table:
    n = int(line["n_hosts"]) * int(line["gpus_per_host"])
    operation = OPERATIONS.get(line["operation"], line["operation"])
    path = folder / f"{line['id']}.csv"
    if not path.is_file():
        raise InputError(f"{path} is missing; index.csv lists {line['id']}")
    with path.open(newline="", encoding="utf-8") as file:
        rows = [_row(cells, operation, n) for cells in csv.DictReader(file)]
    assumed: list[str] = []
    site, why_not = None, ""
    try:
        site = site_of(line, assumed)
    except InputError as error:
        why_not = str(error)
    version, single = _version(line["nccl_version"]), int(line["n_hosts"]) == 1
    nics = single or "mnnvl" in line["fabric"].lower() or bool(line["nics_per_host"] and line["nic_Gbps"])
    algorithm = {"ring": "ring", "tree": "tree", "nvls": "nvls", "nvlstree": "nvls_tree"}.get(
        line["forced_algo"].lower(), ""
    )
    if line["forced_algo"] == "best forced arm":  # without NVLink SHARP; the source names the ring at one size
        algorithm = "ring"
        assumed.append("a ring")
    trusted = re.search(r"use sizes from (\d+) MB", line["notes"])
    return Table(
        line["id"], operation, algorithm, line["forced_proto"].lower(), site, line["healthy"] == "yes",
        version is not None and nics, tuple((size, time) for size, time in rows if size >= SMALLEST),
        line["source"].split(":")[0], tuple(assumed), why_not, int(trusted[1]) * 10**6 if trusted else 0,
        host_pace(line["notes"], operation, site.setting.gpu) if site else 0.0,
    )  # fmt: skip


def _row(cells: dict[str, str], operation: str, n: int) -> tuple[int, float]:
    """Read a size and its time; where the source has no time, bus bandwidth gives it."""
    size = int(float(cells["size_bytes"]))
    if cells["time_us"]:
        return size, float(cells["time_us"]) * 1e-6
    return size, size * operation_of(operation).busbw_factor(n) / (float(cells["busbw_GBps"]) * 1e9)


def _version(text: str) -> tuple[int, ...] | None:
    found = re.match(r"2\.\d+(\.\d+)?", text)
    return tuple(int(part) for part in found[0].split(".")) if found else None


def site_of(line: dict[str, str], assumed: list[str]) -> Site:
    """Tell from a line of the index where its table was measured.

    Raises
    ------
    InputError
        If the machine's GPU is not known, or not NVIDIA's.
    """
    words = f"{line['machine']} {line['fabric']}".lower()
    if re.search(NOT_NVIDIA, words):
        raise InputError(f"{line['machine']}: RCCL, see that section")
    gpu, is_pcie = next(((name, pcie) for pattern, name, pcie in GPUS if re.search(pattern, words)), ("", False))
    if not gpu:
        raise InputError(f"{line['machine']}: its GPU is not known")
    version = _version(line["nccl_version"])
    if version is None:
        assumed.append(NO_VERSION)
        version = newest_by(line["date"])
    hosts, per_host = int(line["n_hosts"]), int(line["gpus_per_host"])
    n_nodes = hosts
    if "mnnvl" in words:
        n_nodes = 1
    elif "between racks" in words:
        n_nodes = -(-hosts // TRAYS_OF_A_RACK)
    link, is_pcie = _link(line, words, gpu, is_pcie)
    nic, n_nics = _nics(line, gpu, hosts // n_nodes, assumed) if n_nodes > 1 else (0.0, 0)
    network = _network(words, gpu) if n_nodes > 1 or "p2p_disable" in line["notes"].lower() else ""
    if network and not nic:
        nic, n_nics = _nics(line, gpu, 1, assumed)
    setting = _setting(
        hosts * per_host, n_nodes, gpu, is_pcie, link, nic, n_nics, words + line["notes"].lower(), network, version
    )
    if re.search(
        "collnet|sharp sample", f"{line['fabric']} {line['forced_algo']}".lower()
    ):  # the fabric reduces, and the plugin for it was on
        ring, here = setting.channels["ring"], hosts * per_host // n_nodes
        inner = replace(ring, intra=tree_intra(gpu, ring.n, ring.intra, link, here))
        setting = replace(setting, collnet=True, channels=setting.channels | {"collnet": inner})
    major, minor = version[:2]
    setting = replace(setting, version=max(min((major, minor), NEWEST), OLDEST))
    least = re.search(r"min (\d+) channels", line["notes"])
    return Site(
        setting, link, is_pcie, nic * n_nics, network, version, int(least[1]) if least else 0,
        "p2p_disable" not in line["notes"].lower(), max(1, n_nics), "kernel time" in line["notes"],
    )  # fmt: skip


def _link(line: dict[str, str], words: str, gpu: str, is_pcie: bool) -> tuple[float, bool]:
    """Return the rate of a GPU's links inside the machine, and whether they are PCIe."""
    found = re.search(r"nvlink\d x(\d+)", words)
    if found:  # so many links to each peer, without a switch
        return int(found[1]) * 20e9, False
    pcie = next((gbs for name, gbs in PCIE_GBS.items() if name.lower() in words), 24.0 if gpu == "ampere" else 48.0)
    is_bridge = "nvlink bridge in pairs" in words and int(line["gpus_per_host"]) > 2
    if is_pcie or is_bridge:
        return pcie * 1e9, True
    return NVLINK_GBS[gpu] * 1e9, False


def _nics(line: dict[str, str], gpu: str, hosts_of_a_node: int, assumed: list[str]) -> tuple[float, int]:
    """Return the rate of a NIC, and how many a node has; four NICs of a GPU that the plugin joins are one."""
    per_host, n = int(line["gpus_per_host"]), int(line["nics_per_host"] or 0)
    rate = float(line["nic_Gbps"] or 0.0)
    for words, n_said, rate_said in SAID_BY_OPERATOR:
        if not n and not rate and re.search(words, line["machine"].lower()):
            n, rate = n_said, rate_said
            assumed.append(f"{n} NICs of {rate:g} Gb/s, as the operator says elsewhere")
    if not n and not rate and (found := re.search(r"\b(\d+)x(\d+)G\b", line["fabric"])):
        n, rate = int(found[1]), float(found[2])
        assumed.append(f"{n} NICs of {rate:g} Gb/s, of which the index is not sure")
    if not n:
        n = per_host
        assumed.append(f"{n} NICs a host")
    if not rate:
        rate = USUAL_NIC_GBPS[gpu]
        assumed.append(f"NICs of {rate:g} Gb/s")
    if per_host == 1:  # one GPU uses the nearest NIC
        n = 1
    joined = n // per_host if "efa" in line["fabric"].lower() and n > per_host else 1
    return rate * joined / 8 * 1e9, n // joined * hosts_of_a_node


def _network(words: str, gpu: str) -> str:
    name = next((name for word, name in NETWORKS if word in words), "infiniband")
    if name != "efa":
        return name
    return efa_of(gpu, gpudirect=not ("no gpudirect" in words or "gpudirect off" in words))


def _setting(
    n: int, n_nodes: int, gpu: str, is_pcie: bool, link: float, nic: float, n_nics: int, words: str, network: str,
    version: tuple[int, ...],
) -> NcclSetting:  # fmt: skip
    inside, per_node = (link if n > n_nodes else float("inf")), n // n_nodes
    path = "PHB" if is_pcie else "NVL"
    # A NIC behind the CPU: on GH200 and GB200 by design (NVIDIA/nccl issue 1579), and where the plugin stages.
    behind = ("phb", "gpudirect off", "no gpudirect", "gb200")
    near = "PHB" if any(one in words for one in behind) else "PIX"
    each = per_node if near == "PIX" and n_nics >= per_node else 0
    rings = packed_channels(gpu, inside, nic if n_nodes > 1 else None, n_nics, network, each, version)
    n_rings, rate = doubled(gpu, *rings)
    reported = REPORTED_LATENCY.get(network, 0.0)
    ring = Channels(n_rings, rate, rate if n_nodes > 1 else 0.0, reported, path, near)
    tree = replace(ring, intra=tree_intra(gpu, n_rings, rate, inside, per_node)) if n_nodes == 2 else ring
    channels = {"ring": ring, "tree": tree}
    has_switch = re.search(r"nvswitch|dgx|hgx|nvl72|sxm|\bp5\b|a3-", words) and "no nvswitch" not in words
    if gpu in ("hopper", "blackwell") and has_switch and not is_pcie and per_node > 1 and "nvls_enable=0" not in words:
        heads, pace = nvls_channels(gpu, min(per_node, 32), link)
        fastest = next((gbs * 1e9 for gbs in CHANNEL_GBS[gpu] if gbs * 1e9 <= link), 0.0)
        if heads > 1:
            outside = nvls_inter(gpu, heads, pace, nic, n_nics) if n_nodes > 1 else fastest
            channels["nvls"] = Channels(heads, pace, outside, reported, path, near)
    is_alone = gpu in ("hopper", "blackwell") and near == "PIX" and n_nics >= per_node > 1
    one_nic = n_nics == 1 or (n_nodes > 1 and is_alone)
    found = NcclSetting(n, n_nodes, gpu, "intel", channels, one_nic_tree=one_nic, nic=nic)
    said = re.search(r"aws-ofi-nccl (\d+)\.(\d+)", words)
    return as_plugin_sets(found, network, (int(said[1]), int(said[2])) if said else NEWEST_PLUGIN)


def systems(tables: Sequence[Table]) -> tuple[str, ...]:
    """Return the systems, each once, in the order of the index."""
    return tuple(dict.fromkeys(table.system for table in tables))
