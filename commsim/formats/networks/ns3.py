"""The topology file of HPCC's ns-3 simulator and of ASTRA-sim's ns-3 backend."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from commsim.core.errors import InputError
from commsim.core.formats.files import replacing
from commsim.core.network import Network
from commsim.core.node_kind import HOST, SWITCH

from .cables import cable_lines, check_kinds
from .read_cables import MAX_CABLES, Cables, read_lines, whole

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
