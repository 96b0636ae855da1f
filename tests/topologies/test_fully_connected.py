import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.routing.bisection import bisection_bandwidth
from commsim.routing.network_metrics import measure
from topologies.fully_connected import fully_connected


@given(n_hosts=st.integers(2, 40))
def test_every_pair_shares_one_cable(n_hosts):
    network = fully_connected(n_hosts)
    pairs = sorted(zip(network.src.tolist(), network.dst.tolist(), strict=True))
    assert pairs == [(a, b) for a in range(n_hosts) for b in range(n_hosts) if a != b]
    assert measure(network).diameter == 1


@settings(max_examples=settings().max_examples * 2 // 3)
@given(n_hosts=st.integers(2, 30))
def test_every_host_of_one_half_is_cabled_to_all_of_the_other(n_hosts):
    pytest.importorskip("scipy")
    cables = (n_hosts // 2) * (n_hosts - n_hosts // 2)
    assert bisection_bandwidth(fully_connected(n_hosts, bandwidth=1e9)) == cables * 1e9


def test_one_host_has_no_cable():
    assert fully_connected(1).n_links == 0


def test_no_host_is_refused():
    with pytest.raises(InputError, match="fully_connected needs n_hosts of at least 1, got n_hosts=0"):
        fully_connected(0)
