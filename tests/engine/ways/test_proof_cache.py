import dataclasses

import numpy as np
import pytest

from commsim.core.cache import Cache
from commsim.core.placement import Placement
from commsim.engine.ways.proof_cache import digest_of, digest_of_routes
from commsim.prediction.inputs import load_network
from commsim.routing.routing import find_routes

FABRIC = "leaf_spine:n_leaves=2,n_spines=4,hosts_per_leaf=4,uplinks_per_spine=1"


def test_the_oldest_go_and_what_was_asked_for_last_stays():
    kept, found = Cache(2), []

    def find(key):
        found.append(key)
        return key

    for key in ("a", "b", "a", "c", "a", "b"):
        assert kept.get(key, lambda key=key: find(key)) == key
    assert found == ["a", "b", "c", "b"]
    assert len(kept) == 2


def test_what_is_too_large_is_found_again():
    kept, found = Cache(2, lambda value: value < 10), []
    for _ in range(2):
        kept.get("large", lambda: found.append(0) or 11)
    assert len(found) == 2
    assert len(kept) == 0


@pytest.mark.parametrize("field", ["bandwidth", "latency", "overhead", "metric"])
def test_networks_are_told_apart_by_all_that_they_hold(field):
    one, same = load_network(FABRIC), load_network(FABRIC)
    values = getattr(one, field).copy()
    values[-1] += 1
    other = dataclasses.replace(one, **{field: values})
    assert digest_of(one) == digest_of(same)
    assert digest_of(one) != digest_of(other)


def test_arrays_are_told_apart_by_shape_and_kind():
    row = np.arange(6)
    assert digest_of(row) != digest_of(row.reshape(2, 3))
    assert digest_of(row) != digest_of(row.astype(np.uint64))
    assert digest_of(row, row) != digest_of(row)


def test_routes_differ_by_links_that_may_hold_a_message_only():
    network = load_network(FABRIC)
    hosts = Placement(network.endpoints).nodes
    ends, turn = np.repeat(hosts[:4], 4), np.tile(hosts[4:], 4)
    drawn = [find_routes(network, ends, turn, np.zeros(16, np.int64), routing="ecmp", seed=seed) for seed in (0, 7)]
    assert not np.array_equal(drawn[0].link, drawn[1].link)
    is_port = np.isin(network.src, hosts) | np.isin(network.dst, hosts)
    endless = dataclasses.replace(network, bandwidth=np.where(is_port, network.bandwidth, 1e24))
    tight = dataclasses.replace(network, bandwidth=np.where(is_port, network.bandwidth, 16 * network.bandwidth))
    for where, alike in ((network, False), (endless, True), (tight, False)):
        digests = {digest_of_routes(routes, where) for routes in drawn}
        assert (len(digests) == 1) is alike
    later = dataclasses.replace(drawn[1], latency=drawn[1].latency + 1e-6)
    assert digest_of_routes(later, endless) != digest_of_routes(drawn[1], endless)
