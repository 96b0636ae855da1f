"""A network in a file: TOML or JSON that people write, the node-link JSON of networkx, and npz.

Node-link JSON has units in the names of its fields: ``rate_bps``, ``delay_ns``. What else a network has may be there.

References
----------
networkx, ``node_link_data``: the list of links is called ``edges`` since version 3.4, ``links`` before.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from commsim.core.cost import read_protocol
from commsim.core.errors import InputError
from commsim.core.files.opening import path_of
from commsim.core.machines.hardware import read_hardware
from commsim.core.network import AGGREGATING, FORWARDING, KINDS, MAX_METRIC, ROUTINGS, Network
from commsim.core.units import (
    parse_bandwidth,
    parse_cost,
    parse_rate,
    parse_size,
    parse_time,
    write_bandwidth,
    write_cost,
    write_size,
    write_time,
)
from commsim.extensions import house

from .curves_fields import curves_tree, read_curves
from .fields import TableFields
from .network_arrays import LINK_ARRAYS, read_arrays, write_arrays
from .whole_files import read_tree, write_json, write_tree

MAX_ROWS = 2**18
_TIMES = ("overhead", "recv_overhead")
# Field of node-link JSON with a latency that nanoseconds cannot say.
_EXACT = "delay"


def read_network(path: str | Path, *, has_table: bool = True) -> Network:
    """Read a network from a .toml, .json or .npz file; one with `has_table` may have the table ``[topology]`` instead.

    Returns
    -------
    Network
        Links in the order of the file; the other directions of those with ``both_ways`` follow after the last.

    Raises
    ------
    InputError
        If something in the file is missing, unknown or wrong; names the line where there is one.
    """
    path = path_of(path, "network")
    if path.suffix == ".npz":
        return read_arrays(path)
    tree = read_tree(path)
    if "schema" not in tree and "topology" in tree:
        if not has_table:
            raise InputError(f"{path}: a [topology] table names a file with nodes and links, and no other table")
        found: Network = house().services["network of a table"](tree, path)
        return found
    try:
        is_node_link = "schema" not in tree and "directed" in tree and "nodes" in tree
        return read_node_link(tree, path) if is_node_link else read_own(tree, path)
    except InputError as error:
        if str(error).startswith(str(path)):
            raise
        raise InputError(f"{path}: {error}") from None


def write_network(network: Network, path: str | Path) -> None:
    """Write a network so that :func:`read_network` gives exactly the same back."""
    if Path(path).suffix == ".npz":
        write_arrays(network, path, _more(network))
        return
    write_tree(path, network_tree(network, path))


def network_tree(network: Network, path: str | Path) -> dict[str, Any]:
    """Return what a network file of text says; `path` is where it goes, for errors.

    Raises
    ------
    InputError
        If there are more links than a file of text should have.
    """
    cables = network.is_cabled
    links = range(network.n_links // 2 if cables else network.n_links)
    if len(links) > MAX_ROWS:
        raise InputError(f"{path}: {len(links)} links are too many for a file of text; write it as .npz")
    return {
        "schema": 1,
        "name": network.name,
        "routing": network.routing,
        **_more(network),
        "nodes": [_node(network, i, "name") | _reduction(float(network.gamma[i])) for i in range(network.n_nodes)],
        "links": [_link(network, i) | ({"both_ways": True} if cables else {}) for i in links],
    }


def read_own(tree: Mapping[str, Any], path: str | Path) -> Network:
    """Read what :func:`network_tree` returns; `path` is where it was, for errors.

    Raises
    ------
    InputError
        If a field is missing, unknown or wrong.
    """
    top = TableFields(tree, path)
    top.schema()
    name, routing = top.text("name", Path(path).stem), top.one_of("routing", ROUTINGS, "ecmp")
    about = _read_hardware(top) | ({"curves": read_curves(top.table("curves"))} if "curves" in top else {})
    nodes = _read_nodes(top, "name")
    links = [_read_link(fields, nodes) for fields in top.tables("links")] if "links" in top else []
    top.finish()
    back = [(dst, src, *rest) for src, dst, *rest, both_ways in links if both_ways]
    return _build(name, routing, about, nodes, [tuple(link[:-1]) for link in links] + back)


def read_node_link(tree: Mapping[str, Any], path: str | Path) -> Network:
    """Read the JSON that networkx writes, decoded: nodes ``id, kind`` and edges ``source, target, rate_bps, delay_ns``.

    Returns
    -------
    Network
        Edges of an undirected graph in both directions: all as written, then all the other way round.

    Raises
    ------
    InputError
        If a field is missing, unknown or wrong; names the line where there is one.
    """
    top = TableFields(tree, path)
    directed = top.truth("directed", True)
    top.truth("multigraph", False)
    graph = top.table("graph")
    name, routing = graph.text("name", Path(path).stem), graph.one_of("routing", ROUTINGS, "ecmp")
    about = _read_hardware(graph)
    graph.finish()
    nodes = _read_nodes(top, "id")
    if "links" in top and "edges" in top:
        top.fail("links", "and edges are both there; networkx has one of them")
    rows = [_read_edge(fields, nodes) for fields in top.tables("links" if "links" in top else "edges")]
    top.finish()
    back = [] if directed else [(dst, src, *rest) for src, dst, *rest in rows]
    return _build(name, routing, about, nodes, rows + back)


def _read_hardware(fields: TableFields) -> dict[str, Any]:
    for key, read in (("hardware", read_hardware), ("protocol", read_protocol)):
        try:
            read(fields.text(key, ""))
        except InputError as error:
            fields.fail(key, str(error).removeprefix(key).lstrip(": "))
    known = {"overhead_given": fields.truth("overhead_given", True)} if "overhead_given" in fields else {}
    texts = {key: fields.text(key, "") for key in ("hardware", "software")}
    return {**texts, "protocol": read_protocol(fields.text("protocol", "")), **known}


def _more(network: Network) -> dict[str, Any]:
    return _hardware(network) | ({"curves": curves_tree(network.curves)} if network.curves is not None else {})


def _hardware(network: Network) -> dict[str, Any]:
    is_default = not network.overhead_given and (network.overhead.any() or network.recv_overhead.any())
    default = {"overhead_given": False} if is_default else {}
    return default | {key: str(text) for key in ("hardware", "software", "protocol") if (text := getattr(network, key))}


def _build(
    name: str, routing: str, about: dict[str, Any], nodes: dict[str, dict[str, Any]], rows: list[tuple[Any, ...]]
) -> Network:
    names = ("src", "dst", *LINK_ARRAYS)
    columns: list[Any] = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    facts = list(nodes.values())
    per_node: dict[str, Any] = (
        {key: [node[key] for node in facts] for key in facts[0] if key != "index"} if facts else {"kind": []}
    )
    links: dict[str, Any] = dict(zip(names, columns, strict=True))
    for key in _TIMES:  # left out by all nodes, it is not known
        values = per_node.get(key, ())
        per_node[key] = [value or 0.0 for value in values] if any(value is not None for value in values) else None
    return Network(name, tuple(nodes), routing=routing, **about, **links, **per_node)


def _read_nodes(top: TableFields, key: str) -> dict[str, dict[str, Any]]:
    """Read the nodes, by the name under `key`."""
    nodes: dict[str, dict[str, Any]] = {}
    n_dims = 0
    for fields in top.tables("nodes"):
        name = _identity(fields, key) if key == "id" else fields.text(key)
        if name in nodes:
            fields.fail(key, f"is taken: {name!r} is also nodes[{nodes[name]['index']}]")
        if not (name and name.isprintable()):
            fields.refuse(key, "printable text")
        kind = KINDS.index(fields.one_of("kind", KINDS))
        if "reduce_rate" in fields and "gamma" in fields:
            fields.fail("gamma", "and reduce_rate have the same meaning; give one of them")
        gamma, rate = fields.quantity("gamma", parse_cost, 0.0), fields.quantity("reduce_rate", parse_rate, 0.0)
        nodes[name] = {
            "index": len(nodes),
            "kind": kind,
            "forwards": fields.truth("forwards", kind in FORWARDING),
            "aggregates": fields.truth("aggregates", kind in AGGREGATING),
            "machine": fields.whole("machine", minimum=-1, default=-1),
            "coordinates": fields.wholes("coordinates"),
            **{key: fields.quantity(key, parse_time, 0.0) if key in fields else None for key in _TIMES},
            "message_engines": fields.whole("message_engines", minimum=1, default=1),
            "gamma": 1 / rate if rate else gamma,
        }
        fields.finish()
        n_dims = n_dims if len(nodes) > 1 else len(nodes[name]["coordinates"])
        if len(nodes[name]["coordinates"]) != n_dims:
            fields.refuse("coordinates", f"a list of {n_dims} whole numbers, as in nodes[0]")
    return nodes


def _read_link(fields: TableFields, nodes: Mapping[str, dict[str, Any]]) -> tuple[Any, ...]:
    for key in ("from", "to"):
        if fields.text(key) not in nodes:
            fields.refuse(key, "the name of a node")
    ends = [nodes[fields.text(key)]["index"] for key in ("from", "to")]
    if ends[0] == ends[1]:
        fields.refuse("to", "another node than from")
    bandwidth, latency = fields.quantity("bandwidth", parse_bandwidth), fields.quantity("latency", parse_time)
    buffer = fields.quantity("buffer", parse_size, float("inf"))
    if buffer <= 0:
        fields.refuse("buffer", "a positive size")
    loss, metric = _loss_and_metric(fields)
    both_ways = fields.truth("both_ways", False)
    fields.finish()
    return (*ends, bandwidth, latency, buffer, loss, metric, both_ways)


def _read_edge(fields: TableFields, nodes: Mapping[str, dict[str, Any]]) -> tuple[Any, ...]:
    for key in ("source", "target"):
        if _identity(fields, key) not in nodes:
            fields.refuse(key, "the id of a node")
    ends = [nodes[_identity(fields, key)]["index"] for key in ("source", "target")]
    if ends[0] == ends[1]:
        fields.refuse("target", "another node than source")
    rate, delay = fields.number("rate_bps"), fields.number("delay_ns")
    if rate <= 0:
        fields.refuse("rate_bps", "a positive number of bits per second")
    if delay < 0:
        fields.refuse("delay_ns", "a number of nanoseconds, 0 or more")
    if "key" in fields:  # numbers the parallel edges of a multigraph; says nothing more
        _identity(fields, "key")
    latency = fields.quantity(_EXACT, parse_time, delay / 1e9)
    buffer = fields.number("buffer_bytes") if "buffer_bytes" in fields else float("inf")
    if buffer <= 0:
        fields.refuse("buffer_bytes", "a positive number of bytes")
    loss, metric = _loss_and_metric(fields)
    fields.finish()
    return (*ends, rate / 8, latency, buffer, loss, metric)


def _loss_and_metric(fields: TableFields) -> tuple[float, int]:
    loss = fields.number("loss", 0.0)
    if not 0 <= loss < 1:
        fields.refuse("loss", "a probability of at least 0 and below 1")
    return loss, fields.whole("metric", 1, MAX_METRIC, default=1)


def _identity(fields: TableFields, key: str) -> str:
    """Name of a node of networkx, which also takes whole numbers."""
    value = fields.raw(key)
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        fields.refuse(key, "text or a whole number")
    return str(value)


def node_link_of(network: Network) -> dict[str, Any]:
    """Return the tree that networkx reads with ``edges="edges"``; every link is an edge of a directed graph."""
    pairs = set(zip(network.src.tolist(), network.dst.tolist(), strict=True))
    parallel = len(pairs) < network.n_links
    nodes = [_node(network, i, "id") for i in range(network.n_nodes)]
    for node, gamma in zip(nodes, network.gamma.tolist(), strict=True):
        if gamma:
            node["gamma"] = write_cost(gamma)
    edges, count = [], dict[tuple[str, str], int]()
    for i in range(network.n_links):
        latency = float(network.latency[i])
        ends = network.nodes[network.src[i]], network.nodes[network.dst[i]]
        edge: dict[str, Any] = {"source": ends[0], "target": ends[1], "rate_bps": float(network.bandwidth[i]) * 8,
                                "delay_ns": latency * 1e9}  # fmt: skip
        if edge["delay_ns"] / 1e9 != latency:  # digits that get lost on the way to nanoseconds and back
            edge[_EXACT] = write_time(latency)
        if np.isfinite(network.buffer[i]):
            edge["buffer_bytes"] = float(network.buffer[i])
        edge |= _unusual(network, i)
        if parallel:
            edge["key"] = count.get(ends, 0)
            count[ends] = edge["key"] + 1
        edges.append(edge)
    graph = {"name": network.name, "routing": network.routing, **_hardware(network)}
    return {"directed": True, "multigraph": parallel, "graph": graph, "nodes": nodes, "edges": edges}


def write_node_link(network: Network, path: str | Path) -> None:
    """Write the JSON that networkx reads; the file appears whole or not at all."""
    write_json(path, node_link_of(network))


def _node(network: Network, i: int, name: str) -> dict[str, Any]:
    """Return what is not usual of a node, with its name under the key `name`; all but what reducing costs there."""
    kind = int(network.kind[i])
    node: dict[str, Any] = {name: network.nodes[i], "kind": KINDS[kind]}
    for key, usual in (("forwards", kind in FORWARDING), ("aggregates", kind in AGGREGATING)):
        if bool(getattr(network, key)[i]) != usual:
            node[key] = not usual
    node |= {"machine": int(network.machine[i])} if network.machine[i] >= 0 else {}
    node |= {"coordinates": network.coordinates[i].tolist()} if network.coordinates.shape[1] else {}
    node |= {"message_engines": int(network.message_engines[i])} if network.message_engines[i] != 1 else {}
    fields = {key: float(getattr(network, key)[i]) for key in _TIMES}
    is_free = network.overhead_given and not (network.overhead.any() or network.recv_overhead.any())
    return node | {key: write_time(o) for key, o in fields.items() if o or (is_free and key == "overhead")}


def _reduction(gamma: float) -> dict[str, str]:
    """Write as the rate that people know where that is exact, else as the time per byte."""
    if gamma > 1e-100 and 1 / parse_rate(rate := write_bandwidth(1 / gamma)) == gamma:
        return {"reduce_rate": rate}
    return {"gamma": write_cost(gamma)} if gamma else {}


def _link(network: Network, i: int) -> dict[str, Any]:
    link: dict[str, Any] = {
        "from": network.nodes[network.src[i]],
        "to": network.nodes[network.dst[i]],
        "bandwidth": write_bandwidth(float(network.bandwidth[i])),
        "latency": write_time(float(network.latency[i])),
    }
    if np.isfinite(network.buffer[i]):
        link["buffer"] = write_size(float(network.buffer[i]))
    return link | _unusual(network, i)


def _unusual(network: Network, i: int) -> dict[str, Any]:
    """Return loss and metric of a link where they are not the usual ones."""
    loss, metric = float(network.loss[i]), int(network.metric[i])
    return ({"loss": loss} if loss else {}) | ({"metric": metric} if metric != 1 else {})
