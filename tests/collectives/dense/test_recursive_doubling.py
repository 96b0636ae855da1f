import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from volumes import volumes

from collectives.dense.halving_doubling import non_power_of_two, real_ranks, recursive_doubling_all_reduce


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
