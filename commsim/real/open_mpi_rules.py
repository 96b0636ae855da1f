"""Which algorithm Open MPI's component ``tuned`` runs, since release 4.1, as thresholds by number of ranks and size.

An algorithm that is not here is replaced by the nearest that is: a segmented ring and neighbour exchange by a ring,
linear, split and k-nomial trees by a binomial tree, a scatter with all-gather by a pipelined chain.

References
----------
Open MPI, ompi/mca/coll/tuned/coll_tuned_decision_fixed.c, releases 4.1 and 5.0: tables averaged over measurements of
its developers. Sizes are of one rank's block for all-gather and all-to-all, else of the whole buffer.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence

# Below so many ranks: (below so many bytes, algorithm), ..., algorithm of all larger ones.
Row = tuple[float, tuple[tuple[float, str], ...], str]
_K = 1024
ELEMENT = 4  # bytes
_RD, _RING, _HD = "recursive_doubling_all_reduce", "ring_all_reduce", "halving_doubling_all_reduce"
_TREES = "binomial_tree_all_reduce"  # a reduce, then a broadcast
_ALL_REDUCE: Sequence[Row] = (
    (4, ((8, _RING), (4 * _K, _RD), (8 * _K, _RING), (16 * _K, _RD), (256 * _K, _RING)), _HD),
    (8, ((16, _RING), (8 * _K, _RD)), _HD),
    (16, ((8 * _K, _RD),), _HD),
    (32, ((64, _RING), (4 * _K, _RD)), _HD),
    (64, ((128, _RING),), _HD),
    (128, ((256 * _K, _RD),), _HD),
    (256, ((128 * _K, _TREES), (256 * _K, _RD)), _HD),
    (512, ((4 * _K, _TREES),), _HD),
    (2048, ((2 * _K, _TREES), (16 * _K, _RD)), _HD),
    (4096, ((2 * _K, _TREES), (4 * _K, _RING), (16 * _K, _RD)), _HD),
    (float("inf"), ((2 * _K, _TREES), (16 * _K, _RING), (32 * _K, _RD)), _HD),
)
_DOUBLING, _BRUCK, _AROUND = "recursive_doubling_all_gather", "bruck_all_gather", "ring_all_gather"
_ALL_GATHER: Sequence[Row] = (
    (32, (), _DOUBLING),
    (64, ((1 * _K, _DOUBLING),), _AROUND),
    (256, ((512, _DOUBLING),), _AROUND),
    (512, ((32, _DOUBLING), (128, _BRUCK), (1 * _K, _DOUBLING)), _AROUND),
    (1024, ((64, _DOUBLING), (256, _BRUCK), (2 * _K, _DOUBLING)), _AROUND),
    (2048, ((256, _DOUBLING), (512, _BRUCK), (4 * _K, _DOUBLING)), _AROUND),
    (float("inf"), ((512, _BRUCK), (4 * _K, _DOUBLING)), _AROUND),
)
_DIRECT, _PAIRS, _BRUCKS = "direct_all_to_all", "pairwise_all_to_all", "bruck_all_to_all"
_ALL_TO_ALL: Sequence[Row] = (
    (3, ((32 * _K, _PAIRS), (256 * _K, _DIRECT)), _PAIRS),
    (8, ((512 * _K, _DIRECT), (1024 * _K, _PAIRS)), _DIRECT),
    (16, (), _DIRECT),
    (32, ((4, _DIRECT), (512, _BRUCKS)), _DIRECT),
    (64, ((512, _BRUCKS),), _DIRECT),
    (256, ((1 * _K, _BRUCKS), (256 * _K, _DIRECT)), _PAIRS),
    (512, ((1 * _K, _BRUCKS), (32 * _K, _DIRECT)), _PAIRS),
    (1024, ((512, _BRUCKS), (256 * _K, _DIRECT)), _PAIRS),
    (2048, ((512, _BRUCKS),), _DIRECT),
    (4096, ((1 * _K, _BRUCKS),), _DIRECT),
    (float("inf"), ((2 * _K, _BRUCKS),), _DIRECT),
)
_TREE, _CHAIN = "binomial_broadcast", "chain_broadcast"
_BROADCAST: Sequence[Row] = (
    (4, ((32, _CHAIN), (256, _TREE), (512, _CHAIN), (128 * _K, _TREE), (256 * _K, _CHAIN)), _TREE),
    (8, ((1024 * _K, _TREE),), _CHAIN),
    (16, (), _TREE),
    (32, ((1024 * _K, _TREE),), _CHAIN),
    (1024, (), _TREE),
    (2048, ((512 * _K, _TREE),), _CHAIN),
    (float("inf"), ((256 * _K, _TREE),), _CHAIN),
)
_UP, _CHAIN_UP = "binomial_reduce", "chain_reduce"
_REDUCE: Sequence[Row] = (
    (4, ((16, _UP), (32, _CHAIN_UP), (256 * _K, _UP)), _CHAIN_UP),
    (8, ((4 * _K, _UP), (64 * _K, _CHAIN_UP)), _UP),
    (float("inf"), (), _UP),
)


def _algorithm_for(rows: Sequence[Row], n: int, size: float) -> str:
    _, limits, rest = next(row for row in rows if n < row[0])
    place = bisect_right([limit for limit, _ in limits], size)
    return limits[place][1] if place < len(limits) else rest


def _all_gather(size: float, n: int) -> str:
    name = _algorithm_for(_ALL_GATHER, n, size / n)
    return _BRUCK if name == _DOUBLING and n & (n - 1) else name  # doubling needs a power of two, else it runs Bruck's


def ring_or_doubling(name: str, size: float, n: int) -> str:
    """Return the all-reduce that runs where a rule says ring: with fewer elements than ranks it is doubling instead.

    So ``coll_base_allreduce.c`` in all releases; elements are taken to have 4 bytes, as those of nccl-tests.
    """
    return _RD if name == _RING and size < ELEMENT * n else name


RULES: Mapping[str, Callable[[float, int], str]] = {
    "all_reduce": lambda size, n: ring_or_doubling(_algorithm_for(_ALL_REDUCE, n, size), size, n),
    "all_gather": _all_gather,
    "all_to_all": lambda size, n: _algorithm_for(_ALL_TO_ALL, n, size / n),
    "broadcast": lambda size, n: _algorithm_for(_BROADCAST, n, size),
    "reduce": lambda size, n: _algorithm_for(_REDUCE, n, size),
}
