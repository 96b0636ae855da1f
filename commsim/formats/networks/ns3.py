"""The topology file of HPCC's ns-3 simulator and of ASTRA-sim's ns-3 backend.

The topology file of SimAI: GPUs, the NVSwitches of their servers, and the switches of the network.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from commsim.core.errors import InputError
from commsim.core.network import GPU, HOST, SWITCH, Network
from commsim.files.whole_files import replacing

from .cables import MAX_CABLES, Cables, cable_lines, check_kinds, read_lines, whole

MAX_NODES = 2**22


def write_ns3(network: Network, path: str | Path) -> None:
    """Write a network of hosts and switches, numbered as they are; the file appears whole or not at all.

    Raises
    ------
    InputError
        If it has other nodes, or links that go one way only.
    """
    check_kinds(network)
    switches = np.flatnonzero(network.kind == SWITCH)
    cables = cable_lines(network, {i: i for i in range(network.n_nodes)})
    lines = [f"{network.n_nodes} {len(switches)} {len(cables)}", " ".join(map(str, switches)), *cables]
    with replacing(path) as out:
        out.write(("\n".join(lines) + "\n").encode())


def read_ns3(path: str | Path) -> Network:
    """Read a network; hosts are called ``h0``, switches ``s8``, by their numbers in the file.

    Raises
    ------
    InputError
        Naming the line that is wrong.
    """
    lines = read_lines(path)
    limits = (MAX_NODES, MAX_NODES, MAX_CABLES)
    where = f"{path}, line {lines[0][0]}"
    n_nodes, n_switches, n_cables = (whole(lines[0][1].split(), k, where, limit) for k, limit in enumerate(limits))
    words = lines[1][1].split() if n_switches else []
    rest = lines[2:] if n_switches else lines[1:]
    switches = [whole(words, k, f"{path}, line {lines[1][0]}", n_nodes) for k in range(len(words))]
    if len(set(switches)) != n_switches or len(rest) != n_cables:
        got = f"{len(set(switches))} and {len(rest)}"
        raise InputError(f"{path}: line 1 says {n_switches} switches and {n_cables} cables, got {got}")
    if n_nodes > 2 * n_cables:
        raise InputError(f"{path}: line 1 says {n_nodes} nodes, more than {n_cables} cables can join")
    kind = np.full(n_nodes, HOST)
    kind[switches] = SWITCH
    cables = Cables(rest, n_nodes, path)
    names = tuple(f"{'s' if k == SWITCH else 'h'}{i}" for i, k in enumerate(kind))
    links = (cables.src, cables.dst, cables.bandwidth, cables.latency)
    return Network(Path(path).stem, names, kind, *links, loss=cables.loss)


def write_simai(network: Network, path: str | Path, gpu_type: str = "H100") -> None:
    """Write a network of GPUs (or hosts) and switches; switches inside of machines are NVSwitches.

    Raises
    ------
    InputError
        If it has other nodes, links that go one way only, or servers of different sizes.
    """
    check_kinds(network)
    gpus = network.endpoints
    _, sizes = np.unique(network.machine[gpus], return_counts=True)
    alone = (network.machine[gpus] < 0).all()
    if not alone and (sizes != sizes[0]).any():
        raise InputError(
            f"{network.name}: servers have {sorted(set(sizes.tolist()))} GPUs; SimAI wants the same in all"
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
    with replacing(path) as out:
        out.write(("\n".join([head, ids, *cables]) + "\n").encode())


def read_simai(path: str | Path) -> Network:
    """Read a network: ``gpu0 …``, ``nvswitch0 …`` inside of the machines of their GPUs, and ``switch0 …``.

    Raises
    ------
    InputError
        Naming the line that is wrong.
    """
    lines = read_lines(path)
    head = lines[0][1].split()
    where = f"{path}, line {lines[0][0]}"
    limits = (MAX_NODES, MAX_NODES, MAX_NODES, MAX_NODES, MAX_CABLES)
    n_nodes, per_server, n_inside, n_outside, n_cables = (whole(head, k, where, n) for k, n in enumerate(limits))
    n_gpus = n_nodes - n_inside - n_outside
    if len(head) != 6 or n_gpus < 1 or per_server < 1 or n_gpus % per_server:
        raise InputError(
            f"{where}: 'nodes gpus_per_server nvswitches switches cables gpu' must be whole servers of GPUs, "
            f"got {n_gpus} GPUs and {per_server} in each"
        )
    words = lines[1][1].split() if n_inside + n_outside else []
    rest = lines[2:] if words else lines[1:]
    ids = [whole(words, k, f"{path}, line {lines[1][0]}", n_nodes) for k in range(len(words))]
    if len(ids) != n_nodes - n_gpus or sorted(ids) != list(range(n_gpus, n_nodes)) or len(rest) != n_cables:
        raise InputError(
            f"{path}: after {n_gpus} GPUs come {n_inside + n_outside} switches, and {n_cables} cables; "
            f"got {len(ids)} and {len(rest)}"
        )
    if n_nodes > 2 * n_cables:
        raise InputError(f"{where}: {n_nodes} nodes are more than {n_cables} cables can join")
    cables = Cables(rest, n_nodes, path)
    machine = np.full(n_nodes, -1)
    machine[:n_gpus] = np.arange(n_gpus) // per_server if per_server > 1 else -1
    inside = np.isin(cables.src, ids[:n_inside]) & (cables.dst < n_gpus)
    machine[cables.src[inside]] = cables.dst[inside] // per_server
    names = [f"gpu{i}" for i in range(n_gpus)] + [""] * (n_nodes - n_gpus)
    for k, node in enumerate(ids):
        names[node] = f"nvswitch{k}" if k < n_inside else f"switch{k - n_inside}"
    kind = np.where(np.arange(n_nodes) < n_gpus, GPU, SWITCH)
    links = (cables.src, cables.dst, cables.bandwidth, cables.latency)
    return Network(Path(path).stem, names, kind, *links, loss=cables.loss, machine=machine)
