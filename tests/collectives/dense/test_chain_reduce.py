import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from volumes import volumes

from collectives.dense.broadcast import chain_reduce, chain_reduce_cost
from commsim.core.cost import LogGP


@given(n_ranks=st.integers(2, 30), n_chunks=st.integers(1, 9), data=st.data())
def test_every_rank_passes_its_sums_to_the_next_and_the_root_is_last(n_ranks, n_chunks, data):
    root = data.draw(st.integers(0, n_ranks - 1))
    schedule = chain_reduce(n_ranks, n_chunks, root)
    sent, received, messages = volumes(schedule)
    first = (root + 1) % n_ranks
    np.testing.assert_allclose(np.delete(sent, root), 1)
    np.testing.assert_allclose(np.delete(received, first), 1)
    assert (np.delete(messages, root) == n_chunks).all()
    assert sent[root] == received[first] == 0


def test_the_slower_of_sending_and_reducing_decides_how_chunks_follow():
    size, n_chunks = 1e6, 100
    chunk = size / n_chunks
    for gamma, stage in ((1e-10, chunk / 1e9), (1e-8, 1e-8 * chunk)):
        link = LogGP(B=1e9, gamma=gamma)
        longer, shorter = (chain_reduce_cost(2, n * chunk, link, n) for n in (n_chunks, n_chunks - 1))
        assert longer - shorter == pytest.approx(stage)


def test_a_chain_of_a_hundred_thousand_is_one_round():
    assert [len(block.body) for block in chain_reduce(131_072).blocks] == [64]
