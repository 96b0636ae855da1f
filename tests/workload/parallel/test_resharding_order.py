import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.workload.parallel.resharding_order import Work, balance_senders, finish_time, greedy_order, least_time

hosts = st.lists(st.integers(0, 3), min_size=1, max_size=2, unique=True).map(tuple)
works = st.lists(
    st.builds(
        lambda senders, receivers, duration: Work(senders, tuple(10 + r for r in receivers), float(duration)),
        hosts,
        hosts,
        st.integers(1, 9),
    ),
    min_size=1,
    max_size=6,
)


@given(works=works, seed=st.integers(0, 99))
@settings(deadline=None, max_examples=100)
def test_a_greedy_order_is_a_permutation_never_later_than_given_and_never_earlier_than_any_can_be(works, seed):
    order = greedy_order(works, n_rounds=20, seed=seed)
    key = repr
    assert sorted(order, key=key) == sorted(works, key=key)
    best = min(finish_time(tried) for tried in itertools.permutations(works))
    assert least_time(works) <= best <= finish_time(order) <= finish_time(works)
    assert order == greedy_order(works, n_rounds=20, seed=seed)


def test_greedy_finds_the_best_order_of_a_clear_case():
    """Two senders and two receivers, each sender has something for both: in the given order one waits for the other."""
    works = [Work((0,), (10,), 1.0), Work((0,), (11,), 1.0), Work((1,), (11,), 1.0), Work((1,), (10,), 1.0)]
    assert finish_time(works) == 4.0
    assert finish_time(greedy_order(works)) == least_time(works) == 2.0


def test_work_starts_when_its_sender_and_all_its_receivers_are_free():
    works = [Work((0,), (10,), 2.0), Work((1,), (11,), 5.0), Work((0,), (11, 12), 1.0), Work((2,), (12,), 1.0)]
    assert finish_time(works) == 7.0
    assert finish_time([]) == 0.0


def test_senders_that_all_have_the_piece_share_the_work():
    works = [Work((0, 1, 2, 3), (10 + i,), 1.0) for i in range(8)]
    assert finish_time(works) == 8.0
    balanced = balance_senders(works)
    assert finish_time(greedy_order(balanced)) == 2.0
    assert [sorted(work.senders) for work in balanced] == [[0, 1, 2, 3]] * 8


def test_work_without_a_receiver_and_no_tries_are_refused():
    with pytest.raises(InputError, match="needs a sender, a receiver"):
        Work((0,), (), 1.0)
    with pytest.raises(InputError, match="rounds must be at least 1, got 0"):
        greedy_order([], n_rounds=0)
