import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.routing.network_metrics import measure
from topologies.ring import ring


@given(n_hosts=st.integers(3, 60))
def test_every_host_is_cabled_to_its_two_neighbours_and_forwards(n_hosts):
    network = ring(n_hosts)
    assert network.n_nodes == n_hosts
    assert network.forwards.all()
    steps = (network.dst - network.src) % n_hosts
    assert np.bincount(network.src, minlength=n_hosts).tolist() == [2] * n_hosts
    assert sorted(set(steps.tolist())) == sorted({1, n_hosts - 1})
    assert measure(network).diameter == n_hosts // 2


@pytest.mark.parametrize(("n_hosts", "n_links"), [(1, 0), (2, 2), (3, 6)])
def test_two_hosts_share_one_cable_and_one_host_has_none(n_hosts, n_links):
    assert ring(n_hosts).n_links == n_links


def test_a_ring_without_hosts_is_refused():
    with pytest.raises(InputError, match="ring needs n_hosts of at least 1, got n_hosts=0"):
        ring(0)
