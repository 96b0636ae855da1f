import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.core.network import HOST, SWITCH
from commsim.routing.network_metrics import measure
from commsim.routing.routing import find_routes
from topologies.fat_tree import fat_tree
from topologies.jellyfish import jellyfish


@st.composite
def regular(draw):
    n = draw(st.integers(1, 24))
    degree = draw(st.integers(min(2, n - 1), n - 1).filter(lambda d: n * d % 2 == 0))
    return {"n_switches": n, "degree": degree, "hosts_per_switch": draw(st.integers(1, 3))}


@given(counts=regular(), seed=st.integers(0, 2**70))
def test_the_switches_are_a_connected_simple_regular_graph(counts, seed):
    network = jellyfish(**counts, seed=seed)
    up = (network.kind[network.src] == SWITCH) & (network.kind[network.dst] == SWITCH)
    pairs = list(zip(network.src[up].tolist(), network.dst[up].tolist(), strict=True))
    assert len(set(pairs)) == len(pairs) == counts["n_switches"] * counts["degree"]
    degree = np.bincount(network.src, minlength=network.n_nodes)
    assert (degree[network.kind == SWITCH] == counts["degree"] + counts["hosts_per_switch"]).all()
    assert (degree[network.kind == HOST] == 1).all()
    assert measure(network).no_path is None


@settings(max_examples=10)
@given(seed=st.integers(0, 2**32))
def test_the_same_seed_gives_the_same_cables_and_another_seed_others(seed):
    assert jellyfish(20, 4, 1, seed) == jellyfish(20, 4, 1, seed)
    one, other = (jellyfish(20, 4, 1, s) for s in (seed, seed + 1))
    assert not np.array_equal(one.src, other.src)


@pytest.mark.deep
@pytest.mark.slow
def test_every_pair_of_switches_is_cabled_about_as_often_as_any_other():
    # In a random regular graph a pair is cabled with probability degree / (n - 1) = 3/9. Over 600 draws the count of
    # one of 45 pairs lies within 6 standard deviations of 200, that is 69, but for once in ten million times.
    counts = np.zeros((10, 10))
    for seed in range(600):
        network = jellyfish(10, 3, 1, seed)
        between = np.flatnonzero((network.src >= 10) & (network.dst >= 10))
        counts[network.src[between] - 10, network.dst[between] - 10] += 1
    assert np.abs(counts[np.triu_indices(10, 1)] - 200).max() < 69


def share_of_pairs_less_than_six_links_apart(network):
    hosts = network.hosts
    src, dst = (x.ravel() for x in np.meshgrid(hosts, hosts[::49]))
    links = np.diff(find_routes(network, src[src != dst], dst[src != dst], routing="shortest").first)
    return (links < 6).mean()


def test_its_paths_are_shorter_than_those_of_a_fat_tree_of_the_same_equipment():
    # Figure 1 of the paper compares the two for 686 servers. In the fat tree, 245 switches of 14 ports, only servers of
    # one pod of 49 are less than 6 links apart; with one more of these switches Jellyfish takes 738 servers.
    assert share_of_pairs_less_than_six_links_apart(fat_tree(14)) == pytest.approx(48 / 685, rel=1e-12)
    assert share_of_pairs_less_than_six_links_apart(jellyfish(246, degree=11, hosts_per_switch=3)) > 0.99


def test_the_links_between_switches_may_be_faster():
    network = jellyfish(6, 3, 2, bandwidth=1e9, uplink_bandwidth=4e9)
    inner = (network.kind[network.src] == SWITCH) & (network.kind[network.dst] == SWITCH)
    assert set(network.bandwidth[inner]) == {4e9}
    assert set(network.bandwidth[~inner]) == {1e9}


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ((4, 4, 1), "a degree from 2 to n_switches - 1, and one of the two even, got n_switches=4, degree=4"),
        ((5, 3, 1), "and one of the two even, got n_switches=5, degree=3"),
        ((4, 1, 1), "a degree from 2"),
        ((0, 0, 1), "jellyfish needs n_switches of at least 1, got n_switches=0"),
        ((4, 2, 0), "jellyfish needs hosts_per_switch of at least 1, got hosts_per_switch=0"),
        ((4, 2, 1, -1), "jellyfish needs seed of at least 0, got seed=-1"),
    ],
)
def test_what_no_connected_graph_can_have_is_refused(counts, message):
    with pytest.raises(InputError, match=message):
        jellyfish(*counts)
