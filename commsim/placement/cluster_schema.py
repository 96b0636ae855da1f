"""The JSON Schema of a cluster's file, for editors and schedulers that write one."""

from __future__ import annotations

from typing import Any

from commsim.prediction.network_tables import MAX_GPUS

_GPUS = {"type": "integer", "minimum": 0, "maximum": MAX_GPUS}
_PARAMETER = {"type": ["string", "number", "boolean", "array"], "items": {"type": "integer"}}


def cluster_schema() -> dict[str, Any]:
    """Return the JSON Schema of ``cluster.toml``, whose tables are those of :func:`commsim.read_cluster`.

    Names of topologies, their parameters and the names of hosts are not checked by it: they depend on each other.
    """
    text = {"type": "string"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "cluster.toml, the cluster of commsim place",
        "type": "object",
        "required": ["topology"],
        "additionalProperties": False,
        "properties": {
            "topology": {
                "description": "network: a name with its parameters, a spec, or a file",
                "type": "object",
                "oneOf": [
                    {
                        "required": ["name"],
                        "properties": {
                            "name": {**text, "description": "topology, as in commsim topo list"},
                            "spec": False,
                            "file": False,
                        },
                        "additionalProperties": {**_PARAMETER, "description": "parameter of the topology"},
                    },
                    {
                        "required": ["spec"],
                        "properties": {"spec": {**text, "description": "such as leaf_spine:n_leaves=4,n_spines=2"}},
                        "additionalProperties": False,
                    },
                    {
                        "required": ["file"],
                        "properties": {"file": {**text, "description": "network file beside this one"}},
                        "additionalProperties": False,
                    },
                ],
            },
            "hosts": {
                "description": "GPUs of the hosts; where GPUs are nodes of the network, only busy",
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "gpus": {**_GPUS, "description": "GPUs of every host"},
                    "per_host": _by_host("GPUs of hosts that have another number"),
                    "busy": _by_host("GPUs that are taken"),
                    "block_sizes": {
                        "type": "array",
                        "items": {"type": "integer", "minimum": 1},
                        "description": "sizes of Slurm's topology/block, for place export",
                    },
                    "labels": {
                        "type": "array",
                        "items": text,
                        "description": "labels of nodes that name their switches, the closest first, for place export",
                    },
                    "inside": {**text, "description": "rate between a GPU and its host in runs, such as 300GBps"},
                },
            },
        },
    }


def _by_host(meaning: str) -> dict[str, Any]:
    return {"description": meaning, "type": "object", "additionalProperties": _GPUS}
