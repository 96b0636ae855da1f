"""The node-link JSON that networkx writes, as a network: units are in the names of the fields.

References
----------
networkx, ``node_link_data``: the list is called ``edges`` since version 3.4, ``links`` before.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..network import KINDS, ROUTINGS, Network
from .fields import Fields


def is_node_link(tree: Mapping[str, Any]) -> bool:
    """Whether a decoded JSON file looks as networkx writes it."""
    return "schema" not in tree and "directed" in tree and "nodes" in tree


def read_node_link(tree: Mapping[str, Any], path: str | Path) -> Network:
    """Read nodes ``id, kind`` and edges ``source, target, rate_bps, delay_ns``.

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
    kinds = []
    for fields in top.tables("nodes"):
        node = _identity(fields, "id")
        if node in index:
            fields.fail("id", f"is taken: {node!r} is also nodes[{index[node]}]")
        index[node] = len(index)
        kinds.append(KINDS.index(fields.one_of("kind", KINDS)))
        fields.finish()
    rows = [_read_edge(fields, index) for fields in top.tables("links" if "links" in top else "edges")]
    top.finish()
    if not directed:
        rows += [(dst, src, rate, delay) for src, dst, rate, delay in rows]
    src, dst, rate, delay = (list(column) for column in zip(*rows, strict=True)) if rows else ([], [], [], [])
    return Network(name, tuple(index), kinds, src, dst, rate, delay, routing=routing)


def _read_edge(fields: Fields, index: dict[str, int]) -> tuple[int, int, float, float]:
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
    fields.finish()
    return ends[0], ends[1], rate / 8, delay / 1e9


def _identity(fields: Fields, key: str) -> str:
    """Name of a node; networkx also takes whole numbers."""
    value = fields.raw(key)
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        fields.refuse(key, "text or a whole number")
    return str(value)
