"""A cluster that comes with a request: its tables are those of ``cluster.toml``, but no file is opened for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from commsim.core.errors import InputError
from commsim.core.files.fields import TableFields
from commsim.core.limits import without_files
from commsim.placement.cluster import Cluster, read_cluster
from commsim.placement.cluster_schema import cluster_schema
from topologies import at_most

from .limits import MAX_NAME, MAX_NETWORK_LINKS, MAX_NETWORK_NODES, MAX_NODES, MAX_PARAMETERS, MAX_TEXT

SOURCE = "cluster"  # what messages of the reader name in place of a file


def read_posted_cluster(tables: Mapping[str, Any]) -> Cluster:
    """Read the tables of a cluster as :func:`commsim.read_cluster` does, without files and code.

    Raises
    ------
    InputError
        Naming the field that is wrong; also if the topology names a file, or anything is larger than a request's
        limits.
    """
    _check_lengths(tables)
    if "file" in TableFields(tables, SOURCE).table("topology"):
        raise InputError(f"{SOURCE}: topology.file: a request cannot name a file; --cluster FILE at the start can")
    with without_files(), at_most(MAX_NETWORK_NODES, MAX_NETWORK_LINKS):
        cluster = read_cluster(dict(tables))
    if len(cluster.network.endpoints) > MAX_NODES:
        got = f"{cluster.network.name} has {len(cluster.network.endpoints)}"
        raise InputError(f"{SOURCE}: a request's cluster has at most {MAX_NODES} nodes for ranks, {got}")
    return cluster


def _check_lengths(tables: Mapping[str, Any]) -> None:
    """Refuse names and texts without bounds, before anything is made of them."""
    top = TableFields(tables, SOURCE)
    for table, most, longest in (
        (top.table("topology"), MAX_PARAMETERS, MAX_TEXT), (top.table("hosts").table("per_host"), MAX_NODES, MAX_NAME),
        (top.table("hosts").table("busy"), MAX_NODES, MAX_NAME),
    ):  # fmt: skip
        keys = list(table)
        if len(keys) > most:
            table.fail(None, f"has at most {most} fields, got {len(keys)}")
        for key in keys:
            if len(key) > MAX_NAME:
                table.fail(key, f"is a name of at most {MAX_NAME} letters, got {len(key)}")
            value = table.raw(key)
            if isinstance(value, (str, list)) and len(value) > longest:
                table.fail(key, f"has at most {longest} letters or members, got {len(value)}")


def posted_cluster_schema() -> dict[str, Any]:
    """Return the JSON Schema of the request: that of the file, without the way by another file."""
    schema = cluster_schema()
    ways = schema["properties"]["topology"]["oneOf"]
    schema["properties"]["topology"]["oneOf"] = [way for way in ways if way["required"] != ["file"]]
    return schema | {"title": "Cluster"}
