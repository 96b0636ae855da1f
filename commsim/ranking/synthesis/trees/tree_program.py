"""The schedule of packed trees: pieces of every root's share, pipelined down its trees; with routes and weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from commsim.core.errors import InputError
from commsim.core.pinned_routes import PinnedRoutes
from commsim.core.placement import Placement
from commsim.core.program import Program
from commsim.core.schedule import Schedule

from .tree_packing import SpanningTrees

# Channels have 15 bits.
MAX_TREES = 2**15


@dataclass(frozen=True, slots=True)
class TreePlan:
    """A schedule and where it runs.

    Parameters
    ----------
    schedule : Schedule
        Every tree is a channel, whose weight is the number of its unit trees.
    placement : Placement
        The ranks' nodes, and the route of each message.
    """

    schedule: Schedule
    placement: Placement


def plan_trees(
    operation: str,
    nodes: Sequence[int],
    up: Sequence[SpanningTrees],
    down: Sequence[SpanningTrees],
    n_pieces: int,
    root: int = 0,
) -> TreePlan:
    """Write the schedule in which data are summed up some trees and copied down others.

    A root's share is cut into pieces, and a piece into as many chunks as the root has unit trees; a tree of m units
    carries m chunks of every piece as one message. Where trees go both ways, a piece is copied as soon as its parts
    are summed, without a barrier between the two halves.

    Parameters
    ----------
    operation : str
        ``all_gather``, ``broadcast`` (trees down), ``reduce_scatter``, ``reduce`` (trees up) or ``all_reduce`` (both).
    nodes : sequence of int
        Node of each rank.
    up, down : sequence of SpanningTrees
        Those of a root have as many units in both, where both are used.
    n_pieces : int
        How often each tree is used, one piece after the other.
    root : int
        Root of a rooted operation.

    Raises
    ------
    InputError
        If there are more trees than channels.
    """
    if len(up) + len(down) > MAX_TREES:
        raise InputError(
            f"{len(up) + len(down)} trees are too many, at most {MAX_TREES} can have a channel: fewer trees"
        )
    n = len(nodes)
    units = [sum(tree.units for tree in down or up if tree.root == rank) for rank in range(n)]
    # Blocks of ranks are contiguous where the operation says so; else all roots' parts of a piece are.
    by_rank = operation in ("all_gather", "reduce_scatter")
    begin = np.cumsum([0, *units[:-1]]) * (n_pieces if by_rank else 1)
    step = units[0] if by_rank else sum(units)
    program = Program(n, n_pieces * sum(units))
    with program.repeat(n_pieces, chunk=step):
        for trees, channel in ((up, 0), (down, len(up))):
            _write(program, trees, channel, begin.tolist(), sums=trees is up)
    weights = np.array([tree.units for tree in (*up, *down)], np.float64)
    schedule = program.build(f"synthesized_{operation}", operation, root, weights=weights / weights.min(initial=np.inf))
    routes = [
        (b, a, channel, path) if channel < len(up) else (a, b, channel, path)
        for channel, tree in enumerate((*up, *down))
        for a, b, path in zip(tree.src, tree.dst, tree.paths, strict=True)
    ]
    return TreePlan(schedule, Placement(np.array(nodes), PinnedRoutes.of(routes)))


def _write(program: Program, trees: Sequence[SpanningTrees], channel: int, begin: list[int], sums: bool) -> None:
    """Write one piece of all trees, a hop per depth: from the root on, or towards it."""
    at = dict(enumerate(begin))
    hops: dict[int, list[tuple[int, int, int, int, int]]] = {}
    for number, tree in enumerate(trees):
        chunk = at[tree.root]
        at[tree.root] += tree.units
        for a, b, depth in zip(tree.src, tree.dst, tree.depths, strict=True):
            hops.setdefault(depth, []).append((a, b, chunk, tree.units, channel + number))
    for depth in sorted(hops, reverse=sums):
        a, b, chunk, count, channels = np.array(hops[depth]).T
        if sums:
            program.reduce(chunk, src=b, dst=a, count=count, channel=channels)
        else:
            program.copy(chunk, src=a, dst=b, count=count, channel=channels)
