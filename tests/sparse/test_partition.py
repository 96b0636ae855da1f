import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slow_selection import mean_bounds
from slow_sparse import blocks_of_chunks
from sparse_run import run_sparse

from collectives import COLLECTIVES
from commsim.core.errors import InputError
from commsim.core.program import Program
from commsim.sparse import long_occupancy, propagate
from commsim.sparse import partition as partitions
from commsim.sparse.generate import drawn_occupancy
from commsim.sparse.occupancy import Occupancy
from commsim.sparse.partition import Partition, balanced_bounds
from commsim.sparse.propagate import transfer_contents
from commsim.sparse.sparse_vector import SparseVector


@given(n=st.integers(1, 400), block=st.integers(1, 9), n_chunks=st.integers(1, 40), hashed=st.booleans())
def test_every_block_is_in_one_chunk_and_sizes_count_them(n, block, n_chunks, hashed):
    partition = Partition(n, block, n_chunks, hashed)
    slow = blocks_of_chunks(partition.n_blocks, n_chunks, hashed)
    chunk = partition.chunk_of_blocks()
    assert [set(np.flatnonzero(chunk == c).tolist()) for c in range(n_chunks)] == slow
    assert partition.sizes().tolist() == [len(blocks) for blocks in slow]
    assert partition.chunk_of_last() == chunk[-1]
    of_elements = partition.chunk_of_blocks()[np.arange(n) // partition.block]
    assert partition.element_sizes().tolist() == np.bincount(of_elements, minlength=n_chunks).tolist()


def test_a_hash_spreads_what_lies_together():
    crowded = np.arange(4000)
    chunk = Partition(100_000, 1, 8, hashed=True).chunk_of_blocks()
    share = np.bincount(chunk[crowded], minlength=8) / 4000
    assert np.abs(share - 1 / 8).max() < 5 * np.sqrt(1 / 8 * 7 / 8 / 4000)
    assert np.bincount(Partition(100_000, 1, 8).chunk_of_blocks()[crowded], minlength=8).max() == 4000


def gathered_at_owners(n_ranks):
    p = Program(n_ranks, n_ranks)
    src, dst = np.divmod(np.arange(n_ranks**2), n_ranks)
    p.reduce(dst, src=src, dst=dst)
    return p.build()


@st.composite
def bitmaps(draw):
    n_ranks, n = draw(st.integers(1, 5)), draw(st.integers(1, 150))
    return np.random.default_rng(draw(st.integers(0, 99))).random((n_ranks, n)) < draw(st.floats(0, 1))


@given(bitmap=bitmaps(), n_chunks=st.integers(1, 9))
def test_bounds_are_where_the_lists_of_the_ranks_split_evenly_on_average(bitmap, n_chunks):
    n = bitmap.shape[1]
    found = balanced_bounds(Occupancy.from_bitmap(bitmap, n), n_chunks)
    assert list(found) == mean_bounds([np.flatnonzero(row).tolist() for row in bitmap], n, n_chunks)


def test_ranks_that_have_the_same_blocks_get_equal_parts_of_them():
    occupancy = drawn_occupancy(4, 10_000, density=0.08, pattern="zipf")
    bounds = balanced_bounds(Occupancy(10_000, 1, np.repeat(occupancy.words[:1], 4, axis=0)), 8)
    assert np.diff(np.searchsorted(np.flatnonzero(occupancy.bitmap_of(0)), bounds)).tolist() == [100] * 8
    assert max(np.diff(bounds)) > 3 * min(np.diff(bounds))


@given(bitmap=bitmaps(), seed=st.integers(0, 99))
def test_messages_between_bounds_are_those_of_the_numeric_run(bitmap, seed):
    n_ranks, n = bitmap.shape
    inner = np.sort(np.random.default_rng(seed).integers(0, n + 1, n_ranks - 1)).tolist()
    bounds, schedule = (0, *inner, n), gathered_at_owners(n_ranks)
    contents = transfer_contents(schedule, Occupancy.from_bitmap(bitmap, n), bounds=bounds)
    vectors = [SparseVector.from_dense(row.astype(np.float32)) for row in bitmap]
    assert contents.elements.tolist() == run_sparse(schedule, vectors, bounds=bounds).sent.tolist()
    owner = schedule.expand()["dst_chunk"]
    assert contents.all_elements.tolist() == np.diff(bounds)[owner].tolist()
    partition = Partition(n, 1, n_ranks, bounds=bounds)
    assert partition.chunk_of_blocks().tolist() == [c for c in range(n_ranks) for _ in range(bounds[c], bounds[c + 1])]
    assert partition.chunk_of_last() == partition.chunk_of_blocks()[-1]


@pytest.mark.parametrize("bounds", [(0, 10), (0, 5, 9), (1, 5, 10), (0, 11, 10), (0, 5, 10, 10)])
def test_bounds_that_are_none_of_the_tensor_are_refused(bounds):
    with pytest.raises(InputError, match="2 chunks that are ranges of 10 blocks need 3 bounds that rise from 0 to 10"):
        Partition(10, 1, 2, bounds=bounds)


def test_a_hash_has_no_bounds():
    with pytest.raises(InputError, match="of hashed chunks"):
        Partition(10, 1, 2, hashed=True, bounds=(0, 5, 10))


def test_nothing_is_cut_into_no_ranges():
    with pytest.raises(InputError, match="at least 1 chunk, got n_chunks=0"):
        balanced_bounds(Occupancy.from_bitmap([[1]], 1), 0)


@pytest.mark.parametrize("hashed", [False, True])
@pytest.mark.parametrize("n_elements", [4001, 4096, 131])
def test_a_long_tensor_is_looked_at_in_pieces_that_add_up(monkeypatch, hashed, n_elements):
    """Sets of gigabytes were held for all blocks at once, of which counts are all that is wanted."""
    occupancy = drawn_occupancy(4, n_elements, density=0.2, block=3)
    schedule = gathered_at_owners(4)
    whole = transfer_contents(schedule, occupancy, hashed=hashed)
    monkeypatch.setattr(long_occupancy, "PIECE", 64)
    assert len(list(long_occupancy.pieces(occupancy))) == -(-occupancy.n_blocks // 64)
    pieces = transfer_contents(schedule, occupancy, hashed=hashed)
    for field in ("blocks", "elements", "all_blocks", "all_elements"):
        np.testing.assert_array_equal(getattr(pieces, field), getattr(whole, field))
    monkeypatch.setattr(partitions, "PIECE", 50)
    some = Partition(n_elements, 3, 4, hashed)
    np.testing.assert_array_equal(some.sizes(), np.bincount(some.chunk_of_blocks(), minlength=4))


@pytest.mark.parametrize("name", ["gtop_k", "topk_a", "ok_topk"])
def test_truncated_sums_are_looked_at_in_pieces_too(monkeypatch, name):
    """Sets of all blocks at once took as much again as the data: 669 MB for gTop-k on 256 hosts."""
    occupancy, entry = drawn_occupancy(8, 3999, density=0.1, block=2), COLLECTIVES[name]
    form, schedule, pieces = entry.metadata["sparse"], entry.build(8), []
    whole = form.transfer_bytes(schedule, occupancy, {})
    monkeypatch.setattr(long_occupancy, "PIECE", 64)
    pack = propagate.first_rows
    monkeypatch.setattr(propagate, "first_rows", lambda *args: (pieces.append(args[3:]), pack(*args))[1])
    np.testing.assert_array_equal(form.transfer_bytes(schedule, occupancy, {}), whole)
    assert pieces == list(long_occupancy.ranges_of(occupancy.n_blocks))
    assert len(pieces) > 20


def test_classes_of_many_blocks_take_little_more_than_their_numbers():
    partition = Partition(2**23, 1, 7, hashed=True)
    tracemalloc.start()
    try:
        found = partition.chunk_of_blocks(range(5, 2**23))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < found.nbytes + 36e6  # hashes of all blocks at once take 201 MB
    np.testing.assert_array_equal(found[2**22 :], partition.chunk_of_blocks(range(2**22 + 5, 2**23)))
