"""Scheduler extender protocol of Kubernetes: requests and answers.

Field names are those of its Go types; they are read whatever their case, since that is what its own decoder does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from commsim.core.errors import InputError
from commsim.files.fields import Fields

from .rating import Rating

_FIELDS = ("Pod", "Nodes", "NodeNames")
MAX_NODES = 20_000


@dataclass(frozen=True, slots=True)
class ExtenderArgs:
    """A request.

    Parameters
    ----------
    pod : Fields
        The pod, as in its manifest.
    names : list of str
        Of the nodes in question.
    nodes : dict or None
        The whole list of nodes, if the scheduler does not keep nodes with the extender (nodeCacheCapable: false).
    """

    pod: Fields
    names: list[str]
    nodes: dict[str, Any] | None


def read_args(tree: object) -> ExtenderArgs:
    """Read ExtenderArgs.

    Raises
    ------
    InputError
        Naming the field that is wrong.
    """
    if not isinstance(tree, dict):
        raise InputError(f"request: expected ExtenderArgs, an object, got {type(tree).__name__}")
    known = {name.lower(): name for name in _FIELDS}
    given: dict[str, Any] = {}
    for key, value in tree.items():
        name = known.get(key.lower())
        if name is None:
            raise InputError(f"request: {key[:60]!r} is not a field here; known: {', '.join(_FIELDS)}")
        if name in given:
            raise InputError(f"request: {name} is there twice")
        given[name] = value
    fields = Fields(given, "request")
    pod = fields.table("Pod")
    if given.get("Pod") is None:
        fields.refuse("Pod", "a pod")
    names, nodes = given.get("NodeNames"), given.get("Nodes")
    if (names is None) == (nodes is None):
        got = "neither" if names is None else "both"
        raise InputError(f"request: needs one of NodeNames (nodeCacheCapable: true) and Nodes, got {got}")
    if names is not None:
        names = fields.items("NodeNames", str, "the name of a node")
        nodes = None
    else:
        items = fields.table("Nodes").tables("items")
        names = [item.table("metadata").text("name") for item in items]
    if len(names) > MAX_NODES:
        raise InputError(f"request: at most {MAX_NODES} nodes at once, got {len(names)}")
    return ExtenderArgs(pod, names, nodes)


def filter_result(
    args: ExtenderArgs, ratings: Mapping[str, Rating] | None, pod_gpus: int, min_score: float | None
) -> dict[str, Any]:
    """Answer a filter request.

    Parameters
    ----------
    args : ExtenderArgs
        The request.
    ratings : mapping of str to Rating, or None
        By host; None for a pod of no known job, which may go anywhere.
    pod_gpus : int
        How many GPUs the pod needs.
    min_score : float, optional
        Nodes whose score is less are refused.

    Returns
    -------
    dict
        An ExtenderFilterResult.
    """
    failed: dict[str, str] = {}
    never: dict[str, str] = {}
    for name in args.names if ratings is not None else ():
        rating = ratings.get(name) if ratings is not None else None
        if rating is None:
            never[name] = "commsim: not a host of the cluster's file"
        elif rating.n_free < pod_gpus:
            failed[name] = f"commsim: {rating.n_free} GPUs free, the pod needs {pod_gpus}"
        elif min_score is not None and rating.score < min_score:
            failed[name] = f"commsim: score {rating.score:.3f} is below {min_score:g}; worst link {rating.worst_link}"
    good = [name for name in args.names if name not in failed and name not in never]
    nodes = None
    if args.nodes is not None:
        names = set(good)
        items = [item for item in args.nodes["items"] if item["metadata"]["name"] in names]
        nodes = args.nodes | {"items": items}
    return {
        "Nodes": nodes,
        "NodeNames": good if args.nodes is None else None,
        "FailedNodes": failed,
        "FailedAndUnresolvableNodes": never,
        "Error": "",
    }


def failed_result(message: str) -> dict[str, Any]:
    """Answer a filter request whose pod describes its job wrongly: the scheduler shows the message to the user."""
    return {"Nodes": None, "NodeNames": None, "FailedNodes": {}, "FailedAndUnresolvableNodes": {}, "Error": message}


def host_priorities(args: ExtenderArgs, ratings: Mapping[str, Rating] | None) -> list[dict[str, Any]]:
    """Answer a prioritize request: a HostPriorityList, 0 to 10 for each node; all 0 for a pod of no known job."""
    points = {name: rating.points for name, rating in (ratings or {}).items()}
    return [{"Host": name, "Score": points.get(name, 0)} for name in args.names]
