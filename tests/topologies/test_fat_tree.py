import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.core.network import SWITCH
from commsim.routing.network_metrics import measure
from topologies.fat_tree import fat_tree

even = st.integers(1, 7).map(lambda half: 2 * half)


@given(k=even)
def test_counts_and_degrees_are_those_of_the_paper(k):
    network = fat_tree(k)
    assert len(network.hosts) == k**3 // 4
    assert network.n_nodes - len(network.hosts) == 5 * k**2 // 4
    assert network.n_links == 3 * k**3 // 2
    degree = np.bincount(network.src, minlength=network.n_nodes)
    assert (degree[network.hosts] == 1).all()
    assert (degree[network.kind == SWITCH] == k).all()
    assert measure(network).tier_sizes == (k**3 // 4, k**2 // 2, k**2 // 2, k**2 // 4)


@given(k=even)
def test_no_two_switches_are_cabled_twice(k):
    network = fat_tree(k)
    assert len(set(zip(network.src.tolist(), network.dst.tolist(), strict=True))) == network.n_links


@settings(max_examples=7)
@given(k=even)
def test_every_core_switch_reaches_every_pod_once(k):
    network = fat_tree(k)
    first_aggregation, first_core = (network.nodes.index(name) for name in ("aggregation0", "core0"))
    down = network.src >= first_core
    pod = (network.dst[down] - first_aggregation) // (k // 2)
    pairs = sorted(zip((network.src[down] - first_core).tolist(), pod.tolist(), strict=True))
    assert pairs == [(core, p) for core in range(k * k // 4) for p in range(k)]


def test_hosts_of_two_pods_are_six_links_apart():
    assert measure(fat_tree(4)).diameter == 6


@pytest.mark.parametrize("k", [3, 0, -2, 1])
def test_an_odd_or_too_small_k_is_refused(k):
    with pytest.raises(InputError, match=rf"^fat_tree needs an even k of at least 2, got k={k}$"):
        fat_tree(k)


@pytest.mark.parametrize(
    ("asked", "ratios", "counts", "left_out"),
    [
        ({"oversubscription": 2.0}, {1: 2.0, 2: 1.0}, (128, 32, 16, 8), "2 of 4 aggregation switches of a pod"),
        ({"pod_oversubscription": 4.0}, {1: 1.0, 2: 4.0}, (128, 32, 32, 4), "3 of 4 core switches of a group"),
        ({"oversubscription": 2.0, "pod_oversubscription": 2.0}, {1: 2.0, 2: 2.0}, (128, 32, 16, 4),
         "2 of 4 aggregation switches of a pod, 2 of 4 core switches of a group"),
        ({"uplink_bandwidth": 2e9}, {1: 0.5, 2: 1.0}, (128, 32, 32, 16), ""),
    ],
)  # fmt: skip
def test_a_tapered_tree_has_fewer_cables_and_switches(asked, ratios, counts, left_out):
    network = fat_tree(8, 1e9, **asked)
    assert measure(network).oversubscription == ratios
    assert measure(network).tier_sizes == counts
    assert measure(network).no_path is None
    assert network.left_out == left_out
    assert set(network.bandwidth) == {1e9, asked.get("uplink_bandwidth", 1e9)}


def test_a_taper_that_cannot_be_built_is_refused():
    with pytest.raises(InputError, match=r"is 2.667 cables .* up from each edge switch; .* built: 2:1 .* and 4:3"):
        fat_tree(8, oversubscription=1.5)
