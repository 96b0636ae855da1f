"""A cluster that comes with a request: its tables are those of ``cluster.toml``, but no file is opened for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from commsim.core.errors import InputError
from commsim.files.whole_files import SUFFIXES
from commsim.placement.cluster import Cluster, read_cluster
from commsim.placement.cluster_schema import cluster_schema
from commsim.scenario.inputs import ASTRA_SUFFIXES
from topologies.hosts.load import MACHINE_FILES

from .models import MAX_NODES

SOURCE = "cluster"  # what messages of the reader name in place of a file
# Ends of names of files that a topology can name: a client could read or run what the service's user can.
_FILE = re.compile(
    rf"({'|'.join(map(re.escape, (*SUFFIXES, *ASTRA_SUFFIXES, *MACHINE_FILES, '.py')))})(?![a-z])", re.IGNORECASE
)


def read_posted_cluster(tables: Mapping[str, Any]) -> Cluster:
    """Read the tables of a cluster as :func:`commsim.read_cluster` does.

    Raises
    ------
    InputError
        Naming the field that is wrong; also if the topology names a file, or has too many nodes for ranks.
    """
    topology = tables.get("topology")
    for key, value in topology.items() if isinstance(topology, Mapping) else ():
        if key == "file" or _FILE.search(str(value)):
            raise InputError(f"{SOURCE}: topology.{key}: a request cannot name a file; --cluster FILE at the start can")
    cluster = read_cluster(dict(tables))
    if len(cluster.network.endpoints) > MAX_NODES:
        got = f"{cluster.network.name} has {len(cluster.network.endpoints)}"
        raise InputError(f"{SOURCE}: a request's cluster has at most {MAX_NODES} nodes for ranks, {got}")
    return cluster


def posted_cluster_schema() -> dict[str, Any]:
    """Return the JSON Schema of the request: that of the file, without the way by another file."""
    schema = cluster_schema()
    ways = schema["properties"]["topology"]["oneOf"]
    schema["properties"]["topology"]["oneOf"] = [way for way in ways if way["required"] != ["file"]]
    return schema | {"title": "Cluster"}
