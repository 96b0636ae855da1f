"""Oobleck: pipeline templates that use whatever nodes are left, and the traffic of recovery.

References
----------
Jang et al., "Oobleck: resilient distributed training of large models using pipeline templates", SOSP 2023, sections 4
and 5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from commsim.core.errors import InputError


@dataclass(frozen=True, slots=True)
class Copy:
    """One layer that a node must get from another: which, from where, to where, and how many bytes."""

    layer: int
    src: str
    dst: str
    size: float


def template_sizes(n_nodes: int, fewest: int, n_failures: int) -> tuple[int, ...]:
    """Nodes of each pipeline template: all numbers from the fewest that hold the model to what f others leave.

    With f + 1 pipelines there is a copy of every layer after any f failures, so the largest has N - f n0 nodes. Larger
    than 2 n0 - 1 none need be for every number of nodes to be a sum of templates, but may be faster.

    Raises
    ------
    InputError
        If there are too few nodes for f + 1 pipelines.
    """
    if min(fewest, n_nodes) < 1 or n_failures < 0 or n_nodes < (n_failures + 1) * fewest:
        raise InputError(
            f"to outlive {n_failures} failures takes {n_failures + 1} pipelines of at least {fewest} nodes, "
            f"got {n_nodes} nodes"
        )
    return tuple(range(fewest, n_nodes - n_failures * fewest + 1))


def pipelines_of(n_nodes: int, sizes: Sequence[int], fewest_pipelines: int) -> list[tuple[int, ...]]:
    """Sizes of pipelines that use exactly all nodes, each way once; empty when there is none.

    Parameters
    ----------
    n_nodes : int
        That are left.
    sizes : sequence of int
        Of the templates.
    fewest_pipelines : int
        f + 1.
    """
    found: list[tuple[int, ...]] = []

    def extend(left: int, chosen: tuple[int, ...]) -> None:
        if not left and len(chosen) >= fewest_pipelines:
            found.append(chosen)
        for size in sizes:
            if size <= left and (not chosen or size >= chosen[-1]):
                extend(left - size, (*chosen, size))

    extend(n_nodes, ())
    return found


def even_stages(n_layers: int, nodes: Sequence[str]) -> dict[str, range]:
    """Give each node of a pipeline its layers, as even as can be."""
    if not 1 <= len(nodes) <= n_layers:
        raise InputError(f"a pipeline of {n_layers} layers has 1..{n_layers} nodes, got {len(nodes)}")
    bounds = [i * n_layers // len(nodes) for i in range(len(nodes) + 1)]
    return {node: range(bounds[i], bounds[i + 1]) for i, node in enumerate(nodes)}


def recovery_copies(
    before: Mapping[str, Sequence[int]], after: Mapping[str, Sequence[int]], layer_bytes: Sequence[float]
) -> tuple[Copy, ...]:
    """Which layers move when nodes have failed: those that a node now needs and does not hold, from one that does.

    Parameters
    ----------
    before : mapping of node to layers
        That survivors held, of all pipelines; a node that failed is not among them, or is not in `after`.
    after : mapping of node to layers
        That each node has from now on.
    layer_bytes : sequence of float, bytes
        Weights and optimizer states of each layer.

    Returns
    -------
    tuple of Copy
        From the holder that has sent least so far.

    Raises
    ------
    InputError
        If a layer has no holder left: the last checkpoint must be read.
    """
    sent = dict.fromkeys((node for node in before if node in after), 0.0)
    copies: list[Copy] = []
    for node, layers in after.items():
        for layer in sorted(set(layers) - set(before.get(node, ()))):
            holders = [other for other in sent if layer in before[other]]
            if not holders:
                raise InputError(f"layer {layer} is lost with all nodes that held it; a checkpoint must be read")
            source = min(holders, key=lambda other: (sent[other], other))
            sent[source] += layer_bytes[layer]
            copies.append(Copy(layer, source, node, layer_bytes[layer]))
    return tuple(copies)
