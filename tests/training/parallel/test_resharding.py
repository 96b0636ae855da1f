import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim import predict
from commsim.core.checking.check import check
from commsim.core.errors import InputError
from commsim.core.placement import Placement
from commsim.training.parallel.resharding import (
    STRATEGIES,
    ReshardingPiece,
    balance_senders,
    finish_time,
    greedy_order,
    least_time,
    resharding_schedule,
    resharding_time,
)
from topologies.star import star

SIZE, BANDWIDTH = 2.0**30, 1.25e9


@pytest.mark.parametrize("n_receivers", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_brings_the_piece_to_all_receivers_in_the_time_of_its_formula(strategy, n_receivers):
    schedule = resharding_schedule(strategy, n_receivers, 32)
    assert schedule.operation == "broadcast"
    check(schedule)
    network = star(n_receivers + 1, BANDWIDTH, 0.0)
    found = predict(schedule, network, SIZE, placement=Placement(network.endpoints[: n_receivers + 1]), overhead="0us")
    assert found.time == pytest.approx(resharding_time(strategy, SIZE, BANDWIDTH, n_receivers, n_chunks=32), rel=1e-9)


def test_send_recv_takes_one_time_per_receiver_and_broadcast_hardly_more_than_one():
    once = SIZE / BANDWIDTH
    assert resharding_time("send_recv", SIZE, BANDWIDTH, 16) == 16 * once
    assert once < resharding_time("broadcast", SIZE, BANDWIDTH, 16, n_chunks=100) <= 1.16 * once
    fast_inside = resharding_time("all_gather", SIZE, BANDWIDTH, 4, local_bandwidth=40 * BANDWIDTH)
    assert fast_inside == pytest.approx(once * (1 + 3 / 4 / 40))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: resharding_schedule("scatter", 2), "unknown resharding strategy 'scatter'; known: send_recv"),
        (lambda: resharding_schedule("broadcast", 0), "at least 1 receiver and 1 chunk, got 0 and 64"),
        (lambda: resharding_schedule("all_gather", 2000), "at most 1024 receivers, got 2000"),
        (lambda: resharding_time("broadcast", 0.0, 1.0, 1), "size and bandwidths must be positive"),
    ],
)
def test_what_makes_no_sense_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


hosts = st.lists(st.integers(0, 3), min_size=1, max_size=2, unique=True).map(tuple)
works = st.lists(
    st.builds(
        lambda senders, receivers, duration: ReshardingPiece(
            senders, tuple(10 + r for r in receivers), float(duration)
        ),
        hosts,
        hosts,
        st.integers(1, 9),
    ),
    min_size=1,
    max_size=6,
)


@given(works=works, seed=st.integers(0, 99))
def test_a_greedy_order_is_a_permutation_never_later_than_given_and_never_earlier_than_any_can_be(works, seed):
    order = greedy_order(works, n_rounds=20, seed=seed)
    key = repr
    assert sorted(order, key=key) == sorted(works, key=key)
    best = min(finish_time(tried) for tried in itertools.permutations(works))
    assert least_time(works) <= best <= finish_time(order) <= finish_time(works)
    assert order == greedy_order(works, n_rounds=20, seed=seed)


def test_greedy_finds_the_best_order_of_a_clear_case():
    """Two senders and two receivers, each sender has something for both: in the given order one waits for the other."""
    works = [
        ReshardingPiece((0,), (10,), 1.0),
        ReshardingPiece((0,), (11,), 1.0),
        ReshardingPiece((1,), (11,), 1.0),
        ReshardingPiece((1,), (10,), 1.0),
    ]
    assert finish_time(works) == 4.0
    assert finish_time(greedy_order(works)) == least_time(works) == 2.0


def test_work_starts_when_its_sender_and_all_its_receivers_are_free():
    works = [
        ReshardingPiece((0,), (10,), 2.0),
        ReshardingPiece((1,), (11,), 5.0),
        ReshardingPiece((0,), (11, 12), 1.0),
        ReshardingPiece((2,), (12,), 1.0),
    ]
    assert finish_time(works) == 7.0
    assert finish_time([]) == 0.0


def test_senders_that_all_have_the_piece_share_the_work():
    works = [ReshardingPiece((0, 1, 2, 3), (10 + i,), 1.0) for i in range(8)]
    assert finish_time(works) == 8.0
    balanced = balance_senders(works)
    assert finish_time(greedy_order(balanced)) == 2.0
    assert [sorted(work.senders) for work in balanced] == [[0, 1, 2, 3]] * 8


def test_work_without_a_receiver_and_no_tries_are_refused():
    with pytest.raises(InputError, match="needs a sender, a receiver"):
        ReshardingPiece((0,), (), 1.0)
    with pytest.raises(InputError, match="rounds must be at least 1, got 0"):
        greedy_order([], n_rounds=0)
