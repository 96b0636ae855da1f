"""SwitchML's all-reduce: switches add what the workers stream, and multicast the sums."""

from __future__ import annotations

from collectives import collective
from commsim.core.cost import LogGP
from commsim.core.schedule import Schedule

from .reduction_tree import CHUNKS, Tree, read_tree, tree_all_reduce, tree_cost


def switchml_cost(
    n_ranks: int, size: float, link: LogGP, n_chunks: int = CHUNKS, pool: int | None = None, tree: Tree | None = None
) -> float:
    """Cost of k chunks up and down the tree, at most `pool` of them under way; see :func:`reduction_tree.tree_cost`."""
    return tree_cost("switchml", read_tree("switchml", n_ranks, tree), size, link, n_chunks, pool)


@collective("all_reduce", cost=switchml_cost, systems=("switchml_rdma", "switchml_udp"))
def switchml(n_ranks: int, n_chunks: int = CHUNKS, pool: int | None = None, tree: Tree | None = None) -> Schedule:
    """All-reduce in d switch levels, c = S/k: 2d(o+L+S/(kB)) + sum f gamma c + (k-1)max(o+S/(kB), f gamma c) seconds.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.
    n_chunks : int
        k. An aggregator passes a chunk on when it is complete, so that a tree of d levels takes (2d - 1)/k longer than
        the links need. ``commsim run`` makes chunks of packets, as few in each as it can afford.
    pool : int, optional
        Chunks that a rank may have under way: it sends chunk c when the result of chunk c - pool has arrived, and
        below a round trip's worth of bytes this decides. By default as many as there are; ``commsim run`` takes the
        window of the system.
    tree : tuple of int, optional
        Parent of each rank and then of each helper, -1 for the topmost. By default one aggregator above all ranks;
        ``commsim run`` makes the tree of the network's switches.

    Returns
    -------
    Schedule
        Every rank sends each chunk once and receives its sum once, whatever p is; an aggregator sends one stream up
        and one down to each child.

    Raises
    ------
    InputError
        If the pool is empty, or `tree` is no tree with the ranks as its leaves.

    Notes
    -----
    On every level an aggregator adds what f children send, in f gamma c if adding takes time; see
    :func:`collectives.in_network.reduction_tree.tree_cost`, also for pools and unequal levels.

    References
    ----------
    Sapio et al., "Scaling distributed machine learning with in-network aggregation", NSDI 2021, sections 4 and 5.
    """
    return tree_all_reduce("switchml", n_ranks, n_chunks, pool, tree)
