"""What a kernel of expert parallelism takes: launch, work of its SMs, and the links, of the busiest rank."""

from __future__ import annotations

import dataclasses
import functools
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from commsim.core.errors import InputError
from commsim.core.machines.hardware import read_hardware
from commsim.core.network import GPU, Network
from commsim.core.network_queries import fabric_switches

PATH = Path(__file__).parent / "costs.toml"
# Whose constants are taken where a GPU has none of a kernel.
NEXT = {"gb200": ("gb200", "b200", "h100"), "b200": ("b200", "gb200", "h100"), "h200": ("h200", "h100", "b200"),
        "h100": ("h100", "h200", "b200")}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ExpertKernel:
    """Constants of one kernel on one GPU; what a kernel does not have costs nothing.

    Parameters
    ----------
    launch : float, s
        Time of a call without tokens: launch, counts of tokens, and waiting for the others.
    group : float, s
        Time of each further expert that an SM has to look after, in low-latency kernels.
    message : float, s
        Time of each expert in another machine, which is told how many tokens come, in low-latency kernels.
    peer : float, s
        Time of each other rank that a token goes to in the mean.
    local, local_rate : float, s and bytes/s
        Time of each local access, after another: a dispatch reads each token, a combine adds what each of its experts
        made, a preparation counts each of its experts; and the rate at which it does.
    read, read_rate : float, s and bytes/s
        Time of an SM for each token that it reads and casts, and the rate at which it does.
    copy, copy_rate : float, s and bytes/s
        Time of an SM for each copy that it moves, and the rate at which it does.
    between : float
        Factor of the time of copies where ranks are in several machines: sums are made twice there.
    post : float, s
        Time of each copy to another rank beside its bytes, one after the other.
    pair, pair_rate : float, s and bytes/s
        Time of each copy between one pair of ranks, whose channel is one, and its rate.
    fill, fill_after : float, s
        Time until the pipeline of a call is full, if it has work for so long; with less work the share of it.
    nvlink, network : float
        Share of the rate of NVLinks, and of the links to other machines, that is reached.
    sms : int
        SMs of the kernel where the user gives none; in low-latency kernels those of the GPU.
    fitted : str
        How many rows of which source the constants were fitted on.
    tables : tuple of str
        Tables of these rows, as the file of the constants names them.
    """

    launch: float
    group: float = 0.0
    message: float = 0.0
    peer: float = 0.0
    local: float = 0.0
    local_rate: float = math.inf
    read: float = 0.0
    read_rate: float = math.inf
    copy: float = 0.0
    copy_rate: float = math.inf
    between: float = 1.0
    post: float = 0.0
    pair: float = 0.0
    pair_rate: float = math.inf
    fill: float = 0.0
    fill_after: float = 1e-6
    nvlink: float = 1.0
    network: float = 1.0
    sms: int = 1
    fitted: str = ""
    tables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExchangeWork:
    """What the busiest rank of an exchange does.

    Parameters
    ----------
    tokens : float
        Tokens of a rank.
    local : float
        Local accesses: tokens of a dispatch, experts of all tokens of a combine.
    copies : float
        Copies that a rank moves: to ranks, and where there are several machines to machines, its own included.
    remote : float
        Copies to other ranks.
    n_ranks, n_machines, n_experts : int
        Numbers of all.
    n_bytes : float
        Bytes of a copy.
    """

    tokens: float
    local: float
    copies: float
    remote: float
    n_ranks: int
    n_machines: int
    n_experts: int
    n_bytes: float


def seconds(
    kernel: ExpertKernel, work: ExchangeWork, links: float, sms: int | None = None, *, per_expert: bool
) -> float:
    """Return what a call takes.

    Parameters
    ----------
    kernel : ExpertKernel
        Constants.
    work : ExchangeWork
        What the busiest rank does.
    links : float, s
        Time in which the links carry all copies, at the rates that the kernel reaches.
    sms : int, optional
        SMs of the kernel. Default: the library's own number.
    per_expert : bool
        Whether it is a low-latency kernel, which gives each expert a group of warps: as many SMs work as there are
        experts, or the smallest number that has the same number of groups on each.

    Returns
    -------
    float, s
    """
    sms, groups = sms or kernel.sms, 1
    if per_expert:
        groups = math.ceil(work.n_experts / sms)
        sms = math.ceil(work.n_experts / groups)
    there = work.n_experts * (1 - 1 / work.n_machines)
    still = kernel.launch + kernel.group * (groups - 1) + kernel.message * there
    still += kernel.peer * (work.remote / max(work.tokens, 1e-9))
    still += work.local * (kernel.local + work.n_bytes / kernel.local_rate)
    each = (kernel.copy + work.n_bytes / kernel.copy_rate) * (kernel.between if work.n_machines > 1 else 1.0)
    of_sms = work.copies * each + work.tokens * (kernel.read + work.n_bytes / kernel.read_rate)
    of_pair = work.remote / max(work.n_ranks - 1, 1) * (kernel.pair + work.n_bytes / kernel.pair_rate)
    busy = max(of_sms / sms, of_pair, links + work.remote * kernel.post)
    return still + busy + kernel.fill * min(1.0, busy / kernel.fill_after)


@functools.cache
def known_kernels() -> dict[str, dict[str, ExpertKernel]]:
    """Read the constants: of each kernel those of each GPU."""
    tree = tomllib.loads(PATH.read_text("utf-8"))
    return {
        name: {gpu: kernel_of_table(row, f"{name}.{gpu}") for gpu, row in rows.items() if isinstance(row, dict)}
        for name, rows in tree.items()
    }


def kernel_of_table(row: Mapping[str, Any], name: str) -> ExpertKernel:
    """Return a kernel of constants whose units stand in their names: ``_us``, ``_GBps``, or none."""
    known = {field.name for field in fields(ExpertKernel)}
    constants: dict[str, Any] = {}
    for key, value in row.items():
        bare, _, unit = key.rpartition("_")
        field, factor = {"us": (bare, 1e-6), "GBps": (bare, 1e9)}.get(unit, (key, 1))
        if field not in known:
            raise InputError(f"{PATH.name}: {name}: unknown constant {key!r}")
        constants[field] = tuple(value) if key == "tables" else value * factor if factor != 1 else value
    return ExpertKernel(**constants)


def name_of(library: str, mode: str, operation: str, precision: str) -> str:
    """Return the name of a kernel in the constants, such as ``deepep_normal_dispatch``."""
    if library == "deepep":
        return f"deepep_{mode}_{operation}"
    low = "_low_precision" if operation == "combine" and precision != "bf16" and library == "trtllm_two_sided" else ""
    return f"{library}_{operation}{low}"


def gpu_of(network: Network) -> str:
    """Return which GPU's constants a network has, by its generation; empty where that is not known."""
    facts = read_hardware(network.hardware)
    if facts.get("gpu") == "blackwell":
        return "gb200" if facts.get("cpu") == "arm" else "b200"
    return "h100" if facts.get("gpu") == "hopper" else ""


def kernel_for(name: str, gpu: str) -> tuple[ExpertKernel, str]:
    """Return a kernel's constants on a GPU, and a remark where they are those of another one.

    Raises
    ------
    InputError
        If no constants are known of the kernel.
    """
    known = known_kernels()
    if name not in known:
        raise InputError(f"no costs are known of {name}; known: {', '.join(known)}")
    for other in NEXT.get(gpu, NEXT["h100"]):
        if other in known[name]:
            text = (
                "" if other == gpu else f"{name}: constants of {other.upper()}, none are known of {gpu or 'this GPU'}"
            )
            return known[name][other], text
    other = next(iter(known[name]))
    return known[name][other], f"{name}: constants of {other.upper()}, none are known of {gpu or 'this GPU'}"


def seen_by(kernel: ExpertKernel, network: Network) -> Network:
    """Return the network at the rates that a kernel reaches: NVLinks, and links to NICs and from them to the fabric.

    NVLinks are the fastest links of a GPU inside its machine; links between switches of the fabric stay.
    """
    inside = (network.machine[network.src] >= 0) & (network.machine[network.src] == network.machine[network.dst])
    gpu = np.where(network.kind[network.src] == GPU, network.src, network.dst)
    touches = inside & ((network.kind[network.src] == GPU) | (network.kind[network.dst] == GPU))
    fastest = np.zeros(network.n_nodes)
    np.maximum.at(fastest, gpu[touches], network.bandwidth[touches])
    nvlink = touches & (network.bandwidth >= fastest[gpu])
    fabric = fabric_switches(network)
    between = fabric[network.src] & fabric[network.dst]
    share = np.where(nvlink, kernel.nvlink, np.where(between, 1.0, kernel.network))
    overhead = network.overhead * network.overhead_given  # the kernel's costs take the place of the usual one
    return dataclasses.replace(network, bandwidth=network.bandwidth * share, overhead=overhead)
