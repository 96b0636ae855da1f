import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.core.network_queries import locality_levels
from commsim.routing.bisection import bisection_bandwidth
from commsim.routing.network_metrics import measure
from topologies.three_tier import three_tier

small = st.integers(1, 3)


@given(pods=small, racks=small, hosts=small, switches=small, cores=small)
def test_counts_of_three_tiers(pods, racks, hosts, switches, cores):
    network = three_tier(pods, racks, hosts, switches, cores)
    n_hosts = pods * racks * hosts
    up = -(-hosts // switches)
    top = -(-racks * up // cores)
    assert network.n_nodes == n_hosts + pods * (racks + switches) + cores
    assert network.n_links == 2 * (n_hosts + pods * racks * switches * up + pods * switches * cores * top)
    assert set(network.bandwidth) == {network.bandwidth[0]}
    metrics = measure(network)
    assert metrics.no_path is None
    assert metrics.diameter == (6 if pods > 1 else 4 if racks > 1 else 2 if hosts > 1 else 0)
    groups = {level.name: level.group.tolist() for level in locality_levels(network)}
    assert groups["rack"] == (np.arange(n_hosts) // hosts).tolist()
    assert groups["pod"] == (np.arange(n_hosts) // (hosts * racks)).tolist()


def test_oversubscription_is_as_asked_at_each_tier():
    metrics = measure(three_tier(3, 7, 6, 2, 2, oversubscription=1.5, pod_oversubscription=7.0))
    assert metrics.oversubscription == pytest.approx({1: 1.5, 2: 7.0})


@pytest.mark.parametrize(("rack", "pod"), [(1.0, 1.0), (1.0, 6.0), (2.0, 3.0)])
def test_the_ratios_multiply_in_the_bisection_bandwidth(rack, pod):
    pytest.importorskip("scipy")
    network = three_tier(2, 2, 12, 2, 2, 1e9, oversubscription=rack, pod_oversubscription=pod)
    assert bisection_bandwidth(network) == pytest.approx(24e9 / (rack * pod), rel=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1, 1, 1, 1), "three_tier needs n_pods of at least 1, got n_pods=0"),
        ((1, 1, 1, 1, 1, 1e9, 0.0), "needs a positive oversubscription, got 0.0"),
        (
            (2, 4, 6, 2, 5, 1e9, 1.5, 7.0),
            "pod_oversubscription=7 is 1.143 cables .* each pod switch; .* n_cores=5: 8:1 .* and 4:1",
        ),
        ((1, 1, 1, 1, 1, 1e9, None, float("inf")), "needs a positive pod_oversubscription, got inf"),
    ],
)
def test_a_wrong_argument_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        three_tier(*arguments)


def test_switches_that_would_get_no_cable_are_left_out():
    network = three_tier(2, 4, 8, 4, 8, oversubscription=4.0, pod_oversubscription=2.0)
    assert network.left_out == "2 of 4 pod switches, 6 of 8 core switches"
    assert [sum(name.startswith(stem) for name in network.nodes) for stem in ("pod", "core")] == [4, 2]
    assert measure(network).oversubscription == {1: 4.0, 2: 2.0}
