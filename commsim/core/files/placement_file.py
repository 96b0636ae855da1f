"""A placement in a file: names of nodes and links in TOML or JSON, their numbers in npz, names inside a schedule's npz.

The file of a schedule may hold the placement that it was made for, since routes that are pinned belong to both.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.files.opening import path_of
from commsim.core.names.nodes_and_links import find_link, find_node, host_names, link_names
from commsim.core.network import Network
from commsim.core.pinned_routes import PinnedRoutes
from commsim.core.placement import Placement

from .fields import TableFields
from .npz import Archive, read_archive, write_archive
from .whole_files import read_tree, write_tree

Arrays = dict[str, NDArray[Any]]
_ROUTES = {"route_ends": np.int32, "route_first": np.int64, "route_link": np.int32}


def read_placement(path: str | Path, network: Network, job: str | None = None) -> Placement:
    """Read a placement on `network` from a .toml, .json or .npz file, or from the JSON of ``commsim place``.

    Parameters
    ----------
    job : str, optional
        Job of the first candidate of ``commsim place``; not needed where there is one.

    Raises
    ------
    InputError
        If the file names a node or a link that the network does not have, more ranks of a host than it has GPUs, or is
        wrong in another way.
    """
    path = path_of(path, "placement")
    if path.suffix == ".npz":
        archive = read_archive(path, "placement")
        nodes = archive.take("nodes", np.int32)
        routes = _take_routes(archive)
        archive.finish()
        if nodes.size and not 0 <= nodes.min() <= nodes.max() < network.n_nodes:
            bad = next(node for node in nodes if not 0 <= node < network.n_nodes)
            raise InputError(f"{path}: nodes must be 0..{network.n_nodes - 1} of {network.name}, got {bad}")
        return _placement(path, nodes.tolist(), routes)
    top = TableFields(read_tree(path), path)
    if "candidates" in top:
        fields, key = _of_candidate(top, job)
        return _placement(path, _seats(fields, key, network), None)
    top.schema(required=False)
    nodes_of_ranks = _seats(top, "placement", network)
    routes = _read_routes(top, network) if "routes" in top else None
    top.finish()
    return _placement(path, nodes_of_ranks, routes)


def _of_candidate(top: TableFields, job: str | None) -> tuple[TableFields, str]:
    """Return the placements of the first candidate of ``commsim place``, and the name of the job that is asked for."""
    candidates = top.tables("candidates")
    if not candidates:
        top.fail("candidates", "must not be empty")
    placements = candidates[0].table("placement")
    names = list(placements)
    if job is None and len(names) == 1:
        return placements, names[0]
    if job not in names:
        got = "has several jobs" if job is None else f"has no job {job!r}"
        placements.fail(None, f"{got}; name one after a colon, as in FILE.json:{names[0]}: {', '.join(names)}")
    return placements, job


def _seats(fields: TableFields, key: str, network: Network) -> list[int]:
    """Return the node of each rank; the name of a host with GPUs is the next one of these that no rank has."""
    names = fields.items(key, str, "the name of a node")
    index = {name: i for i, name in enumerate(network.nodes)}
    gpus: dict[str, list[int]] = {}
    is_seat = np.isin(np.arange(network.n_nodes), network.endpoints)
    for node, host in enumerate(host_names(network)) if (network.machine >= 0).any() else ():
        if is_seat[node] and network.machine[node] >= 0 and network.nodes[node] not in names:
            gpus.setdefault(host, []).append(node)
    nodes = []
    for i, name in enumerate(names):
        if name in gpus and not (name in index and is_seat[index[name]]):
            if not gpus[name]:
                fields.member(key, i, f"must be on another host: {name} has no GPU left for rank {i}")
            nodes.append(gpus[name].pop(0))
        elif name in index:
            nodes.append(index[name])
        else:
            fields.member(key, i, f"must be a node of {network.name}, got {name!r}")
    return nodes


def write_placement(placement: Placement, path: str | Path, network: Network | None = None) -> None:
    """Write a placement; TOML and JSON hold names, so they need the network.

    Parameters
    ----------
    placement : Placement
        What to write.
    path : path
        Its suffix says how.
    network : Network, optional
        Network whose nodes it names; not needed for npz.

    Raises
    ------
    InputError
        If names are needed without a network, or it has too few nodes.
    """
    routes = placement.routes
    if Path(path).suffix == ".npz":
        arrays: Arrays = {"nodes": placement.nodes}
        if routes is not None:
            arrays |= {"route_ends": routes.ends.ravel(), "route_first": routes.first, "route_link": routes.link}
        write_archive(path, "placement", {}, arrays)
        return
    if network is None:
        raise InputError(f"{path}: a placement is saved by names of nodes: give its network, or save it as .npz")
    _require_on(placement, path, network)
    tree: dict[str, Any] = {"schema": 1, "placement": [network.nodes[node] for node in placement.nodes]}
    if routes is not None:
        rows, all_names = np.split(routes.link, routes.first[1:-1]), link_names(network)
        tree["routes"] = [
            {"src": src, "dst": dst, "channel": channel, "links": [all_names[link] for link in links]}
            for (src, dst, channel), links in zip(routes.ends.tolist(), rows, strict=True)
        ]
    write_tree(path, tree)


def named_placement(placement: Placement, path: str | Path, network: Network) -> tuple[dict[str, Any], Arrays]:
    """Return what a schedule's file keeps of the placement that it was made for: a header, and arrays.

    Parameters
    ----------
    placement : Placement
        What to keep.
    path : path
        The file, for messages.
    network : Network
        Network whose nodes and links it names.
    """
    _require_on(placement, path, network)
    header: dict[str, Any] = {"nodes": [network.nodes[node] for node in placement.nodes]}
    routes = placement.routes
    if routes is None:
        return header, {}
    used, number = np.unique(routes.link, return_inverse=True)
    all_names = link_names(network)
    header["links"] = [all_names[link] for link in used]
    arrays: Arrays = {"route_ends": routes.ends.ravel(), "route_first": routes.first}
    return header, arrays | {"route_link": number.astype(np.int32).ravel()}


def take_named_placement(archive: Archive, network: Network | None) -> Placement | None:
    """Take from a schedule's file the placement that it was made for.

    Parameters
    ----------
    archive : Archive
        The file.
    network : Network, optional
        Network in which its names are looked up; without one they are only taken.

    Returns
    -------
    Placement or None
        None where the file holds none, or no network is given.

    Raises
    ------
    InputError
        If the network has no node or link of a name.
    """
    if "placement" not in archive.header:
        return None
    home = archive.header.table("placement")
    names = home.items("nodes", str, "the name of a node")
    links = home.items("links", str, "the name of a link") if "links" in home else None
    home.finish()
    routes = _take_routes(archive, None if links is None else len(links))
    if network is None:
        return None
    try:
        at = {name: node for node, name in enumerate(network.nodes)}
        nodes = [at[name] if name in at else find_node(network, name) for name in names]
        if routes is not None:
            by_name = {name: link for link, name in enumerate(link_names(network))}
            found = [by_name[name] if name in by_name else find_link(network, name) for name in links or ()]
            known = np.array(found, np.int32)
            routes = PinnedRoutes(routes.ends, routes.first, known[routes.link])
    except InputError as error:
        raise InputError(f"{archive.path} was made for another network: {error}") from None
    return _placement(archive.path, nodes, routes)


def _take_routes(archive: Archive, n_links: int | None = None) -> PinnedRoutes | None:
    if "route_ends" not in archive:
        return None
    ends, first, link = (archive.take(name, dtype) for name, dtype in _ROUTES.items())
    if n_links is not None and link.size and not 0 <= link.min() <= link.max() < n_links:
        raise InputError(f"{archive.path}: route_link must be 0..{n_links - 1}, got {link.min()} to {link.max()}")
    if len(ends) % 3:
        raise InputError(
            f"{archive.path}: route_ends must hold sender, receiver, channel of each route, got {len(ends)}"
        )
    try:
        return PinnedRoutes(ends, first, link)
    except InputError as error:
        raise InputError(f"{archive.path}: {error}") from None


def _read_routes(top: TableFields, network: Network) -> PinnedRoutes:
    routes = []
    for fields in top.tables("routes"):
        ends = (fields.whole("src"), fields.whole("dst"), fields.whole("channel") if "channel" in fields else 0)
        links = []
        for i, name in enumerate(fields.items("links", str, "the name of a link")):
            try:
                links.append(find_link(network, name))
            except InputError as error:
                fields.member("links", i, f"must be a link: {error}")
        fields.finish()
        routes.append((*ends, links))
    return PinnedRoutes.of(routes)


def _require_on(placement: Placement, path: str | Path, network: Network) -> None:
    if not 0 <= placement.nodes.min() <= placement.nodes.max() < network.n_nodes:
        raise InputError(f"{path}: the placement names a node that {network.name} does not have")
    if placement.routes is not None:
        placement.routes.check(network, placement.nodes)


def _placement(path: str | Path, nodes: list[int], routes: PinnedRoutes | None = None) -> Placement:
    if not nodes:
        raise InputError(f"{path}: placement must name at least one node")
    return Placement(np.array(nodes, np.int32), routes)
