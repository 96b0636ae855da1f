"""What schedulers of Kubernetes are told of a network: Volcano's HyperNodes and Kueue's Topology."""

from __future__ import annotations

import re
from typing import Any

from commsim.core.errors import InputError
from commsim.files.yaml_text import write_yaml

from .fabric_tree import Tree

LABEL = "fabric.topograph.run/tier-{}"
"""Label of a node that names its switch of a tier, 0 for the closest; topograph sets these."""

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_LONGEST_LABEL = 63
_MOST_LEVELS = 16


def write_volcano(tree: Tree, comments: tuple[str, ...] = ()) -> str:
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


def write_kueue(tree: Tree, comments: tuple[str, ...] = (), name: str = "commsim") -> str:
    """Write a Topology of one label for each tier, the farthest first, and the host's name last.

    The labels that nodes need are those that topograph sets. For clusters without it, comments say how to set them.

    Raises
    ------
    InputError
        If the nodes are not all equally deep, there are more tiers than Kueue takes, or a name is not allowed.
    """
    layers = {_node(node): above for node, above in tree.layers().items()}
    n_tiers = len(next(iter(layers.values())))
    for node, above in layers.items():
        if len(above) != n_tiers:
            raise InputError(f"Kueue wants nodes below equally many switches: {node} has {len(above)}, the first one "
                             f"{n_tiers}")  # fmt: skip
        for switch in above:
            if len(switch) > _LONGEST_LABEL:
                raise InputError(f"the value of a label has at most {_LONGEST_LABEL} characters, got {switch!r}")
    if n_tiers + 1 > _MOST_LEVELS:
        raise InputError(f"Kueue takes at most {_MOST_LEVELS} levels, got {n_tiers + 1}")
    levels = [{"nodeLabel": LABEL.format(tier)} for tier in reversed(range(n_tiers))]
    document = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Topology",
        "metadata": {"name": name},
        "spec": {"levels": [*levels, {"nodeLabel": "kubernetes.io/hostname"}]},
    }
    labels = tuple(
        f"kubectl label node {node} " + " ".join(f"{LABEL.format(tier)}={s}" for tier, s in enumerate(above))
        for node, above in layers.items()
    )
    return write_yaml([document], (*comments, "where topograph does not set the labels:", *labels))


def _object_names(tree: Tree) -> dict[str, str]:
    """By switch, its name in lower case with - in place of what Kubernetes does not allow."""
    names: dict[str, str] = {}
    for switch in tree.switches:
        name = re.sub(r"[^a-z0-9.-]+", "-", switch.name.lower()).strip("-.")
        if not _NAME.fullmatch(name) or len(name) > 253:
            raise InputError(f"switch {switch.name!r} has no name that Kubernetes allows")
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
