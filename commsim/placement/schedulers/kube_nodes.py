"""Nodes of Kubernetes as ``kubectl get nodes -o json`` prints them: their switches by labels, and their GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from commsim.core.errors import InputError, located
from commsim.core.files.fields import TableFields
from commsim.core.files.whole_files import parse_json
from commsim.core.names.hostlist import check_name
from commsim.core.spec import is_whole
from commsim.core.units import count_text
from commsim.prediction.network_tables import MAX_GPUS

from .fabric_tree import SwitchTree, require_unique, tree_from

# Labels with the switches above a node, the closest first: topograph 1.x, 0.x since 0.2, its first release, and before.
LABEL_SETS: tuple[tuple[str, ...], ...] = (
    tuple(f"fabric.topograph.run/tier-{tier}" for tier in range(8)),
    tuple(f"network.topology.nvidia.com/{name}" for name in ("leaf", "spine", "core")),
    tuple(f"network.topology.nvidia.com/{name}" for name in ("block", "spine", "datacenter")),
    tuple(f"topology.kubernetes.io/network-level-{level}" for level in range(1, 9)),
)
RESOURCE = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True)
class KubeNodes:
    """What is read.

    Parameters
    ----------
    tree : SwitchTree
        Switches over the nodes.
    gpus : dict of str to int
        GPUs of each node.
    busy : dict of str to int
        Those of nodes that take no pods: cordoned (``kubectl cordon``), or not ready.
    labels : tuple of str
        Labels that name the switches, the closest first.
    remarks : tuple of str
        What was left out.
    """

    tree: SwitchTree
    gpus: Mapping[str, int]
    busy: Mapping[str, int]
    labels: tuple[str, ...]
    remarks: tuple[str, ...] = ()


def read_kube_nodes(
    text: str, path: str = "nodes.json", labels: Sequence[str] = (), resource: str = RESOURCE
) -> KubeNodes:
    """Read a list of nodes.

    Parameters
    ----------
    text : str
        What ``kubectl get nodes -o json`` prints.
    path : str
        Its name in messages.
    labels : sequence of str
        Labels that name the switches above a node, the closest first; by default those that topograph sets, the first
        set of `LABEL_SETS` that a node has.
    resource : str
        Resource that counts GPUs.

    Raises
    ------
    InputError
        Naming the node and the label that is missing, or the field that is wrong.
    """
    try:
        tree = parse_json(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: {str(error).splitlines()[0] or 'nested too deeply'}") from None
    if not isinstance(tree, dict):
        raise InputError(f"{path}: expected a List of nodes, got {type(tree).__name__}")
    tree = {"items": [tree]} if tree.get("kind") == "Node" else tree  # of `kubectl get node NAME`
    items = [item for item in TableFields(tree, path).tables("items") if item.raw("kind") in (None, "Node")]
    if not items:
        raise InputError(f"{path}: has no nodes; `kubectl get nodes -o json` prints them")
    names = [check_name(item.table("metadata").text("name"), "a node") for item in items]
    with located(path):
        require_unique(names, "node")
    found = dict(zip(names, items, strict=True))
    counted = {name: _amount(item, resource) for name, item in found.items()}
    with_gpus = {name: n for name, n in counted.items() if n}
    if not with_gpus:
        raise InputError(f"{path}: no node has {resource} in status.allocatable")
    of = {name: _labels_of(found[name]) for name in with_gpus}
    used = _used_labels(of, labels, path)
    below: dict[str, tuple[dict[str, None], list[str]]] = {}
    for name, texts in of.items():
        above = [_switch(texts[label], label, name, path) for label in used]
        for k, switch in enumerate(above):
            children, nodes = below.setdefault(switch, ({}, []))
            if k:
                children[above[k - 1]] = None
            else:
                nodes.append(name)
    why = {name: reason for name in with_gpus if (reason := _closed(found[name]))}
    busy = {name: with_gpus[name] for name in why}
    n_left = len(names) - len(with_gpus)
    remarks: tuple[str, ...] = (f"{n_left} of {len(names)} nodes without {resource} are left out",) if n_left else ()
    if busy:
        takes = f"{count_text(len(busy), 'node')} {'takes' if len(busy) == 1 else 'take'} no pods"
        remarks += (f"{takes} ({', '.join(dict.fromkeys(why.values()))}): their GPUs are busy",)
    with located(path):
        return KubeNodes(tree_from(below), with_gpus, busy, used, remarks)


def _closed(item: TableFields) -> str:
    """Say why a node takes no pods; empty if it does."""
    if item.table("spec").raw("unschedulable") is True:
        return "unschedulable"
    status = item.table("status")
    conditions = status.tables("conditions") if "conditions" in status else []
    is_ready = all(one.raw("status") == "True" for one in conditions if one.raw("type") == "Ready")
    return "" if is_ready else "not ready"


def _labels_of(item: TableFields) -> dict[str, str]:
    labels = item.table("metadata").table("labels")
    return {key: value for key in labels if isinstance(value := labels.raw(key), str) and value}


def _used_labels(of: Mapping[str, Mapping[str, str]], wanted: Sequence[str], path: str) -> tuple[str, ...]:
    """Return the labels that all nodes have; of those that are asked for, each.

    Raises
    ------
    InputError
        Naming a node that lacks one.
    """
    first, texts = next(iter(of.items()))
    if wanted:
        used = tuple(wanted)
    else:
        used = next((tuple(key for key in keys if key in texts) for keys in LABEL_SETS if keys[0] in texts), ())
    if not used:
        known = ", ".join(keys[0] for keys in LABEL_SETS)
        raise InputError(f"{path}: node {first} has none of the labels {known}: name its own with --labels")
    for name, has in of.items():
        for label in used:
            if label not in has:
                who = "--labels names" if wanted else f"node {first} has"
                raise InputError(f"{path}: node {name} has no label {label}, which {who}")
    return used


def _switch(text: str, label: str, node: str, path: str) -> str:
    with located(f"{path}: node {node}: {label}"):
        return check_name(text, "a switch")


def _amount(item: TableFields, resource: str) -> int:
    """GPUs that pods may have of a node."""
    status = item.table("status")
    amount = status.table("allocatable" if "allocatable" in status else "capacity").raw(resource)
    text = str(0 if amount is None else amount)
    if not (is_whole(text, 5) and int(text) <= MAX_GPUS):
        status.fail("allocatable", f"{resource} must be a whole number 0..{MAX_GPUS}, got {text[:40]!r}")
    return int(text)
