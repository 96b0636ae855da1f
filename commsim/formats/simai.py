"""Topologies of SimAI: those of ns-3's simulators, with NVSwitches of servers beside the switches of the network."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from commsim.core.errors import InputError
from commsim.core.machines.attach import FABRIC_FACTOR
from commsim.core.machines.parts import NVLINK_METRIC
from commsim.core.network import GPU, SWITCH, Network

from .context import GPU_TYPE
from .machines.gpu_models import of_names
from .ns3 import Ns3Links, cable_lines, check_kinds, network_of, parts_of, without_remarks, write_lines

_NET = "roce"  # what SimAI simulates


def write_simai(network: Network, path: str | Path, gpu_type: str = GPU_TYPE) -> None:
    """Write a network of GPUs (or hosts) and switches; switches inside of machines are NVSwitches.

    Parameters
    ----------
    network : Network
        What to write.
    path : path
        The file.
    gpu_type : str
        Name of the GPUs.

    Raises
    ------
    InputError
        If it has other nodes, links that go one way only, or servers of different sizes.
    """
    check_kinds(network, has_servers=True)
    gpus = network.endpoints
    _, sizes = np.unique(network.machine[gpus], return_counts=True)
    alone = (network.machine[gpus] < 0).all()
    if not alone and (sizes != sizes[0]).any():
        raise InputError(
            f"{network.name}: servers have {sorted(set(sizes.tolist()))} GPUs; SimAI needs the same number in all"
        )
    order = gpus[np.argsort(network.machine[gpus], kind="stable")]
    switches = np.flatnonzero(network.kind == SWITCH)
    inside = switches[network.machine[switches] >= 0]
    outside = switches[network.machine[switches] < 0]
    number = {int(node): i for i, node in enumerate((*order, *inside, *outside))}
    if len(number) != network.n_nodes or not gpu_type.isalnum():
        raise InputError(
            f"{network.name}: all endpoints must be of one kind, and the GPU type one word, got {gpu_type!r}"
        )
    cables = cable_lines(network, number)
    per_server = 1 if alone else int(sizes[0])
    head = f"{network.n_nodes} {per_server} {len(inside)} {len(outside)} {len(cables)} {gpu_type}"
    ids = " ".join(str(number[int(node)]) for node in (*inside, *outside))
    write_lines(path, [head, ids, *cables])


def read_simai(path: str | Path) -> Network:
    """Read a network: ``gpu0 …``, ``nvswitch0 …`` inside of the machines of their GPUs, and ``switch0 …``.

    GPUs of a machine reach each other by its NVSwitch. The name of the GPUs gives their generation, and NVLink SHARP
    since Hopper; the network is RoCE, which SimAI simulates.

    Raises
    ------
    InputError
        Naming the line that is wrong.
    """
    counts, (line, head), ids, rest = parts_of(path, 5, slice(2, 4))
    n_nodes, per_server, n_inside, n_outside, n_cables = counts
    rest, told = without_remarks(rest, n_cables)
    n_gpus = n_nodes - n_inside - n_outside
    if len(head.split()) != 6 or n_gpus < 1 or per_server < 1 or n_gpus % per_server:
        raise InputError(
            f"{path}, line {line}: 'nodes gpus_per_server nvswitches switches cables gpu' must be whole servers of "
            f"GPUs, got {n_gpus} GPUs and {per_server} in each"
        )
    if len(ids) != n_nodes - n_gpus or sorted(ids) != list(range(n_gpus, n_nodes)) or len(rest) != n_cables:
        raise InputError(
            f"{path}: after {n_gpus} GPUs come {n_inside + n_outside} switches, and {n_cables} cables; "
            f"got {len(ids)} and {len(rest)}"
        )
    if n_nodes > 2 * n_cables:
        raise InputError(f"{path}, line {line}: {n_nodes} nodes are more than {n_cables} cables can join")
    cables = Ns3Links(rest, n_nodes, path)
    machine = np.full(n_nodes, -1)
    machine[:n_gpus] = np.arange(n_gpus) // per_server if per_server > 1 else -1
    inside = np.isin(cables.src, ids[:n_inside]) & (cables.dst < n_gpus)
    machine[cables.src[inside]] = cables.dst[inside] // per_server
    names = [f"gpu{i}" for i in range(n_gpus)] + [""] * (n_nodes - n_gpus)
    for k, node in enumerate(ids):
        names[node] = f"nvswitch{k}" if k < n_inside else f"switch{k - n_inside}"
    kind = np.where(np.arange(n_nodes) < n_gpus, GPU, SWITCH)
    network = network_of(path, names, kind, cables, machine)
    within = (machine[cables.src] >= 0) & (machine[cables.src] == machine[cables.dst])
    gpu = of_names(head.split()[5])
    adds = network.aggregates.copy()
    if n_inside and gpu is not None and gpu.has_nvls:
        adds[ids[:n_inside]] = True
    facts = gpu.facts(net=_NET) if gpu is not None else ""
    metric = np.where(within, NVLINK_METRIC, FABRIC_FACTOR) if within.any() else network.metric
    return dataclasses.replace(network, metric=metric, aggregates=adds, hardware=facts, told=told)
