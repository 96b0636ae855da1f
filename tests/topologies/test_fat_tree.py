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
