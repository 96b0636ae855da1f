import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.core.faults.failures import fail_switches
from commsim.routing.bisection import bisection_bandwidth
from commsim.routing.network_metrics import measure
from topologies.dual_tor import dual_tor

few = st.integers(1, 5)


@given(n_racks=few, n_spines=few, hosts=few)
def test_every_host_is_on_both_switches_of_its_rack_and_these_on_every_spine(n_racks, n_spines, hosts):
    network = dual_tor(n_racks, n_spines, hosts)
    n_hosts = n_racks * hosts
    cables = np.zeros((network.n_nodes,) * 2, int)
    np.add.at(cables, (network.src, network.dst), 1)
    expected = np.zeros_like(cables)
    for host in range(n_hosts):
        for tor in (0, 1):
            expected[host, n_hosts + 2 * (host // hosts) + tor] = 1
    expected[n_hosts : n_hosts + 2 * n_racks, n_hosts + 2 * n_racks :] = 1
    assert np.array_equal(cables, expected + expected.T)
    assert measure(network).diameter == (4 if n_racks > 1 else 2 if hosts > 1 else 0)


@pytest.mark.parametrize(
    ("n_racks", "n_spines", "up", "expected"), [(2, 4, 1e9, 8e9), (4, 2, 1e9, 8e9), (2, 8, 2e9, 12e9)]
)
def test_the_bisection_is_that_of_the_uplinks_or_of_two_ports_per_host(n_racks, n_spines, up, expected):
    pytest.importorskip("scipy")
    network = dual_tor(n_racks, n_spines, 6, bandwidth=1e9, uplink_bandwidth=up)
    assert bisection_bandwidth(network) == min(expected, n_racks * 6 // 2 * 2e9)


@pytest.mark.parametrize("tor", ["tor0", "tor1", "tor4"])
def test_every_host_survives_the_loss_of_one_switch(tor):
    network = dual_tor(3, 2, 4)
    assert measure(fail_switches(network, [tor])).no_path is None
    pair = [f"tor{int(tor[3:]) // 2 * 2 + i}" for i in (0, 1)]
    assert measure(fail_switches(network, pair)).no_path is not None


def test_oversubscription_takes_cables_away():
    network = dual_tor(3, 4, 8, oversubscription=4.0)
    assert network.left_out == "2 of 4 spines"
    assert measure(network).oversubscription == {1: 4.0}
    assert network.n_links == 2 * (2 * 24 + 6 * 2)
    assert (
        dual_tor(3, 2, 8, oversubscription=1.0).n_links
        == 2 * (2 * 24 + 6 * 8)
        == dual_tor(3, 2, 8, uplinks_per_spine=4).n_links
    )


def test_no_rack_is_refused():
    with pytest.raises(InputError, match="dual_tor needs n_racks of at least 1, got n_racks=0"):
        dual_tor(0, 2, 2)
