"""SHARP's all-reduce: a tree of aggregation units in InfiniBand switches."""

from __future__ import annotations

from commsim.core.cost import LogGP
from commsim.core.schedule import Schedule

from .. import collective
from .reduction_tree import Tree, read_tree, tree_all_reduce, tree_cost


def sharp_cost(
    n_ranks: int, size: float, link: LogGP, n_chunks: int = 256, pool: int | None = None, tree: Tree | None = None
) -> float:
    """Cost of k chunks up and down the tree, at most `pool` of them under way; see :func:`reduction_tree.tree_cost`."""
    return tree_cost("sharp", read_tree("sharp", n_ranks, tree), size, link, n_chunks, pool)


@collective("all_reduce", cost=sharp_cost, systems=("sharp",))
def sharp(n_ranks: int, n_chunks: int = 256, pool: int | None = None, tree: Tree | None = None) -> Schedule:
    """All-reduce in a switch tree, c = S/k: 2d(o+L+S/(kB)) + sum f gamma c + (k-1)max(o+S/(kB), f gamma c) seconds.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.
    n_chunks : int
        k: a stream is many chunks that follow each other up the tree, a small message one.
    pool : int, optional
        Chunks that a rank may have under way; as many as there are, unless given.
    tree : tuple of int, optional
        Parent of each rank and then of each helper, -1 for the topmost. One aggregator above all ranks unless given;
        ``commsim run`` makes the tree of the network's switches, one unit wherever paths to its root join.

    Returns
    -------
    Schedule
        Every rank sends each chunk once and receives its sum once.

    Raises
    ------
    InputError
        If the pool is empty, or `tree` is no tree with the ranks as its leaves.

    Notes
    -----
    On every level an aggregator adds what f children send, in f gamma c if adding takes time; see
    :func:`collectives.in_network.reduction_tree.tree_cost`, also for unequal levels.

    References
    ----------
    Graham et al., "Scalable hierarchical aggregation protocol (SHArP)", COMHPC 2016; Graham et al., "SHARP
    streaming-aggregation hardware design and evaluation", ISC 2020.
    """
    return tree_all_reduce("sharp", n_ranks, n_chunks, pool, tree)
