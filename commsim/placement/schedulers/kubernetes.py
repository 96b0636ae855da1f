"""Network descriptions for Kubernetes: Volcano's HyperNodes, Kueue's Topology, and the files of NVIDIA's topograph."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from commsim.core.errors import InputError, located
from commsim.core.files.fields import TableFields
from commsim.core.files.whole_files import parse_json
from commsim.core.names.hostlist import check_name, compress_hosts, expand_hosts, split_hosts
from commsim.formats.markup import read_yaml, write_yaml

from .fabric_tree import SwitchTree, require_unique, tree_from, without_unlabelled_top
from .kube_nodes import LABEL_SETS

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_LONGEST_LABEL, _LONGEST_NAME = 63, 253
_MAX_LEVELS = 16


def write_volcano(tree: SwitchTree, comments: tuple[str, ...] = ()) -> str:
    """Write a HyperNode for every switch; its tier is 1 above nodes, and grows upwards.

    Raises
    ------
    InputError
        If a node's name is not one that Kubernetes allows, or two switches' names differ only in what it does not.
    """
    tier, name = tree.tiers(), _object_names(tree)
    documents = [
        {
            "apiVersion": "topology.volcano.sh/v1alpha1",
            "kind": "HyperNode",
            "metadata": {"name": name[switch.name]},
            "spec": {
                "tier": tier[switch.name],
                "members": [_member("Node", _node(node)) for node in switch.nodes]
                + [_member("HyperNode", name[child]) for child in switch.switches],
            },
        }
        for switch in tree.from_below()
    ]
    return write_yaml(documents, comments)


def tier_labels(labels: Sequence[str], n_tiers: int) -> Sequence[str]:
    """Return the labels that name a node's switches, the closest first: those of the cluster, or topograph's.

    Raises
    ------
    InputError
        If there are more tiers of switches than labels.
    """
    labels = labels or LABEL_SETS[0]
    if n_tiers > len(labels):
        raise InputError(f"{n_tiers} tiers of switches need as many labels, and there are {', '.join(labels)}")
    return labels[:n_tiers]


def write_kueue(
    tree: SwitchTree, comments: tuple[str, ...] = (), name: str = "commsim", labels: Sequence[str] = ()
) -> str:
    """Write a Topology of one label for each tier, the farthest first, and the host's name last.

    The labels that nodes need are those of the cluster, if it has some, or those that topograph sets. For clusters
    without it, comments say how to set them.

    Raises
    ------
    InputError
        If the nodes are not all equally deep, there are more tiers than Kueue takes or than labels, or a name is not
        allowed.
    """
    tree = without_unlabelled_top(tree, labels)
    layers = {_node(node): above for node, above in tree.layers().items()}
    n_tiers = len(next(iter(layers.values())))
    for node, above in layers.items():
        if len(above) != n_tiers:
            raise InputError(f"Kueue needs nodes below equally many switches: {node} has {len(above)}, the first one "
                             f"{n_tiers}")  # fmt: skip
        for switch in above:
            if len(switch) > _LONGEST_LABEL:
                raise InputError(f"the value of a label has at most {_LONGEST_LABEL} characters, got {switch!r}")
    if n_tiers + 1 > _MAX_LEVELS:
        raise InputError(f"Kueue takes at most {_MAX_LEVELS} levels, got {n_tiers + 1}")
    keys = tier_labels(labels, n_tiers)
    levels = [{"nodeLabel": key} for key in reversed(keys)]
    document = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Topology",
        "metadata": {"name": name},
        "spec": {"levels": [*levels, {"nodeLabel": "kubernetes.io/hostname"}]},
    }
    if labels:  # the nodes have them
        return write_yaml([document], comments)
    commands = tuple(
        f"kubectl label node {node} " + " ".join(f"{key}={s}" for key, s in zip(keys, above, strict=True))
        for node, above in layers.items()
    )
    return write_yaml([document], (*comments, "where topograph does not set the labels:", *commands))


def object_name(name: str, what: str) -> str:
    """Return a name that Kubernetes allows.

    Raises
    ------
    InputError
        If it does not.
    """
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        raise InputError(f"{what} has no name that Kubernetes allows")
    return name


def _object_names(tree: SwitchTree) -> dict[str, str]:
    """By switch, its name in lower case with - in place of what Kubernetes does not allow."""
    names: dict[str, str] = {}
    for switch in tree.switches:
        name = re.sub(r"[^a-z0-9.-]+", "-", switch.name.lower()).strip("-.")
        object_name(name, f"switch {switch.name!r}")
        if name in names.values():
            raise InputError(f"switch {switch.name!r} and another one are both {name!r} in Kubernetes")
        names[switch.name] = name
    return names


def _member(kind: str, name: str) -> dict[str, Any]:
    return {"type": kind, "selector": {"exactMatch": {"name": name}}}


def _node(name: str) -> str:
    if not _NAME.fullmatch(name) or len(name) > 253:
        raise InputError(f"node {name!r} is not a name of a Kubernetes node: lower-case letters, digits, - and .")
    return name


def read_topograph_model(text: str, path: str = "model.yaml") -> SwitchTree:
    """Read a model: ``switches`` by name, and ``blocks`` of nodes on a switch; older ones have ``nodes`` on switches.

    Only the tree is read: labels, annotations, nodes' types and capacity blocks are passed over.

    Raises
    ------
    InputError
        Naming the field that is wrong.
    """
    tree = read_yaml(text, path)
    if not isinstance(tree, dict):
        raise InputError(f"{path}: expected a mapping, got {type(tree).__name__}")
    top = TableFields(tree, path)
    below: dict[str, tuple[list[str], list[str]]] = {}
    switches = top.table("switches")
    for name in switches:
        if isinstance(switches.raw(name), str):  # nothing is said about it
            below[check_name(name, "a switch")] = ([], [])
            continue
        fields = switches.table(name)
        children = fields.items("switches", str, "the name of a switch") if "switches" in fields else []
        nodes = fields.items("nodes", str, "the name of nodes") if "nodes" in fields else []
        below[check_name(name, "a switch")] = (_expanded(children), _expanded(nodes))
    for block in top.tables("blocks") if "blocks" in top else []:
        name = block.text("switch")
        below.setdefault(check_name(name, "a switch"), ([], []))[1].extend(
            _expanded(block.items("nodes", str, "the name of nodes"))
        )
    for name in {child: None for children, _ in below.values() for child in children if child not in below}:
        below[name] = ([], [])
    with located(path):
        return _each_once(tree_from(below))


def write_topograph_model(tree: SwitchTree, comments: tuple[str, ...] = ()) -> str:
    """Write a model; :func:`read_topograph_model` gives the same tree back, without speeds, in another order."""
    switches = {check_name(s.name, "a switch"): {"switches": list(s.switches)} for s in tree.switches if s.switches}
    blocks = [
        {"switch": check_name(s.name, "a switch"), "nodes": split_hosts(compress_hosts(s.nodes))}
        for s in tree.switches
        if s.nodes
    ]
    return write_yaml([{"switches": switches, "blocks": blocks}], comments)


def _each_once(tree: SwitchTree) -> SwitchTree:
    """Refuse a node below two switches: labels of a node name one switch of each tier."""
    for node, (first, second, *_) in tree.shared.items():
        raise InputError(f"node {node} is below {first} and below {second}")
    return tree


def read_topograph_graph(text: str, path: str = "graph.json") -> SwitchTree:
    """Read ``{"instances": [{"id": ..., "network_layers": [closest, ..., farthest]}]}``.

    Raises
    ------
    InputError
        Naming the field that is wrong; also if two instances have a switch below different ones.
    """
    try:
        tree = parse_json(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: {str(error).splitlines()[0] or 'nested too deeply'}") from None
    if not isinstance(tree, dict):
        raise InputError(f"{path}: expected a table at the top level, got {type(tree).__name__}")
    below: dict[str, tuple[dict[str, None], list[str]]] = {}
    ids = []
    for instance in TableFields(tree, path).tables("instances"):
        ids.append(check_name(instance.text("id"), "an instance"))
        layers = instance.items("network_layers", str, "the name of a switch")
        if not layers:
            instance.refuse("network_layers", "at least one switch, the closest first")
        for k, layer in enumerate(layers):
            children, nodes = below.setdefault(check_name(layer, "a switch"), ({}, []))
            if k:
                children[layers[k - 1]] = None
            else:
                nodes.append(ids[-1])
    with located(path):
        require_unique(ids, "instance")
        return _each_once(tree_from(below))


def write_topograph_graph(tree: SwitchTree) -> str:
    """Write what topograph's graph engine would answer; :func:`read_topograph_graph` reads it."""
    instances = [{"id": node, "network_layers": list(layers)} for node, layers in tree.layers().items()]
    return json.dumps({"instances": instances}, indent=1) + "\n"


def _expanded(lists: list[str]) -> list[str]:
    return [name for text in lists for name in expand_hosts(text)]
