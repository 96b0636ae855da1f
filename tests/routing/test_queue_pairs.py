"""``ecmp:qps=N``: queue pairs of a connection, each hashed by itself, with equal parts of a message."""

import dataclasses

import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.prediction.build import prepare
from commsim.prediction.inputs import load_network
from commsim.routing.routing import find_routes, is_divided, is_hashed, read_routing

LEAF_SPINE = "leaf_spine:n_leaves=2,n_spines=4,hosts_per_leaf=4,bandwidth=100Gbps,latency=1us"
ONE_RING = "leaf_spine:n_leaves=4,n_spines=32,hosts_per_leaf=32,bandwidth=100Gbps,latency=1us"


def test_one_queue_pair_is_ecmp_to_the_last_bit():
    network = load_network(LEAF_SPINE)
    src, dst = np.arange(4), np.arange(4, 8)
    channels = np.array([0, 1, 2, 3])
    texts = ("ecmp", "ecmp:qps=1", "ecmp:qps=01")
    found = [find_routes(network, src, dst, channels, routing=text, seed=3) for text in texts]
    for field in ("first", "link", "share", "latency"):
        ecmp, one, written_with_zero = (getattr(routes, field) for routes in found)
        assert np.array_equal(ecmp, one)
        assert np.array_equal(ecmp, written_with_zero)


def test_parts_are_equal_also_where_a_path_is_slower():
    network = load_network(LEAF_SPINE)
    slow = network.src == network.n_nodes - 1  # the last spine
    network = dataclasses.replace(network, bandwidth=np.where(slow, 0.25, 1.0) * network.bandwidth)
    pairs = find_routes(network, [0], [5], routing="ecmp:qps=4096")
    adapted = find_routes(network, [0], [5], routing="spray:entropies=4096")
    assert pairs.share[slow[pairs.link]] == pytest.approx(0.25, rel=0.15)
    assert adapted.share[slow[adapted.link]] == pytest.approx(0.25 / 3.25, rel=0.15)
    assert (np.round(pairs.share * 4096, 6) % 1 == 0).all()


def test_more_queue_pairs_collide_less():
    network = load_network(ONE_RING)
    times = [
        prepare("ring_all_reduce", network, routing=routing, placement="spread", seed=1).predict(2.0**30).time
        for routing in ("ecmp", "ecmp:qps=4", "ecmp:qps=32", "spray")
    ]
    assert times == sorted(times, reverse=True)
    # 32 flows on 32 cables: three or more on the fullest of 128, and with four parts each about half as much more
    assert times[0] > 2.5 * times[3]
    assert 1.3 * times[3] < times[1] < 0.8 * times[0]


def test_its_routes_depend_on_the_hash_and_are_several():
    assert is_hashed("ecmp:qps=4")
    assert [is_divided(text) for text in ("ecmp", "ecmp:qps=4", "spray", "spray:entropies=2")] == [
        False,
        True,
        True,
        True,
    ]


@pytest.mark.parametrize("text", ["ecmp:qps=0", "ecmp:qps=x", "ecmp:qps=2:trims", "ecmp:entropies=2", "spray:qps=2"])
def test_another_parameter_is_refused_with_those_that_there_are(text):
    with pytest.raises(InputError, match=r"spray:entropies=E\[:trims\] and ecmp:qps=N, 1 to 4096, got"):
        read_routing(text)


@pytest.mark.parametrize(("text", "meant"), [("adaptive", "spray"), ("ecpm", "ecmp"), ("sprayed", "spray")])
def test_an_unknown_routing_is_answered_with_the_one_that_is_meant(text, meant):
    with pytest.raises(InputError, match=f"unknown routing '{text}'; did you mean {meant}"):
        read_routing(text)


def test_a_run_takes_the_median_over_hashes(commsim):
    where = ("run", "--topology", "leaf_spine:n_leaves=4,n_spines=8,hosts_per_leaf=8", "--placement", "spread")
    commsim.results(*where, "-b", "1M", "-e", "1M", "--routing", "ecmp:qps=2", "ring_all_reduce")
    assert "median of 8 hashes of ECMP" in commsim.out
    assert "sends each flow over one path, and ecmp:qps=2 uses several" in commsim.refuses(
        *where, "-b", "1M", "-e", "1M", "--routing", "ecmp:qps=2", "--engine", "packet", "ring_all_reduce"
    )
