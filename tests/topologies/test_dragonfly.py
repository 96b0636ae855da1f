from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.core.network import HOST, SWITCH
from commsim.routing.network_metrics import measure
from topologies.dragonfly import dragonfly

few = st.integers(1, 5)


def between_groups(network):
    """Links from group to group, each with how often it comes."""
    group = network.coordinates[:, 0]
    pairs = zip(group[network.src].tolist(), group[network.dst].tolist(), strict=True)
    return Counter((a, b) for a, b in pairs if a != b)


@given(p=few, a=few, h=few)
def test_counts_and_degrees_are_those_of_the_paper(p, a, h):
    network = dragonfly(p, a, h)
    groups = a * h + 1
    assert len(network.hosts) == a * p * (a * h + 1)
    assert network.n_nodes - len(network.hosts) == a * groups
    degree = np.bincount(network.src, minlength=network.n_nodes)
    assert (degree[network.kind == HOST] == 1).all()
    assert (degree[network.kind == SWITCH] == p + a - 1 + h).all()


@given(p=few, a=few, h=few)
def test_at_full_size_every_two_groups_share_one_cable(p, a, h):
    groups = a * h + 1
    assert between_groups(dragonfly(p, a, h)) == {(i, j): 1 for i in range(groups) for j in range(groups) if i != j}


@given(p=few, a=few, h=few, data=st.data())
def test_with_fewer_groups_cables_are_shared_out_evenly(p, a, h, data):
    groups = data.draw(st.integers(2, a * h + 1))
    network = dragonfly(p, a, h, groups)
    cables = between_groups(network)
    assert set(cables) == {(i, j) for i in range(groups) for j in range(groups) if i != j}
    assert max(cables.values()) - min(cables.values()) <= 1
    router, group = network.kind == SWITCH, network.coordinates[:, 0]
    crosses = group[network.src] != group[network.dst]
    ports = np.bincount(network.src[crosses], minlength=network.n_nodes)[router].reshape(groups, a)
    assert ports.max() <= h
    # An odd number of ports in each of an odd number of groups leaves one of them without a partner.
    assert set(ports.sum(axis=1)) == {a * h - (a * h * groups % 2)}


@given(p=few, a=few, h=few)
def test_routers_of_a_group_are_cabled_in_pairs_and_hosts_to_their_own(p, a, h):
    network = dragonfly(p, a, h)
    group, router = network.coordinates.T
    inside = group[network.src] == group[network.dst]
    switches = (network.kind[network.src] == SWITCH) & (network.kind[network.dst] == SWITCH)
    local = np.flatnonzero(inside & switches)
    pairs = Counter(zip(group[network.src[local]], router[network.src[local]], router[network.dst[local]], strict=True))
    assert pairs == {(g, i, j): 1 for g in range(a * h + 1) for i in range(a) for j in range(a) if i != j}
    up = np.flatnonzero(network.kind[network.src] == HOST)
    assert (network.coordinates[network.src[up]] == network.coordinates[network.dst[up]]).all()
    assert (network.dst[up] - len(network.hosts) == network.src[up] // p).all()


@settings(max_examples=settings().max_examples * 2 // 3)
@given(p=few, a=st.integers(1, 4), h=st.integers(1, 4))
def test_three_links_between_routers_are_enough(p, a, h):
    assert measure(dragonfly(p, a, h)).diameter == (3 if a == 1 else 5)


def test_the_example_of_the_paper():
    network = dragonfly(p=2, a=4, h=2)  # figure 5: 72 terminals in 9 groups
    assert (len(network.hosts), int(network.coordinates[:, 0].max()) + 1) == (72, 9)
    assert measure(network).degrees["switch"] == (7, 7)


def test_cables_between_groups_may_be_faster_and_longer():
    network = dragonfly(2, 2, 1, bandwidth=1e9, uplink_bandwidth=4e9, latency=1e-6, global_latency=5e-6)
    group = network.coordinates[:, 0]
    crosses = group[network.src] != group[network.dst]
    assert set(network.bandwidth[crosses]) == {4e9}
    assert set(network.bandwidth[~crosses]) == {1e9}
    assert set(network.latency[crosses]) == {5e-6}
    assert set(network.latency[~crosses]) == {1e-6}


@pytest.mark.parametrize(("p", "a", "h", "groups", "each"), [(4, 4, 4, 5, 2), (2, 4, 3, 4, 1), (3, 2, 6, 4, 3)])
def test_oversubscription_takes_cables_between_groups_away(p, a, h, groups, each):
    network = dragonfly(p, a, h, groups, oversubscription=p * a / (each * (groups - 1)))
    assert set(between_groups(network).values()) == {each}
    group = network.coordinates[:, 0]
    crosses = group[network.src] != group[network.dst]
    ports = np.bincount(network.src[crosses], minlength=network.n_nodes)[network.kind == SWITCH]
    assert ports.max() - ports.min() <= 1  # shared out over the routers


def test_the_nearest_whole_number_of_cables_is_laid_between_groups():
    network = dragonfly(4, 4, 4, 2, oversubscription=3.0)  # 5.33 cables
    assert set(between_groups(network).values()) == {5}


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ({"p": 0, "a": 2, "h": 2}, "dragonfly needs p of at least 1, got p=0"),
        ({"p": 1, "a": 2, "h": 2, "n_groups": 0}, "dragonfly needs n_groups of at least 1, got n_groups=0"),
        (
            {"p": 4, "a": 4, "h": 4, "n_groups": 5, "oversubscription": 3.0},
            r"is 5.333 cables .* from each group; .* with a=4,h=4,n_groups=5: 4:1 \(4 cables\) and 2:1 \(8 cables\)",
        ),
        ({"p": 1, "a": 2, "h": 2, "n_groups": 6}, r"n_groups of at most a h \+ 1 = 5, got n_groups=6"),
    ],
)
def test_wrong_counts_are_refused(counts, message):
    with pytest.raises(InputError, match=message):
        dragonfly(**counts)
