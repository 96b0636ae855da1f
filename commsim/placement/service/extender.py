"""Scheduler extender protocol of Kubernetes: what a request asks, and the answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from commsim.core.errors import InputError
from commsim.core.files.fields import TableFields
from commsim.core.units import count_text

from .limits import MAX_NODES
from .models import ExtenderArgs
from .rating import Rating
from .state import JobRecord


def names_of(args: ExtenderArgs) -> list[str]:
    """Return the names of the nodes in question.

    Raises
    ------
    InputError
        If a whole node has no name, or there are too many.
    """
    if args.NodeNames is not None:
        return args.NodeNames
    items = TableFields(args.Nodes or {}, "request", ("Nodes",)).tables("items")
    if len(items) > MAX_NODES:
        raise InputError(f"request: at most {MAX_NODES} nodes at once, got {len(items)}")
    return [item.table("metadata").text("name") for item in items]


def lacking(asked: JobRecord | None, ratings: Mapping[str, Rating] | None) -> str | None:
    """Say why no node will do for a pod: its job needs more GPUs than are free on all hosts; None where they suffice.

    A pod that is bound before the rest of its job has room keeps its GPUs from others, and computes nothing.
    """
    if asked is None or ratings is None:
        return None
    n_free = sum(rating.n_free for rating in ratings.values())
    if asked.n_left <= n_free:
        return None
    more = " more" if asked.placed else ""
    return f"job {asked.job.name} needs {asked.n_left}{more} GPUs, {n_free} are free"


def filter_result(
    args: ExtenderArgs,
    ratings: Mapping[str, Rating] | None,
    pod_gpus: int,
    min_score: float | None,
    lacks: str | None = None,
) -> dict[str, Any]:
    """Answer a filter request.

    Parameters
    ----------
    args : ExtenderArgs
        The request.
    ratings : mapping of str to Rating, or None
        Rating of each host; None for a pod of no known job, which may go anywhere.
    pod_gpus : int
        Number of GPUs that the pod needs.
    min_score : float, optional
        Nodes with a link whose score is less are refused.
    lacks : str, optional
        Why no host will do, from :func:`lacking`.

    Returns
    -------
    dict
        An ExtenderFilterResult.
    """
    failed: dict[str, str] = {}
    never: dict[str, str] = {}
    names = names_of(args)
    for name in names if ratings is not None else ():
        rating = ratings.get(name) if ratings is not None else None
        if rating is None:
            never[name] = "commsim: not a host of the cluster's file"
        elif rating.n_free < pod_gpus:
            failed[name] = f"commsim: {count_text(rating.n_free, 'GPU')} free, the pod needs {pod_gpus}"
        elif lacks is not None:
            failed[name] = f"commsim: {lacks}"
        elif min_score is not None and rating.worst < min_score:
            failed[name] = f"commsim: score {rating.worst:.3f} of {rating.worst_link} is below {min_score:g}"
    good = [name for name in names if name not in failed and name not in never]
    nodes = None
    if args.Nodes is not None:
        kept = set(good)
        nodes = args.Nodes | {"items": [item for item in args.Nodes["items"] if item["metadata"]["name"] in kept]}
    return {
        "Nodes": nodes,
        "NodeNames": good if args.Nodes is None else None,
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
    return [{"Host": name, "Score": points.get(name, 0)} for name in names_of(args)]
