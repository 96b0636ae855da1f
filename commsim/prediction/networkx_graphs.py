"""Networks from and to graphs of networkx."""

from __future__ import annotations

from typing import Any

from commsim.core.errors import wrong_kind
from commsim.core.extras import of_extra
from commsim.core.files.network_file import node_link_of, read_node_link
from commsim.core.network import Network
from commsim.prediction.inputs import NetworkLike, network_of

# Number of a link: networkx keeps edges by their first node, and the order of links is part of a network.
ORDER = "order"


def to_networkx(network: NetworkLike) -> Any:
    """Return a directed graph of networkx: nodes with ``kind``, edges with ``rate_bps`` and ``delay_ns``.

    Parameters
    ----------
    network : str, Network or NetworkBuilder
        Network to convert.

    Raises
    ------
    InputError
        If networkx is not installed.

    Examples
    --------
    >>> import commsim as cs
    >>> graph = cs.to_networkx("star:n_hosts=4")
    >>> graph.number_of_edges()
    8
    >>> cs.from_networkx(graph) == cs.load_network("star:n_hosts=4")
    True
    """
    tree = node_link_of(network_of(network))
    for number, edge in enumerate(tree["edges"]):
        edge[ORDER] = number
    return of_extra("networkx").node_link_graph(tree, edges="edges")


def from_networkx(graph: Any) -> Network:
    """Return the network of a graph of networkx; edges of an undirected one go both ways.

    Parameters
    ----------
    graph : networkx.Graph
        Nodes have a ``kind`` (host, switch, ...), edges a ``rate_bps`` and, unless it is 0, a ``delay_ns``.

    Raises
    ------
    InputError
        If a field is missing or wrong, or networkx is not installed.
    """
    if not hasattr(graph, "is_multigraph"):
        raise wrong_kind("graph", "a graph of networkx", graph)
    tree = of_extra("networkx").node_link_data(graph, edges="edges")
    tree["edges"].sort(key=lambda edge: edge.get(ORDER, 0))
    tree["edges"] = [{key: value for key, value in edge.items() if key != ORDER} for edge in tree["edges"]]
    return read_node_link(tree, "the graph")
