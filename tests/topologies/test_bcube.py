import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.core.network import SWITCH
from commsim.routing.bisection import bisection_bandwidth
from commsim.routing.network_metrics import measure
from topologies.bcube import bcube
from topologies.star import star

sizes = st.tuples(st.integers(1, 6), st.integers(0, 3)).filter(lambda nk: nk[0] ** (nk[1] + 1) <= 260)


@given(size=sizes)
def test_counts_and_degrees_are_those_of_the_paper(size):
    n, k = size
    network = bcube(n, k)
    assert len(network.hosts) == n ** (k + 1)
    assert network.n_nodes - len(network.hosts) == (k + 1) * n**k
    degree = np.bincount(network.src, minlength=network.n_nodes)
    assert (degree[network.hosts] == k + 1).all()
    assert (degree[network.kind == SWITCH] == n).all()
    assert network.forwards.all()


@given(size=sizes)
def test_a_switch_of_level_l_joins_the_hosts_whose_addresses_differ_in_digit_l_alone(size):
    n, k = size
    network = bcube(n, k)
    for switch in np.flatnonzero(network.kind == SWITCH):
        level = int(network.nodes[switch].removeprefix("level").split("_")[0])
        hosts = np.sort(network.dst[network.src == switch])
        assert np.diff(hosts).tolist() == [n**level] * (n - 1)
        assert hosts[0] // n**level % n == 0
        at = network.coordinates[switch]
        assert np.flatnonzero(at == -1).tolist() == [level]
        assert (np.delete(network.coordinates[hosts], level, axis=1) == np.delete(at, level)).all()


@given(size=sizes)
def test_the_diameter_is_one_switch_per_digit(size):
    n, k = size
    assert measure(bcube(n, k)).diameter == (2 * (k + 1) if n > 1 else 0)


@settings(max_examples=settings().max_examples * 2 // 3)
@given(half=st.integers(1, 3), k=st.integers(0, 2))
def test_with_an_even_number_of_ports_half_of_the_hosts_send_one_link_each_across(half, k):
    # The highest digit splits the hosts: each switch of the highest level has n/2 links to either half.
    pytest.importorskip("scipy")
    n = 2 * half
    assert bisection_bandwidth(bcube(n, k, bandwidth=1e9)) == n ** (k + 1) // 2 * 1e9


def test_bcube_of_level_0_is_a_star():
    network = bcube(5, 0)
    assert network.src.tolist() == star(5).src.tolist()
    assert network.dst.tolist() == star(5).dst.tolist()


@pytest.mark.parametrize(
    ("n", "k", "message"),
    [
        (0, 1, "bcube needs n of at least 1, got n=0"),
        (2, -1, "bcube needs k of at least 0, got k=-1"),
        (10, 7, r"bcube would have at least 10\^7 nodes"),
    ],
)
def test_wrong_counts_are_refused(n, k, message):
    with pytest.raises(InputError, match=message):
        bcube(n, k)
