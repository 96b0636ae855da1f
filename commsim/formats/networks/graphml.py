"""GraphML, through networkx: the fields of its node-link JSON, with lists as text since GraphML has none."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError
from commsim.core.formats.files import replacing
from commsim.core.formats.node_link import node_link_of, read_node_link
from commsim.core.formats.xml_tree import read_xml
from commsim.core.network import Network

_ORDER = "link"


def write_graphml(network: Network, path: str | Path) -> None:
    """Write a network; the file appears whole or not at all."""
    import networkx

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
        If the file declares a document type or an entity, is no GraphML, or its graph is no network.
    """
    import networkx

    top = read_xml(path)
    if top.tag.rpartition("}")[2].rpartition(":")[2] != "graphml":
        top.fail("is not GraphML: expected <graphml>")
    try:
        graph = networkx.read_graphml(io.BytesIO(Path(path).read_bytes()))
        tree = networkx.node_link_data(graph, edges="edges")
    except Exception as error:  # a wrong file fails in networkx, the XML library, or the type that a key names
        what = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(f"{path}: not GraphML that networkx reads: {what:.200}") from None
    return read_node_link(_with_lists(tree, path), path)


def _with_lists(tree: dict[str, Any], path: str | Path) -> dict[str, Any]:
    for node in tree["nodes"]:
        if "coordinates" in node:
            try:
                node["coordinates"] = [int(word) for word in str(node["coordinates"]).split()]
            except ValueError:
                got = f"{node['coordinates']!r:.60}"
                raise InputError(f"{path}: coordinates are whole numbers with blanks between, got {got}") from None
    orders = [edge.pop(_ORDER, None) for edge in tree["edges"]]
    for edge in tree["edges"]:
        if not tree["multigraph"]:
            edge.pop("id", None)
    if all(type(order) is int for order in orders):  # networkx groups edges by where they begin
        tree["edges"] = [edge for _, edge in sorted(zip(orders, tree["edges"], strict=True), key=lambda pair: pair[0])]
    graph = tree["graph"]
    tree["graph"] = {key: graph[key] for key in ("name", "routing") if key in graph}
    return tree
