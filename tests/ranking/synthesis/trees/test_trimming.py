"""Trimmed networks are balanced, no faster, and lose nothing where there is nothing to trim."""

import dataclasses

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_networks import networks

from commsim.core.errors import InputError
from commsim.ranking.synthesis.trees.optimum import optimum
from commsim.ranking.synthesis.trees.trimming import FINE, trimmed
from commsim.ranking.synthesis.trees.whole_rates import unbalanced_switch, whole_network


def whole_of(network):
    return whole_network(network, network.endpoints.astype(np.int32))


@settings(max_examples=settings().max_examples * 2 // 3)
@given(networks(max_ranks=4, max_switches=3), st.booleans())
def test_a_balanced_network_keeps_its_optimum(network, up):
    whole = whole_of(network)
    one = np.ones(whole.n_ranks, np.int64)
    left = trimmed(whole, one, [up])
    before, after = (optimum(net.reversed() if up else net, one) for net in (whole, left))
    assert after.per_unit * FINE == before.per_unit or abs(float(after.per_unit * FINE / before.per_unit) - 1) < 1e-3


@settings(max_examples=settings().max_examples * 2 // 3)
@given(networks(max_ranks=4, max_switches=3), st.data())
def test_what_is_left_is_balanced_and_no_more_than_there_was(network, data):
    faster = data.draw(st.lists(st.integers(0, network.n_links - 1), min_size=1, max_size=3))
    bandwidth = network.bandwidth.copy()
    bandwidth[faster] *= 3
    whole = whole_of(dataclasses.replace(network, bandwidth=bandwidth))
    assume(unbalanced_switch(whole) is not None)
    one = np.ones(whole.n_ranks, np.int64)
    try:
        left = trimmed(whole, one, [False])
    except InputError:
        return
    assert unbalanced_switch(left) is None
    assert (left.link_rate <= whole.link_rate * FINE).all()
    # no worse than without the faster links, up to rounding
    slow = optimum(whole_of(network), one).per_unit / whole_of(network).unit
    assert float(optimum(left, one).per_unit / left.unit / slow) < 1.001
