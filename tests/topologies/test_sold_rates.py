import pytest

from commsim.prediction.inputs import load_network

ON_RAILS = "machines=8,hosts_per_group=4"
UNDER_LEAVES = "leaf_spine:machines=8,n_leaves=2,n_spines=4"


def rates_of(text):
    """Rates of a NIC's port and of a cable up from a leaf, Gb/s, and how many of those a leaf has."""
    network = load_network(text)
    leaf = network.nodes.index("leaf0")
    ends = [network.nodes[node] for node in network.dst[network.src == leaf]]
    rates = network.bandwidth[network.src == leaf] * 8e-9
    up = [rate for rate, end in zip(rates, ends, strict=True) if end.startswith("spine")]
    down = [rate for rate, end in zip(rates, ends, strict=True) if not end.startswith("spine")]
    return pytest.approx(down[0]), pytest.approx(up[0]), len(up)


@pytest.mark.parametrize(
    ("text", "rates"),
    [
        (f"rail_optimized:{ON_RAILS},preset=dgx-h100,oversubscription=2,uplink_bandwidth=800Gbps", (388, 776, 1)),
        (f"rail_optimized:{ON_RAILS},oversubscription=2,uplink_bandwidth=800Gbps", (388, 776, 1)),
        (f"dgx-h100@rail_optimized:{ON_RAILS},oversubscription=1,uplink_bandwidth=800Gbps", (388, 776, 2)),
        (f"dgx-h100@{UNDER_LEAVES},oversubscription=1,uplink_bandwidth=800Gbps", (388, 776, 16)),
        # as they are: without a share, with a rate of the ports beside it, and what is no rate as sold
        (f"dgx-h100:rates=spec@{UNDER_LEAVES},oversubscription=1,uplink_bandwidth=800Gbps", (400, 800, 16)),
        (f"dgx-h100@{UNDER_LEAVES},uplink_bandwidth=800Gbps,bandwidth=400Gbps", (400, 800, 4)),
        (f"dgx-h100@{UNDER_LEAVES},uplink_bandwidth=97GB/s", (388, 776, 4)),
        (f"dgx-h100:nic=400Gbps@{UNDER_LEAVES},uplink_bandwidth=800Gbps", (400, 800, 4)),
        ("leaf_spine:n_leaves=2,n_spines=4,hosts_per_leaf=4,uplink_bandwidth=800Gbps", (100, 800, 4)),
    ],
)
def test_a_cable_as_sold_above_a_preset_has_the_share_of_its_nics(text, rates):
    down, up, n = rates_of(text)
    assert (rates[0], rates[1]) == (down, up)
    assert n == rates[2]


def test_a_wrong_rate_is_refused_by_the_parameters_name(commsim):
    text = f"rail_optimized:{ON_RAILS},uplink_bandwidth=800"
    assert "uplink_bandwidth needs a unit" in commsim.refuses("topo", "show", text)
