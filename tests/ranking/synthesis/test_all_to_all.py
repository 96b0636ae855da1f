"""All-to-all attains its linear program, whose bound is checked in exact numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from random_networks import networks

from benchmarks.synthesis.networks import NETWORKS
from commsim.core.checking.check import check
from commsim.core.network import HOST, Network, both_ways
from commsim.ranking.synthesis import lower_bound
from commsim.ranking.synthesis.all_to_all import best_exchange, plan_exchange
from commsim.ranking.synthesis.synthesize import synthesize
from commsim.ranking.synthesis.trees.whole_rates import whole_network

BUILT = {one.name: one for one in (build() for build in NETWORKS)}


def whole_of(network):
    return whole_network(network, network.endpoints.astype(np.int32))


@pytest.mark.parametrize(
    ("name", "algbw"), [("ring8", 50.0), ("torus_4x4", 100.0), ("dgx1v", 75.0), ("a100_x2", 50.0), ("star8", 800 / 7)]
)
def test_best_rates_of_known_networks(name, algbw):
    """Cuts: half of a ring or torus of p ranks sends p/4 blocks over each of its links out; a star, 7/8 of all."""
    whole = whole_of(BUILT[name])
    exchange = best_exchange(whole)
    assert whole.n_ranks / exchange.bound_per_unit * whole.unit / 10**9 == pytest.approx(algbw, rel=1e-12)
    assert exchange.per_unit == pytest.approx(float(exchange.bound_per_unit), rel=0.003)


@settings(max_examples=settings().max_examples * 2 // 3)
@given(networks(max_ranks=5, max_switches=2))
def test_random_exchanges_are_proved_and_bounded_as_the_other_program_says(network):
    whole = whole_of(network)
    exchange = best_exchange(whole)
    rate = whole.n_ranks * float(whole.unit) / float(exchange.bound_per_unit)
    assert rate == pytest.approx(lower_bound("all_to_all", network).rate, rel=1e-5)
    check(plan_exchange(whole, exchange, 1).schedule)
    check(plan_exchange(whole, exchange, 3).schedule)


def test_a_schedule_that_relays_comes_near_the_bound():
    size = 1 << 30
    found = synthesize("all_to_all", BUILT["torus_4x4"], [size])
    assert found.best(size).method == "paths"
    assert found.best(size).time <= 1.03 * found.bounds[size]
    assert found.best(size).time >= found.bounds[size]


def test_parallel_links_are_used_alike():
    src, dst = both_ways([0, 0, 0], [1, 1, 1])
    network = Network("pair", ("h0", "h1"), [HOST] * 2, src, dst, 1e9, 0.0)
    found = synthesize("all_to_all", network, [3 << 20], textbook=False)
    assert found.certificate is not None
    assert found.certificate.fraction * 3 == 1
