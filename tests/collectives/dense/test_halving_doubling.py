import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from volumes import volumes

from collectives.dense.halving_doubling import (
    halving_doubling_all_reduce,
    non_power_of_two,
    real_ranks,
    recursive_doubling_all_gather,
    recursive_doubling_all_reduce,
    recursive_halving_reduce_scatter,
)
from commsim import predict
from commsim.core.checking.check import check
from commsim.core.errors import InputError


@pytest.mark.parametrize("k", range(7))
def test_a_power_of_two_takes_two_k_rounds_of_the_optimal_volume(k):
    n_ranks = 2**k
    schedule = halving_doubling_all_reduce(n_ranks)
    sent, received, messages = volumes(schedule)
    assert schedule.n_hops == 2 * k
    np.testing.assert_allclose(sent, 2 * (n_ranks - 1) / n_ranks)
    np.testing.assert_allclose(received, sent)
    assert (messages == 2 * k).all()


@pytest.mark.parametrize(("order", "distances"), [("nearest", [1, 2, 4, 4, 2, 1]), ("farthest", [4, 2, 1, 1, 2, 4])])
def test_the_order_says_at_which_distance_the_largest_halves_are_exchanged(order, distances):
    schedule = halving_doubling_all_reduce(8, order)
    sent = [t for t in schedule.expand() if t["src"] == 3]
    assert [t["count"] / schedule.n_chunks for t in sent] == [1 / 2, 1 / 4, 1 / 8, 1 / 8, 1 / 4, 1 / 2]
    assert [abs(int(t["dst"]) - 3) for t in sent] == distances


@pytest.mark.parametrize("k", range(7))
def test_a_reduce_scatter_by_halving_takes_k_rounds_of_the_optimal_volume(k):
    n_ranks = 2**k
    schedule = recursive_halving_reduce_scatter(n_ranks)
    sent, received, messages = volumes(schedule)
    np.testing.assert_allclose(sent, (n_ranks - 1) / n_ranks)
    np.testing.assert_allclose(received, sent)
    assert (messages == k).all()
    of_first = [t for t in schedule.expand() if t["src"] == 0]
    assert [int(t["dst"]) for t in of_first] == [int(t["count"]) for t in of_first] == [2**j for j in range(k)][::-1]


@pytest.mark.parametrize("n_ranks", [3, 6, 7, 12])
def test_a_reduce_scatter_by_halving_folds_the_ranks_beyond_a_power_of_two(n_ranks):
    k, r = non_power_of_two(n_ranks)
    _, _, messages = volumes(recursive_halving_reduce_scatter(n_ranks))
    assert messages[: 2 * r].tolist() == [1, k + 1] * r
    assert (messages[2 * r :] == k).all()


def mpich_messages(n_ranks):
    """Chunks that each rank sends to whom, by the loops of MPICH's all-reduce, written out rank by rank."""
    pof2 = 1 << (n_ranks.bit_length() - 1)
    messages = []
    for rank in range(pof2):
        mask, first, last = 1, 0, pof2
        rounds = []
        while mask < pof2:
            middle = first + pof2 // (2 * mask)
            upper = bool(rank & mask)
            rounds.append((mask, (first, middle) if upper else (middle, last)))
            first, last = (middle, last) if upper else (first, middle)
            mask *= 2
        for mask, _ in reversed(rounds.copy()):
            rounds.append((mask, (first, last)))
            first, last = first - first % (pof2 // mask), first - first % (pof2 // mask) + pof2 // mask
        messages += [(i, rank, rank ^ mask, *part) for i, (mask, part) in enumerate(rounds)]
    return sorted(messages)


@pytest.mark.parametrize("n_ranks", [1, 2, 4, 8, 32])
def test_the_default_order_sends_what_mpich_sends(n_ranks):
    transfers = halving_doubling_all_reduce(n_ranks).expand()
    ours = sorted(
        (int(t["hop"]), int(t["src"]), int(t["dst"]), int(t["src_chunk"]), int(t["src_chunk"] + t["count"]))
        for t in transfers
    )
    assert ours == mpich_messages(n_ranks)


@pytest.mark.parametrize("n_ranks", [2, 8, 12, 64])
def test_both_orders_are_proved(n_ranks):
    for order in ("nearest", "farthest"):
        check(halving_doubling_all_reduce(n_ranks, order))


def test_an_order_that_is_none_is_refused():
    with pytest.raises(InputError, match="order must be one of nearest, farthest, got 'first'"):
        halving_doubling_all_reduce(8, "first")


def test_nearest_first_takes_the_links_of_a_ring_evenly():
    """On a ring a message over d hops loads d links: distance 1 with S/2 and distance p/2 with S/p load them alike."""
    network, size = "ring:n_hosts=16,bandwidth=800Gbps,latency=0s", 2**30
    times = {
        o: predict(f"halving_doubling_all_reduce:order={o}", network, size, overhead="0us").time
        for o in ("nearest", "farthest")
    }
    # A round at distance d with S/(2d) each loads a link and direction with S/4 on average, and at most with S/2.
    rounds = 2 * 4
    assert rounds * size / 4 / 100e9 <= times["nearest"] <= rounds * size / 2 / 100e9
    assert times["farthest"] > 2 * times["nearest"]


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
