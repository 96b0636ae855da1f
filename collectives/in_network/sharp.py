"""SHARP's all-reduce: a tree of aggregation units in InfiniBand switches."""

from __future__ import annotations

from typing import Literal

from commsim.core.cost import LogGP
from commsim.core.program import Program
from commsim.core.schedule import Schedule
from commsim.routing.aggregator_placement import SwitchTree

from .. import collective
from .reduction_tree import Tree, all_reduce_chunk, read_tree, tree_cost

Mode = Literal["streaming", "low_latency"]
N_CHUNKS = {"streaming": 256, "low_latency": 1}


def sharp_cost(
    n_ranks: int,
    size: float,
    link: LogGP,
    mode: Mode = "streaming",
    n_chunks: int | None = None,
    tree: Tree | None = None,
) -> float:
    """Cost of k chunks up and down the tree; see :func:`reduction_tree.tree_cost`."""
    return tree_cost("sharp", read_tree("sharp", n_ranks, tree), size, link, n_chunks or N_CHUNKS[mode], None)


@collective(
    "all_reduce", cost=sharp_cost, helpers=SwitchTree(systems=("sharp:mode=streaming", "sharp:mode=low_latency"))
)
def sharp(n_ranks: int, mode: Mode = "streaming", n_chunks: int | None = None, tree: Tree | None = None) -> Schedule:
    """All-reduce in a switch tree, c = S/k: 2d(o+L+S/(kB)) + sum f gamma c + (k-1)max(o+S/(kB), f gamma c) seconds.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.
    mode : {"streaming", "low_latency"}
        Large messages in k = 256 chunks that follow each other up the tree, or one small message whole, k = 1.
    n_chunks : int, optional
        k instead of the mode's own.
    tree : tuple of int, optional
        Parent of each rank and then of each helper, -1 for the topmost. One aggregator above all ranks unless given;
        ``commsim run`` makes the tree of the network's switches, one unit wherever paths to its root join.

    Returns
    -------
    Schedule
        Every rank sends each chunk once and receives its sum once; lossless links need no window.

    Raises
    ------
    InputError
        If `tree` is no tree with the ranks as its leaves.

    Notes
    -----
    On every level an aggregator adds what f children send, in f gamma c if adding takes time; see
    :func:`collectives.in_network.reduction_tree.tree_cost`, also for unequal levels.

    References
    ----------
    Graham et al., "Scalable hierarchical aggregation protocol (SHArP)", COMHPC 2016; Graham et al., "SHARP
    streaming-aggregation hardware design and evaluation", ISC 2020.
    """
    shape = read_tree("sharp", n_ranks, tree)
    n_chunks = n_chunks or N_CHUNKS[mode]
    if n_ranks == 1:
        return Program(1, n_chunks).build()
    p = Program(n_ranks, n_chunks, n_helpers=shape.n_helpers)
    with p.repeat(n_chunks, chunk=1):
        all_reduce_chunk(p, shape)
    return p.build()
