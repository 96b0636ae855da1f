import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.core.network import SWITCH
from commsim.routing.network_metrics import measure
from topologies.star import star


@given(n_hosts=st.integers(1, 200))
def test_every_host_has_one_cable_to_the_one_switch(n_hosts):
    network = star(n_hosts)
    assert (network.n_nodes, network.n_links) == (n_hosts + 1, 2 * n_hosts)
    assert network.kind.tolist() == [0] * n_hosts + [SWITCH]
    assert set(zip(network.src.tolist(), network.dst.tolist(), strict=True)) == {
        end for h in range(n_hosts) for end in ((h, n_hosts), (n_hosts, h))
    }


def test_two_hosts_are_two_links_apart():
    assert measure(star(5)).diameter == 2


def test_bandwidth_and_latency_are_those_of_every_link():
    network = star(3, bandwidth=1e9, latency=2e-6)
    assert np.array_equal(network.bandwidth, np.full(6, 1e9))
    assert np.array_equal(network.latency, np.full(6, 2e-6))


@pytest.mark.parametrize("n_hosts", [0, -1])
def test_a_star_without_hosts_is_refused(n_hosts):
    with pytest.raises(InputError, match=f"star needs n_hosts of at least 1, got n_hosts={n_hosts}"):
        star(n_hosts)


def test_a_bandwidth_of_zero_is_refused():
    with pytest.raises(InputError, match="needs a positive bandwidth"):
        star(2, bandwidth=0.0)
