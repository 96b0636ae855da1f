"""The node-link JSON that networkx reads and writes, as a network: units are in the names of the fields.

References
----------
networkx, ``node_link_data``: the list is called ``edges`` since version 3.4, ``links`` before.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..core.network import AGGREGATING, FORWARDING, KINDS, MAX_METRIC, ROUTINGS, Network
from ..core.units import parse_cost, parse_time, write_cost, write_time
from .fields import Fields

_TIMES = ("overhead", "recv_overhead")
_EXACT = "delay"


def is_node_link(tree: Mapping[str, Any]) -> bool:
    """Whether a decoded JSON file looks as networkx writes it."""
    return "schema" not in tree and "directed" in tree and "nodes" in tree


def read_node_link(tree: Mapping[str, Any], path: str | Path) -> Network:
    """Read nodes ``id, kind`` and edges ``source, target, rate_bps, delay_ns``; what else a network has may be there.

    Returns
    -------
    Network
        Edges of an undirected graph in both directions: all as written, then all the other way round.

    Raises
    ------
    InputError
        If a field is missing, unknown or wrong; names the line where there is one.
    """
    top = Fields(tree, path)
    directed = top.truth("directed", True)
    top.truth("multigraph", False)
    graph = top.table("graph")
    name, routing = graph.text("name", Path(path).stem), graph.one_of("routing", ROUTINGS, "ecmp")
    graph.finish()
    index: dict[str, int] = {}
    nodes = []
    for fields in top.tables("nodes"):
        node = _identity(fields, "id")
        if node in index:
            fields.fail("id", f"is taken: {node!r} is also nodes[{index[node]}]")
        index[node] = len(index)
        nodes.append(_read_node(fields))
        if len(nodes[-1]["coordinates"]) != len(nodes[0]["coordinates"]):
            fields.refuse("coordinates", f"as many numbers as nodes[0] has, {len(nodes[0]['coordinates'])}")
    if "links" in top and "edges" in top:
        top.fail("links", "and edges are both there; networkx has one of them")
    rows = [_read_edge(fields, index) for fields in top.tables("links" if "links" in top else "edges")]
    top.finish()
    if not directed:
        rows += [(dst, src, *rest) for src, dst, *rest in rows]
    columns: list[Any] = list(zip(*rows, strict=True)) if rows else [()] * 7
    names = ("src", "dst", "bandwidth", "latency", "buffer", "loss", "metric")
    per_node = {key: [node[key] for node in nodes] for key in nodes[0]} if nodes else {"kind": []}
    return Network(name, tuple(index), routing=routing, **dict(zip(names, columns, strict=True)), **per_node)


def node_link_of(network: Network) -> dict[str, Any]:
    """Return the tree that networkx reads with ``edges="edges"``; every link is an edge of a directed graph."""
    pairs = set(zip(network.src.tolist(), network.dst.tolist(), strict=True))
    parallel = len(pairs) < network.n_links
    edges = [_edge(network, link) for link in range(network.n_links)]
    if parallel:
        count: dict[tuple[str, str], int] = {}
        for edge in edges:
            ends = (edge["source"], edge["target"])
            edge["key"] = count.get(ends, 0)
            count[ends] = edge["key"] + 1
    return {
        "directed": True,
        "multigraph": parallel,
        "graph": {"name": network.name, "routing": network.routing},
        "nodes": [_node(network, i) for i in range(network.n_nodes)],
        "edges": edges,
    }


def _read_node(fields: Fields) -> dict[str, Any]:
    kind = KINDS.index(fields.one_of("kind", KINDS))
    node = {
        "kind": kind,
        "forwards": fields.truth("forwards", kind in FORWARDING),
        "aggregates": fields.truth("aggregates", kind in AGGREGATING),
        "machine": fields.whole("machine", minimum=-1, default=-1),
        "coordinates": fields.wholes("coordinates"),
        "gamma": fields.quantity("gamma", parse_cost, 0.0),
        **{key: fields.quantity(key, parse_time, 0.0) for key in _TIMES},
    }
    fields.finish()
    return node


def _read_edge(fields: Fields, index: dict[str, int]) -> tuple[Any, ...]:
    ends = []
    for key in ("source", "target"):
        node = _identity(fields, key)
        if node not in index:
            fields.refuse(key, "the id of a node")
        ends.append(index[node])
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
    buffer, loss = (
        fields.number("buffer_bytes", np.inf) if "buffer_bytes" in fields else np.inf,
        fields.number("loss", 0.0),
    )
    if buffer <= 0:
        fields.refuse("buffer_bytes", "a positive number of bytes")
    if not 0 <= loss < 1:
        fields.refuse("loss", "a probability of at least 0 and below 1")
    metric = fields.whole("metric", 1, MAX_METRIC, default=1)
    fields.finish()
    return ends[0], ends[1], rate / 8, latency, buffer, loss, metric


def _identity(fields: Fields, key: str) -> str:
    """Name of a node; networkx also takes whole numbers."""
    value = fields.raw(key)
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        fields.refuse(key, "text or a whole number")
    return str(value)


def node_facts(network: Network, i: int, name: str) -> dict[str, Any]:
    """Return what is not usual of a node, with its name under the key `name`; all but what reducing costs there."""
    kind = int(network.kind[i])
    node: dict[str, Any] = {name: network.nodes[i], "kind": KINDS[kind]}
    for key, usual in (("forwards", kind in FORWARDING), ("aggregates", kind in AGGREGATING)):
        if bool(getattr(network, key)[i]) != usual:
            node[key] = not usual
    if network.machine[i] >= 0:
        node["machine"] = int(network.machine[i])
    if network.coordinates.shape[1]:
        node["coordinates"] = network.coordinates[i].tolist()
    return node | {key: write_time(float(getattr(network, key)[i])) for key in _TIMES if getattr(network, key)[i]}


def _node(network: Network, i: int) -> dict[str, Any]:
    node = node_facts(network, i, "id")
    if network.gamma[i]:
        node["gamma"] = write_cost(float(network.gamma[i]))
    return node


def _edge(network: Network, link: int) -> dict[str, Any]:
    latency = float(network.latency[link])
    edge: dict[str, Any] = {
        "source": network.nodes[network.src[link]],
        "target": network.nodes[network.dst[link]],
        "rate_bps": float(network.bandwidth[link]) * 8,
        "delay_ns": latency * 1e9,
    }
    if edge["delay_ns"] / 1e9 != latency:  # digits that get lost on the way to nanoseconds and back
        edge[_EXACT] = write_time(latency)
    if np.isfinite(network.buffer[link]):
        edge["buffer_bytes"] = float(network.buffer[link])
    if network.loss[link]:
        edge["loss"] = float(network.loss[link])
    if network.metric[link] != 1:
        edge["metric"] = int(network.metric[link])
    return edge
