import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.prediction.bounds.demand import demand_of, usable
from commsim.prediction.build import prepare
from commsim.prediction.read import with_costs
from commsim.ranking.synthesis.latency import latency_bounds, nearest_ranks, tree_time
from topologies.leaf_spine import leaf_spine
from topologies.ring import ring
from topologies.star import star


def graph_of(network, anywhere=False):
    return usable(network, network.endpoints.astype(np.int32), anywhere)


def longest(network, operation):
    p = len(network.endpoints)
    return max(latency_bounds(graph_of(network), demand_of(operation, p)), key=lambda cut: cut.fixed)


@given(n=st.integers(2, 60), gap=st.integers(1, 5), delay=st.integers(0, 9))
def test_the_tree_is_the_best_that_telling_in_turn_allows(n, gap, delay):
    """Count those who know, unit of time by unit of time."""
    learned = {0: 1}
    time = 0
    while sum(learned.values()) < n:
        time += 1
        tellers = sum(count for t, count in learned.items() if t + delay < time and (time - delay - t) % gap == 0)
        learned[time] = tellers
    assert tree_time(n, gap, delay) == pytest.approx(time)


def test_without_overhead_all_are_told_at_once():
    assert tree_time(1000, 0.0, 2.0) == 2.0
    assert tree_time(1, 1.0, 2.0) == 0.0


def test_with_nothing_but_overhead_who_knows_doubles():
    network = with_costs(star(9, latency=0.0), overhead=1e-6)
    assert longest(network, "broadcast").fixed == pytest.approx(4e-6)
    assert "telling 8 others" in longest(network, "barrier").why
    assert prepare("binomial_broadcast", network).predict(1e-3).time == pytest.approx(4e-6, rel=1e-3)  # it is met


def test_receiving_limits_what_one_can_hear():
    network = with_costs(star(9, latency=0.0), recv_overhead=1e-6)
    assert longest(network, "gather").fixed == pytest.approx(4e-6)
    assert "hearing of 8 others" in longest(network, "reduce").why


def test_the_longest_way_is_between_racks():
    network = leaf_spine(2, 1, 2, latency=1e-6)
    assert longest(network, "all_reduce").fixed == pytest.approx(4e-6)
    assert longest(network, "all_reduce").why == "the way from h0 to h2"
    assert longest(network, "reduce").why == "the way from h2 to h0"
    assert longest(ring(7, latency=1e-6), "all_gather").fixed == pytest.approx(3e-6)
    assert longest(ring(7, latency=1e-6), "send_recv").fixed == pytest.approx(1e-6)


def test_the_nearest_ranks_are_two_links_apart_and_a_switch_one():
    network = star(4, latency=1e-6)
    assert nearest_ranks(graph_of(network)) == pytest.approx(2e-6)
    assert nearest_ranks(graph_of(network, anywhere=True)) == pytest.approx(1e-6)
