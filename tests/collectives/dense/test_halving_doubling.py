import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from volumes import volumes

from collectives.dense.halving_doubling import (
    halving_doubling_all_reduce,
    non_power_of_two,
    real_ranks,
    recursive_doubling_all_gather,
    recursive_doubling_all_reduce,
)


@pytest.mark.parametrize("k", range(7))
def test_a_power_of_two_takes_two_k_rounds_of_the_optimal_volume(k):
    n_ranks = 2**k
    schedule = halving_doubling_all_reduce(n_ranks)
    sent, received, messages = volumes(schedule)
    assert schedule.n_hops == 2 * k
    np.testing.assert_allclose(sent, 2 * (n_ranks - 1) / n_ranks)
    np.testing.assert_allclose(received, sent)
    assert (messages == 2 * k).all()


def test_the_first_exchange_is_of_halves_at_the_largest_distance():
    schedule = halving_doubling_all_reduce(8)
    sizes = [t["count"] / schedule.n_chunks for t in schedule.expand() if t["src"] == 3]
    distances = [abs(int(t["dst"]) - 3) for t in schedule.expand() if t["src"] == 3]
    assert sizes == [1 / 2, 1 / 4, 1 / 8, 1 / 8, 1 / 4, 1 / 2]
    assert distances == [4, 2, 1, 1, 2, 4]


@given(n_ranks=st.integers(1, 500))
def test_the_fold_leaves_a_power_of_two_of_ranks(n_ranks):
    k, r = non_power_of_two(n_ranks)
    assert 2**k + r == n_ranks
    assert r < 2**k
    taking_part = real_ranks(n_ranks)
    assert len(np.unique(taking_part)) == 2**k
    assert sorted({*range(n_ranks)} - {*taking_part.tolist()}) == list(range(0, 2 * r, 2))


@pytest.mark.parametrize("n_ranks", [3, 5, 6, 7, 11, 12])
def test_folded_ranks_send_their_vector_and_get_the_result(n_ranks):
    k, r = non_power_of_two(n_ranks)
    schedule = halving_doubling_all_reduce(n_ranks)
    sent, received, messages = volumes(schedule)
    behind = list(range(0, 2 * r, 2))
    assert schedule.n_hops == 2 * k + 2
    assert (sent[behind] == 1).all()
    assert (received[behind] == 1).all()
    assert (messages[behind] == 1).all()
    np.testing.assert_allclose(sent[real_ranks(n_ranks)[r:]], 2 * (1 - 0.5**k))


@pytest.mark.parametrize("k", range(7))
def test_the_gather_doubles_what_is_exchanged(k):
    n_ranks = 2**k
    schedule = recursive_doubling_all_gather(n_ranks)
    sent, _, messages = volumes(schedule)
    assert schedule.n_hops == k
    assert (messages == k).all()
    np.testing.assert_allclose(sent, (n_ranks - 1) / n_ranks)
    assert [int(t["count"]) for t in schedule.expand() if t["src"] == 0] == [2**j for j in range(k)]


@pytest.mark.parametrize("n_ranks", [3, 5, 6, 7, 11, 12, 13])
def test_a_folded_gather_sends_at_most_what_its_cost_says(n_ranks):
    k, r = non_power_of_two(n_ranks)
    transfers = recursive_doubling_all_gather(n_ranks).expand()
    by_hop = [int(transfers["count"][transfers["hop"] == hop].max()) for hop in np.unique(transfers["hop"])]
    assert by_hop == [1, *(2**j + min(2**j, r) for j in range(k)), n_ranks]


@pytest.mark.slow
@pytest.mark.parametrize("build", [halving_doubling_all_reduce, recursive_doubling_all_gather])
def test_memory_is_ranks_times_rounds(build):
    schedule = build(65_536)
    assert sum(len(block.body) for block in schedule.blocks) <= 65_536 * 2 * 16


@given(n_ranks=st.integers(1, 200))
@settings(max_examples=40)
def test_whole_vectors_are_exchanged_in_the_logarithm_of_rounds(n_ranks):
    k, r = non_power_of_two(n_ranks)
    schedule = recursive_doubling_all_reduce(n_ranks)
    sent, received, _ = volumes(schedule)
    assert schedule.n_hops == k + 2 * (r > 0)
    assert (sent[real_ranks(n_ranks)] == k + (np.arange(2**k) < r)).all()
    assert (sent[: 2 * r : 2] == 1).all()
    np.testing.assert_array_equal(received, sent)


def test_partners_exchange():
    transfers = recursive_doubling_all_reduce(16).expand()
    pairs = {(int(t["hop"]), int(t["src"]), int(t["dst"])) for t in transfers}
    assert pairs == {(hop, dst, src) for hop, src, dst in pairs}
    assert {abs(src - dst) for _, src, dst in pairs} == {1, 2, 4, 8}
