"""A network as arrays in an npz file, for the many links that a file of text should not have."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from commsim.core.cost import read_protocol
from commsim.core.errors import InputError
from commsim.core.network import ROUTINGS, Network

from .curves_fields import read_curves
from .npz import read_archive, write_archive

MAX_BYTES = 2**31
LINK_ARRAYS = ("bandwidth", "latency", "buffer", "loss", "metric")
_ARRAYS = {
    "kind": np.uint8, "src": np.int32, "dst": np.int32, **dict.fromkeys(LINK_ARRAYS[:4], np.float64),
    "forwards": np.bool_, "aggregates": np.bool_,
    "overhead": np.float64, "recv_overhead": np.float64, "gamma": np.float64, "machine": np.int32, "metric": np.int32,
}  # fmt: skip


def write_arrays(network: Network, path: str | Path, more: Mapping[str, Any]) -> None:
    """Write a network as :func:`read_arrays` reads it.

    Parameters
    ----------
    network : Network
        Network to write.
    path : path
        Path of the file.
    more : mapping
        What else its header says: hardware, software, protocol and curves.
    """
    header = {"name": network.name, "routing": network.routing, "nodes": list(network.nodes), **more}
    header |= {"overhead_given": network.overhead_given}
    columns = {name: getattr(network, name) for name in (*_ARRAYS, "message_engines")}
    columns["coordinates"] = network.coordinates.ravel()
    write_archive(path, "network", header, columns)


def read_arrays(path: str | Path) -> Network:
    """Read a network from an npz file.

    Raises
    ------
    InputError
        If something in the file is missing, unknown or wrong.
    """
    archive = read_archive(path, "network", MAX_BYTES)
    name, routing = archive.header.text("name"), archive.header.one_of("routing", ROUTINGS)
    about: dict[str, Any] = {name: archive.header.text(name, "") for name in ("hardware", "software")}
    protocol = archive.header.text("protocol", "")
    curves = read_curves(archive.header.table("curves")) if "curves" in archive.header else None
    about["overhead_given"] = archive.header.truth("overhead_given", False)
    nodes = archive.header.items("nodes", str, "the name of a node")
    columns: dict[str, Any] = {key: archive.take(key, dtype) for key, dtype in _ARRAYS.items()}
    if "message_engines" in archive:  # files of version 0.1 have none
        columns["message_engines"] = archive.take("message_engines", np.int32)
    at = archive.take("coordinates", np.int32)
    archive.finish()
    if at.size % max(1, len(nodes)):
        raise InputError(f"{path}: coordinates must be as many for each of {len(nodes)} nodes, got {at.size} numbers")
    try:
        at = at.reshape(len(nodes), at.size // max(1, len(nodes)))
        about["protocol"] = read_protocol(protocol)
        return Network(name, tuple(nodes), routing=routing, coordinates=at, curves=curves, **about, **columns)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
