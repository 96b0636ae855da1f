"""A network in a file: TOML or JSON that people write, the node-link JSON of networkx, and npz."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..core.errors import InputError
from ..core.network import AGGREGATING, FORWARDING, KINDS, MAX_METRIC, ROUTINGS, Network
from ..core.units import (
    parse_bandwidth,
    parse_cost,
    parse_size,
    parse_time,
    write_bandwidth,
    write_cost,
    write_size,
    write_time,
)
from .fields import Fields
from .node_link import is_node_link, node_facts, read_node_link
from .npz import read_archive, write_archive
from .whole_files import read_tree, write_tree

MAX_BYTES = 2**31
MAX_ROWS = 2**18
_LINK_ARRAYS = ("bandwidth", "latency", "buffer", "loss", "metric")
_ARRAYS = {
    "kind": np.uint8, "src": np.int32, "dst": np.int32, **dict.fromkeys(_LINK_ARRAYS[:4], np.float64),
    "forwards": np.bool_, "aggregates": np.bool_,
    "overhead": np.float64, "recv_overhead": np.float64, "gamma": np.float64, "machine": np.int32, "metric": np.int32,
}  # fmt: skip


def read_network(path: str | Path) -> Network:
    """Read a network from a .toml, .json or .npz file.

    Returns
    -------
    Network
        Links in the order of the file; the other directions of those with ``both_ways`` follow after the last.

    Raises
    ------
    InputError
        If something in the file is missing, unknown or wrong; names the line where there is one.
    """
    if Path(path).suffix == ".npz":
        return _read_arrays(path)
    tree = read_tree(path)
    try:
        return read_node_link(tree, path) if is_node_link(tree) else _read_fields(Fields(tree, path), path)
    except InputError as error:
        if str(error).startswith(str(path)):
            raise
        raise InputError(f"{path}: {error}") from None


def write_network(network: Network, path: str | Path) -> None:
    """Write a network so that :func:`read_network` gives exactly the same back."""
    if Path(path).suffix == ".npz":
        header = {"name": network.name, "routing": network.routing, "nodes": network.nodes}
        columns = {name: getattr(network, name) for name in _ARRAYS} | {"coordinates": network.coordinates.ravel()}
        write_archive(path, "network", header, columns)
        return
    cables = network.is_cabled
    links = range(network.n_links // 2 if cables else network.n_links)
    if len(links) > MAX_ROWS:
        raise InputError(f"{path}: {len(links)} links are too many for a file of text; write it as .npz")
    write_tree(path, {
        "schema": 1,
        "name": network.name,
        "routing": network.routing,
        "nodes": [_node(network, i) for i in range(network.n_nodes)],
        "links": [_link(network, i) | ({"both_ways": True} if cables else {}) for i in links],
    })  # fmt: skip


def _read_arrays(path: str | Path) -> Network:
    archive = read_archive(path, "network", MAX_BYTES)
    name, routing = archive.header.text("name"), archive.header.one_of("routing", ROUTINGS)
    nodes = archive.header.items("nodes", str, "the name of a node")
    columns: dict[str, Any] = {key: archive.take(key, dtype) for key, dtype in _ARRAYS.items()}
    at = archive.take("coordinates", np.int32)
    archive.finish()
    if at.size % max(1, len(nodes)):
        raise InputError(f"{path}: coordinates must be as many for each of {len(nodes)} nodes, got {at.size} numbers")
    try:
        at = at.reshape(len(nodes), at.size // max(1, len(nodes)))
        return Network(name, tuple(nodes), routing=routing, coordinates=at, **columns)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _read_fields(top: Fields, path: str | Path) -> Network:
    top.schema()
    name, routing = top.text("name", Path(path).stem), top.one_of("routing", ROUTINGS, "ecmp")
    nodes = [_read_node(fields) for fields in top.tables("nodes")]
    index: dict[str, int] = {}
    for i, node in enumerate(nodes):
        if index.setdefault(node["name"], i) != i:
            top.tables("nodes")[i].fail("name", f"is taken: {node['name']!r} is also nodes[{index[node['name']]}]")
        if len(node["coordinates"]) != len(nodes[0]["coordinates"]):
            n_dims = len(nodes[0]["coordinates"])
            top.tables("nodes")[i].refuse("coordinates", f"a list of {n_dims} whole numbers, as in nodes[0]")
    links = [_read_link(fields, index) for fields in top.tables("links")] if "links" in top else []
    top.finish()
    rows = [link[:-1] for link in links] + [(dst, src, *rest[:-1]) for src, dst, *rest in links if rest[-1]]
    columns: dict[str, Any] = dict.fromkeys(("src", "dst", *_LINK_ARRAYS), ())
    if rows:
        columns = dict(zip(columns, zip(*rows, strict=True), strict=True))
    names = [node.pop("name") for node in nodes]
    per_node = {key: [node[key] for node in nodes] for key in nodes[0]} if nodes else {"kind": []}
    return Network(name, names, routing=routing, **columns, **per_node)


def _read_node(fields: Fields) -> dict[str, Any]:
    name, kind = fields.text("name"), KINDS.index(fields.one_of("kind", KINDS))
    if not (name and name.isprintable()):
        fields.refuse("name", "printable text")
    if "reduce_rate" in fields and "gamma" in fields:
        fields.fail("gamma", "and reduce_rate say the same thing twice; give one of them")
    gamma = fields.quantity("gamma", parse_cost, 0.0)
    rate = fields.quantity("reduce_rate", parse_bandwidth, 0.0)
    node = {
        "name": name,
        "kind": kind,
        "forwards": fields.truth("forwards", kind in FORWARDING),
        "aggregates": fields.truth("aggregates", kind in AGGREGATING),
        "machine": fields.whole("machine", minimum=-1, default=-1),
        "coordinates": fields.wholes("coordinates"),
        "overhead": fields.quantity("overhead", parse_time, 0.0),
        "recv_overhead": fields.quantity("recv_overhead", parse_time, 0.0),
        "gamma": 1 / rate if rate else gamma,
    }
    fields.finish()
    return node


def _read_link(fields: Fields, index: dict[str, int]) -> tuple[Any, ...]:
    ends = []
    for key in ("from", "to"):
        if fields.text(key) not in index:
            fields.refuse(key, "the name of a node")
        ends.append(index[fields.text(key)])
    if ends[0] == ends[1]:
        fields.refuse("to", "another node than from")
    bandwidth, latency = fields.quantity("bandwidth", parse_bandwidth), fields.quantity("latency", parse_time)
    buffer, loss = fields.quantity("buffer", parse_size, float("inf")), fields.number("loss", 0.0)
    if buffer <= 0:
        fields.refuse("buffer", "a positive size")
    if not 0 <= loss < 1:
        fields.refuse("loss", "a probability of at least 0 and below 1")
    metric, both_ways = fields.whole("metric", 1, MAX_METRIC, default=1), fields.truth("both_ways", False)
    fields.finish()
    return (*ends, bandwidth, latency, buffer, loss, metric, both_ways)


def _node(network: Network, i: int) -> dict[str, Any]:
    node, gamma = node_facts(network, i, "name"), float(network.gamma[i])
    return node | _reduction(gamma) if gamma else node


def _reduction(gamma: float) -> dict[str, str]:
    """Write as the rate that people know where that is exact, else as the time per byte."""
    if gamma > 1e-100:
        rate = write_bandwidth(1 / gamma)
        if 1 / parse_bandwidth(rate) == gamma:
            return {"reduce_rate": rate}
    return {"gamma": write_cost(gamma)}


def _link(network: Network, i: int) -> dict[str, Any]:
    link: dict[str, Any] = {
        "from": network.nodes[network.src[i]],
        "to": network.nodes[network.dst[i]],
        "bandwidth": write_bandwidth(float(network.bandwidth[i])),
        "latency": write_time(float(network.latency[i])),
    }
    if np.isfinite(network.buffer[i]):
        link["buffer"] = write_size(float(network.buffer[i]))
    if network.loss[i]:
        link["loss"] = float(network.loss[i])
    if network.metric[i] != 1:
        link["metric"] = int(network.metric[i])
    return link
