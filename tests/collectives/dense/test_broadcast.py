import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from volumes import volumes

from collectives.dense.broadcast import binomial_broadcast, chain_broadcast, chain_cost, chain_reduce, chain_reduce_cost
from commsim.core.cost import LogGP


@given(n_ranks=st.integers(1, 100), data=st.data())
def test_a_binomial_tree_reaches_all_in_the_logarithm_of_rounds(n_ranks, data):
    root = data.draw(st.integers(0, n_ranks - 1))
    schedule = binomial_broadcast(n_ranks, root)
    sent, received, messages = volumes(schedule)
    rounds = int(np.ceil(np.log2(n_ranks)))
    assert schedule.n_hops == rounds
    assert messages[root] == messages.max() == rounds
    assert received[root] == 0
    assert (np.delete(received, root) == 1).all()
    assert sent.sum() == n_ranks - 1


def test_each_round_of_the_binomial_tree_is_a_stage():
    transfers = binomial_broadcast(8).expand()
    assert transfers["stage"].tolist() == [0, 1, 1, 2, 2, 2, 2]


@given(n_ranks=st.integers(1, 30), n_chunks=st.integers(1, 9), data=st.data())
def test_a_chain_passes_every_chunk_on_once(n_ranks, n_chunks, data):
    root = data.draw(st.integers(0, n_ranks - 1))
    schedule = chain_broadcast(n_ranks, n_chunks, root)
    sent, received, messages = volumes(schedule)
    last = (root - 1) % n_ranks
    if n_ranks > 1:
        np.testing.assert_allclose(np.delete(sent, last), 1)
        np.testing.assert_allclose(np.delete(received, root), 1)
        assert (np.delete(messages, last) == n_chunks).all()
    assert sent[last] == received[root] == 0


def test_the_best_number_of_chunks_is_where_the_docstring_says():
    size, n_ranks, link = 64e6, 18, LogGP(L=1e-6, o=4e-6, B=1e9)
    best = round((size * (n_ranks - 2) / (link.o * link.B)) ** 0.5)
    costs = {k: chain_cost(n_ranks, size, link, n_chunks=k) for k in range(best - 50, best + 51)}
    assert min(costs, key=costs.__getitem__) == best


def test_a_chain_of_a_hundred_thousand_is_one_round():
    schedule = chain_broadcast(131_072)
    assert [len(block.body) for block in schedule.blocks] == [64]
    assert schedule.n_transfers == 64 * 131_071


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


def test_a_chain_that_reduces_a_hundred_thousand_is_one_round():
    assert [len(block.body) for block in chain_reduce(131_072).blocks] == [64]
