import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_sparse import blocks_of_chunks

from commsim.core.sparse.partition import Partition

pytestmark = pytest.mark.nojit


@given(n=st.integers(1, 400), block=st.integers(1, 9), n_chunks=st.integers(1, 40), hashed=st.booleans())
@settings(deadline=None)
def test_every_block_is_in_one_chunk_and_sizes_count_them(n, block, n_chunks, hashed):
    partition = Partition(n, block, n_chunks, hashed)
    slow = blocks_of_chunks(partition.n_blocks, n_chunks, hashed)
    chunk = partition.chunk_of_blocks()
    assert [set(np.flatnonzero(chunk == c).tolist()) for c in range(n_chunks)] == slow
    assert partition.sizes().tolist() == [len(blocks) for blocks in slow]
    assert partition.chunk_of_last() == chunk[-1]
    of_elements = partition.chunk_of_elements(np.arange(n))
    assert partition.element_sizes().tolist() == np.bincount(of_elements, minlength=n_chunks).tolist()


def test_a_hash_spreads_what_lies_together():
    crowded = np.arange(4000)
    chunk = Partition(100_000, 1, 8, hashed=True).chunk_of_blocks()
    share = np.bincount(chunk[crowded], minlength=8) / 4000
    assert np.abs(share - 1 / 8).max() < 5 * np.sqrt(1 / 8 * 7 / 8 / 4000)
    assert np.bincount(Partition(100_000, 1, 8).chunk_of_blocks()[crowded], minlength=8).max() == 4000
