"""A placement in a file: the names of the nodes in TOML or JSON, or their numbers in npz."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..errors import InputError
from ..network import Network
from ..placement import Placement
from .archive import read_archive, write_archive
from .fields import Fields
from .files import read_tree, write_tree


def read_placement(path: str | Path, network: Network) -> Placement:
    """Read a placement on `network` from a .toml, .json or .npz file.

    Raises
    ------
    InputError
        If the file names a node that the network does not have, or is wrong in another way.
    """
    if Path(path).suffix == ".npz":
        archive = read_archive(path, "placement")
        nodes = archive.take("nodes", np.int32)
        archive.finish()
        if nodes.size and not 0 <= nodes.min() <= nodes.max() < network.n_nodes:
            bad = next(node for node in nodes if not 0 <= node < network.n_nodes)
            raise InputError(f"{path}: nodes must be 0..{network.n_nodes - 1} of {network.name}, got {bad}")
        return _placement(path, nodes.tolist())
    top = Fields(read_tree(path), path)
    top.schema(required=False)
    names = top.items("placement", str, "the name of a node")
    top.finish()
    index = {name: i for i, name in enumerate(network.nodes)}
    for i, name in enumerate(names):
        if name not in index:
            top.member("placement", i, f"must be a node of {network.name}, got {name!r}")
    return _placement(path, [index[name] for name in names])


def write_placement(placement: Placement, path: str | Path, network: Network | None = None) -> None:
    """Write a placement; TOML and JSON hold names, so they need the network.

    Raises
    ------
    InputError
        If names are needed and there is no network, or it has too few nodes.
    """
    if Path(path).suffix == ".npz":
        write_archive(path, "placement", {}, {"nodes": placement.nodes})
        return
    if network is None:
        raise InputError(f"{path}: a placement is saved by the names of nodes, so its network is needed, or .npz")
    if not 0 <= placement.nodes.min() <= placement.nodes.max() < network.n_nodes:
        raise InputError(f"{path}: the placement names a node that {network.name} does not have")
    write_tree(path, {"schema": 1, "placement": [network.nodes[node] for node in placement.nodes]})


def _placement(path: str | Path, nodes: list[int]) -> Placement:
    if not nodes:
        raise InputError(f"{path}: placement must name at least one node")
    return Placement(np.array(nodes, np.int32))
