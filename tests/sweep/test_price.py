import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.prediction.inputs import load_network
from commsim.sweep.price import read_prices, total

COST = {"nic": 3, "port": {"100Gbps": 5.0, "400Gbps": 7}, "cable": 2, "switch": {"4": 100, "8": 150}}


def bill(spec, **cost):
    return {
        (x.item, x.what): (x.count, x.each)
        for x in read_prices({"cost": {**COST, **cost}}, "f").bill(load_network(spec))
    }


def test_a_leaf_spine_is_priced_by_hand():
    spec = "leaf_spine:n_leaves=3,n_spines=2,hosts_per_leaf=4,bandwidth=100Gbps,uplink_bandwidth=400Gbps"
    assert bill(spec) == {
        ("nic", "100Gbps"): (12, 3.0),
        ("port", "100Gbps"): (12, 5.0),
        ("port", "400Gbps"): (12, 7.0),
        ("cable", "100Gbps"): (12, 2.0),
        ("cable", "400Gbps"): (6, 2.0),
        ("switch", "6 ports"): (3, 150.0),
        ("switch", "3 ports"): (2, 100.0),
    }
    lines = read_prices({"cost": COST}, "f").bill(load_network(spec))
    assert total(lines) == 12 * 3 + 12 * 5 + 12 * 7 + 18 * 2 + 3 * 150 + 2 * 100


def test_what_is_inside_of_a_machine_is_not_bought():
    found = bill("dgx-a100@star:machines=1,bandwidth=100Gbps")
    assert {key: n for key, (n, _) in found.items()} == {
        ("nic", "100Gbps"): 8, ("port", "100Gbps"): 8, ("cable", "100Gbps"): 8, ("switch", "8 ports"): 1,
    }  # fmt: skip


def test_hosts_without_switches_have_ports_and_cables():
    assert bill("torus:dims=2x3,bandwidth=100Gbps") == {("nic", "100Gbps"): (18, 3.0), ("cable", "100Gbps"): (9, 2.0)}


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        ({"nic": None}, r"f: cost.nic is missing: what a port of a host of 200Gbps costs"),
        ({"port": {"100Gbps": 5}}, r"f: cost.port has no price for 200Gbps, only for 100Gbps"),
        ({"switch": {"2": 5}}, r"f: cost.switch has no price for a switch with 3 ports, the largest has 2"),
        ({"port": {"100": 5}}, "needs a unit"),
        ({"port": {}}, "has no price"),
        ({"port": -1}, r"a price of 0 to 1e\+18"),
        ({"port": 1e308}, r"a price of 0 to 1e\+18"),  # the sum was inf
        ({"port": "many"}, "a finite number"),
        ({"switch": {"few": 1}}, "a number of ports"),
        ({"switch": {"0": 1}}, "a number of ports"),
        ({"switch": {"123456789": 1}}, "a number of ports"),
        ({"prot": 1}, "did you mean port"),
    ],
)
def test_a_price_that_is_needed_and_missing_is_named(cost, message):
    cost = {key: value for key, value in {**COST, "port": 1, **cost}.items() if value is not None}
    with pytest.raises(InputError, match=message):
        read_prices({"cost": cost}, "f").bill(load_network("star:n_hosts=3,bandwidth=200Gbps"))


def test_without_prices_cables_and_switches_are_counted():
    """By hand: 2 leaves with 3 hosts each, and a cable to each of 2 spines."""
    prices = read_prices({}, "f")
    network = load_network("leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=3")
    assert (total(prices.bill(network)), prices.currency) == (6 + 4 + 4, "cables and switches")


def test_every_topology_has_cables_in_pairs():
    from topologies import TOPOLOGIES

    for name in ("star", "ring", "torus:dims=2x3", "fat_tree:k=4", "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2"):
        assert name.partition(":")[0] in TOPOLOGIES
        anything = read_prices({"cost": {"nic": 1, "port": 1, "cable": 1, "switch": 1}}, "f")
        found = {}
        network = load_network(name if ":" in name else f"{name}:n_hosts=4")
        for line in anything.bill(network):
            found[line.item] = found.get(line.item, 0) + line.count
        assert found["nic"] + found.get("port", 0) == 2 * found["cable"] == network.n_links


@pytest.mark.parametrize(
    ("src", "dst", "bandwidth"),
    [([0, 1, 1], [1, 0, 2], 1e9), ([0, 1], [1, 0], [1e9, 2e9]), ([0, 1, 0, 1], [1, 0, 1, 0], [1e9, 1e9, 2e9, 3e9])],
)
def test_a_link_without_one_back_at_its_rate_is_no_cable(src, dst, bandwidth):
    network = Network("mine", ("a", "b", "c"), np.zeros(3, np.uint8), np.array(src), np.array(dst), bandwidth, 1e-6)
    prices = read_prices({"cost": {"nic": 1, "port": 1, "cable": 1, "switch": 1}}, "f")
    with pytest.raises(InputError, match=r"mine has no price: not every link from \w to \w has one back"):
        prices.bill(network)


def test_all_prices_that_are_missing_are_named_at_once():
    prices = read_prices({"cost": {"nic": {"200Gbps": 1}, "cable": 1}}, "f")
    with pytest.raises(InputError) as refused:
        prices.bill(load_network("star:n_hosts=4"))
    assert all(f"cost.{item}" in str(refused.value) for item in ("nic", "port", "switch"))
    assert str(refused.value).count("f: ") == 1


def test_a_rate_that_messages_reach_has_the_price_of_the_rate_as_sold():
    """A NIC of 400 Gb/s, of which messages reach 388, had no price."""
    spec = "dgx-h100@leaf_spine:machines=2,n_leaves=2,n_spines=2"
    cost = {"nic": {"200Gbps": 1, "400Gbps": 5, "800Gbps": 9}, "port": 0, "cable": 0, "switch": 0}
    (nic, *_) = read_prices({"cost": cost}, "f").bill(load_network(spec))
    assert (nic.item, nic.what, nic.count, nic.each) == ("nic", "400Gbps", 16, 5)
    for known in ("200Gbps", "800Gbps"):
        with pytest.raises(InputError, match=f"no price for 388Gbps, only for {known}"):
            read_prices({"cost": cost | {"nic": {known: 1}}}, "f").bill(load_network(spec))
