"""GraphML with the fields of the node-link JSON; lists are text, since GraphML has none. Written by networkx.

References
----------
The GraphML specification: keys declare data, a graph holds nodes and edges.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError
from commsim.core.extras import of_extra
from commsim.core.files.network_file import node_link_of, read_node_link
from commsim.core.files.whole_files import replacing
from commsim.core.network import Network
from commsim.formats.markup import Element, read_xml

_ORDER = "link"
_TRUTH = {"true": True, "false": False, "1": True, "0": False}
_TYPES: dict[str, Callable[[str], Any]] = {
    "string": str, "int": int, "long": int, "float": float, "double": float,
    "boolean": lambda text: _TRUTH[text.strip().lower()],
}  # fmt: skip
_GRAPH = ("name", "routing")
# By what it is for and its id: name, type and default of a key.
Keys = dict[tuple[str, str], tuple[str, str, str | None]]


def write_graphml(network: Network, path: str | Path) -> None:
    """Write a network; the file appears whole or not at all."""
    networkx = of_extra("networkx")

    tree = node_link_of(network)
    for node in tree["nodes"]:
        if "coordinates" in node:
            node["coordinates"] = " ".join(map(str, node["coordinates"]))
    for number, edge in enumerate(tree["edges"]):
        edge[_ORDER] = number
    with replacing(path) as out:
        networkx.write_graphml_xml(networkx.node_link_graph(tree, edges="edges"), out)


def read_graphml(path: str | Path) -> Network:
    """Read a network.

    Raises
    ------
    InputError
        If the file declares a document type or an entity, is no GraphML, or its graph is no network; ports, edges of
        more than two nodes, and graphs inside of nodes are refused.
    """
    top = read_xml(path)
    if _tag(top) != "graphml":
        top.fail("is not GraphML: expected <graphml>")
    graphs = [child for child in top.children if _tag(child) == "graph"]
    if len(graphs) != 1:
        top.fail(f"must hold one <graph>, got {len(graphs)}")
    graph, keys = graphs[0], _keys(top)
    directed = _direction(graph, "edgedefault", ("directed", "undirected"))
    elements: dict[str, list[dict[str, Any]]] = {"node": [], "edge": []}
    for child in graph.children:
        kind = _tag(child)
        if kind in elements:
            elements[kind].append(_data(child, kind, keys) | _ends(child, kind, directed))
        elif kind not in ("data", "desc"):
            child.fail("is not known inside <graph>; known: node, edge, data")
    about = {key: value for key, value in _data(graph, "graph", keys).items() if key in _GRAPH}
    orders = [edge.pop(_ORDER, None) for edge in elements["edge"]]
    if all(type(order) is int for order in orders):  # ours: networkx groups edges by where they begin
        elements["edge"] = [elements["edge"][i] for i in sorted(range(len(orders)), key=lambda i: orders[i])]
    tree = {"directed": directed, "graph": about, "nodes": elements["node"], "edges": elements["edge"]}
    try:
        return read_node_link(tree, path)
    except InputError as error:
        raise error if str(error).startswith(str(path)) else InputError(f"{path}: {error}") from None


def _tag(element: Element) -> str:
    return element.tag.rpartition(":")[2]


def _keys(top: Element) -> Keys:
    keys: Keys = {}
    for key in top.children:
        if _tag(key) != "key" or "attr.name" not in key.attributes:  # such as what a drawing needs
            continue
        kind = key.text("attr.type", "string")
        if kind not in _TYPES:
            key.fail(f"attr.type must be one of {', '.join(_TYPES)}, got {kind!r:.60}")
        default = next((child.content for child in key.children if _tag(child) == "default"), None)
        aims = ("node", "edge", "graph") if key.text("for", "all") == "all" else (key.text("for"),)
        for aim in aims:
            keys[aim, key.text("id")] = (key.text("attr.name"), kind, default)
    return keys


def _data(element: Element, kind: str, keys: Keys) -> dict[str, Any]:
    """Return the values of an element by their names, those of keys with a default included."""
    texts = {key: keys[key][2] for key in keys if key[0] == kind and keys[key][2] is not None}
    for child in element.children:
        if _tag(child) == "data" and (kind, child.text("key")) in keys:
            texts[kind, child.text("key")] = child.content
        elif _tag(child) not in ("data", "desc") and kind != "graph":
            child.fail(f"is not known inside <{kind}>; known: data")
    out: dict[str, Any] = {}
    for one, text in texts.items():
        name, form, _ = keys[one]
        try:
            value = _TYPES[form](text or "")
        except (ValueError, KeyError):
            element.fail(f"{name} must be of the type {form}, got {text!r:.60}")
        out[name] = _numbers(element, value) if name == "coordinates" and kind == "node" else value
    return out


def _numbers(element: Element, text: object) -> list[int]:
    try:
        return [int(word) for word in str(text).split()]
    except ValueError:
        element.fail(f"coordinates are whole numbers with blanks between, got {text!r:.60}")


def _ends(element: Element, kind: str, directed: bool) -> dict[str, Any]:
    if kind == "node":
        return {"id": element.text("id")}
    if "directed" in element.attributes and _direction(element, "directed", ("true", "false")) != directed:
        element.fail("has another direction than edgedefault; write all edges in one direction, or all in both")
    return {"source": element.text("source"), "target": element.text("target")}


def _direction(element: Element, key: str, words: tuple[str, str]) -> bool:
    text = element.text(key)
    return text == words[0] if text in words else element.fail(f"{key} must be {' or '.join(words)}, got {text!r:.60}")
