"""HiTopKComm: dense sums inside machines, top-k lists of the sums between them."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from collectives import collective
from collectives.dense.hierarchical import Groups, default_groups
from collectives.dense.ring import half_ring_cost, reducing_ring_cost
from commsim.core.cost import LogGP
from commsim.core.errors import InputError
from commsim.core.program import Program
from commsim.core.schedule import SCRATCH, Schedule, Transfers
from commsim.sparse.block_sets import UNLIMITED
from commsim.sparse.encodings import coo
from commsim.sparse.form import SparseForm

# Channels: dense messages inside groups, and lists between them.
INSIDE, BETWEEN = 0, 1


def hitopk_comm_cost(n_ranks: int, size: float, link: LogGP, groups: Groups | None = None) -> float:
    """Cost of a ring reduce-scatter in groups of n, of m - 1 shards round a ring and their sums, and an all-gather."""
    members = _members(n_ranks, groups)
    m, n = members.shape
    between: float = (m - 1) * (link.message(size / n) + link.gamma * size / n)
    return reducing_ring_cost(n, size, link) + between + half_ring_cost(n, size, link)


def lists_of_shards(schedule: Schedule, k: int) -> NDArray[np.int64]:
    """Return the limits that cut what a group has added up of a shard to its share of k elements, rounded up."""
    return np.where(schedule.expand()["dst_buffer"] == SCRATCH, -(-k // schedule.n_chunks), UNLIMITED)


def inside(schedule: Schedule, transfers: Transfers) -> NDArray[np.bool_]:  # noqa: ARG001 - channels say it all
    """Find the messages that stay inside a group: these carry every value, zero or not."""
    return np.asarray(transfers["channel"] == INSIDE)


@collective(
    "all_reduce",
    needs=("groups",),
    cost=hitopk_comm_cost,
    sparse=SparseForm(coo, truncate=lists_of_shards, always_dense=inside),
)
def hitopk_comm(n_ranks: int, groups: Groups | None = None) -> Schedule:
    """All-reduce in m groups of n, lists between: 2(n-1)(a + S/(nB)) + (m-1)(a + S'/B + g S') + (n-1)/n g S, a = o + L.

    Parameters
    ----------
    n_ranks : int
        p = m n, at least 1.
    groups : tuple of tuple of int, optional
        Ranks of each group, all of one size, in the order of its ring; by default consecutive ranks, in groups of the
        largest divisor of p up to its square root. :mod:`commsim.prediction` takes the machines of the network.

    Returns
    -------
    Schedule
        Ring reduce-scatter inside every group, dense. Each rank selects of its shard, which has S/n bytes, a list of
        S' bytes, and lists of the same shard go round a ring across the groups. Each rank adds them up, in the order
        of the groups, in place of its shard; a dense all-gather inside every group ends it. Without sparse data
        S' = S/n. g is gamma.

    Raises
    ------
    InputError
        If the groups are not of equal size, or do not hold every rank once.

    Notes
    -----
    With d elements and density rho a rank sends 2(n-1)/n d numbers inside its group and 2(m-1) rho d/n between them.
    The authors send tensors of less than 512 elements, or of another number than a multiple of n, by a dense
    all-reduce.

    The ranks' gradients are dense until they have been added up; a density says how much of the sums is selected.
    What is not selected stays in the residual of the rank that owns the shard: sum x = result + sum e, exactly where
    additions are exact.

    References
    ----------
    Shi et al., "Towards scalable distributed training of deep learning on public cloud clusters" (HiTopKComm, MSTopK),
    MLSys 2021.
    """
    members = _members(n_ranks, groups)
    m, n = members.shape
    group, place = (x.ravel() for x in np.indices((m, n)))
    rank = members.ravel()
    p = Program(n_ranks, n_chunks=n, n_scratch=m)
    following = np.roll(members, -1, axis=1).ravel()
    with p.repeat(n - 1, chunk=-1):
        p.reduce((place - 1) % n, src=rank, dst=following, channel=INSIDE)
    _between(p, members, group, place)
    with p.repeat(n - 1, chunk=-1):
        p.copy(place, src=rank, dst=following, channel=INSIDE)
    return p.build()


def _between(p: Program, members: NDArray[np.int64], group: NDArray[np.int64], place: NDArray[np.int64]) -> None:
    """Write the ring of lists across groups, list i in scratch chunk i of the ranks with that shard, and their sums."""
    m, rank = len(members), members.ravel()
    p.copy(src=rank, dst=rank, src_chunk=place, dst_chunk=group, dst_buffer=SCRATCH, channel=BETWEEN)
    across = np.roll(members, -1, axis=0).ravel()
    for i in range(m - 1):
        p.copy((group - i) % m, src=rank, dst=across, src_buffer=SCRATCH, dst_buffer=SCRATCH, channel=BETWEEN)
    p.copy(src=rank, dst=rank, src_chunk=0, dst_chunk=place, src_buffer=SCRATCH, channel=BETWEEN)
    for i in range(1, m):
        p.reduce(src=rank, dst=rank, src_chunk=i, dst_chunk=place, src_buffer=SCRATCH, channel=BETWEEN)


def _members(n_ranks: int, groups: Groups | None) -> NDArray[np.int64]:
    """Return the ranks of each group, int64[m, n]."""
    groups = default_groups(n_ranks) if groups is None else tuple(tuple(group) for group in groups)
    if sorted(itertools.chain.from_iterable(groups)) != list(range(n_ranks)):
        raise InputError(f"hitopk_comm: groups must hold each rank 0..{n_ranks - 1} exactly once")
    sizes = sorted({len(group) for group in groups})
    if len(sizes) > 1:
        raise InputError(
            "hitopk_comm needs groups of equal size, since ranks of the same place own the same shard; got sizes "
            f"{', '.join(map(str, sizes))}"
        )
    return np.array(groups, np.int64)
