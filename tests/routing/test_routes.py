import dataclasses

import numpy as np
import pytest

from commsim.core.network import HOST, SWITCH, Network
from commsim.routing.routes import over_one_switch
from commsim.routing.routing import find_routes
from commsim.routing.walk import walk
from topologies.leaf_spine import leaf_spine
from topologies.star import star

PAIRS = np.array([(a, b) for a in range(6) for b in range(6)]).T  # 5 is the switch


@pytest.mark.parametrize("routing", ["ecmp", "ecmp_polarised", "shortest", "spray", "dmodk"])
def test_routes_over_one_switch_are_those_of_a_search(routing):
    network = dataclasses.replace(star(n_hosts=5), latency=np.arange(10) * 1e-7)
    src, dst = PAIRS[:, (PAIRS[0] != 2) & (PAIRS[1] != 3)]
    routes = over_one_switch(network, src, dst)
    searched, lost = walk(network, src, dst, np.zeros(len(src), np.int64), routing)
    assert lost < 0
    for name in ("first", "link", "share", "latency"):
        column = getattr(routes, name)
        assert np.array_equal(column, getattr(searched, name))
        assert column.dtype == getattr(searched, name).dtype
    assert np.array_equal(find_routes(network, src, dst, routing=routing).link, searched.link)


def test_other_networks_are_searched():
    whole = star(n_hosts=4)
    doubled = Network("two cables", ["h0", "h1", "h2", "s"], [HOST] * 3 + [SWITCH], [0, 0, 3, 3, 1, 3],
                      [3, 3, 0, 0, 3, 1], 1e9, 1e-6)  # fmt: skip
    passing = dataclasses.replace(whole, forwards=[True] + [False] * 3 + [True])
    alone = Network("alone", ["h0"], [HOST], [], [], 1e9, 1e-6, forwards=[True])
    assert over_one_switch(alone, np.zeros(1, np.int64), np.zeros(1, np.int64)) is None
    for network in (leaf_spine(n_leaves=2, n_spines=1, hosts_per_leaf=2), doubled, passing):
        ends = np.zeros(1, np.int64), np.ones(1, np.int64)
        assert over_one_switch(network, *ends) is None
        assert len(find_routes(network, *ends).link) == 2
