import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.metrics.bounds import counting_bound
from commsim.core.network import HOST, SWITCH, Network, both_ways
from commsim.inputs import load_network
from topologies.leaf_spine import leaf_spine
from topologies.ring import ring
from topologies.star import star

pytestmark = pytest.mark.nojit


@settings(deadline=None)
@given(p=st.integers(2, 40), bandwidth=st.floats(1.0, 1e12))
def test_on_a_star_it_is_what_a_ring_reaches(p, bandwidth):
    assert counting_bound(star(p, bandwidth)).rate == pytest.approx(p * bandwidth / (2 * (p - 1)))


def test_one_endpoint_has_no_bound():
    assert counting_bound(star(1)).rate == float("inf")


@pytest.mark.parametrize(("p", "rate"), [(3, 1.5), (8, 8 / 7)])
def test_on_a_ring_both_directions_count(p, rate):
    assert counting_bound(ring(p, 1.0)).rate == pytest.approx(rate)


def test_racks_that_are_oversubscribed_are_what_limits():
    bound = counting_bound(leaf_spine(4, 2, 8, 1e9, oversubscription=16.0))
    assert bound.rate == pytest.approx(4 * 0.5e9 / (2 * 3))
    assert bound.why.endswith("4 racks")


def test_machines_are_limited_by_their_nics():
    bound = counting_bound(load_network("rail_optimized:n_hosts=32,preset=dgx-h100"))
    assert bound.rate == pytest.approx(32 * 8 * 48.5e9 / (2 * 31))
    assert "machines" in bound.why


def test_the_weakest_rank_and_the_worse_direction_count():
    src, dst = both_ways([0, 1, 2], [3, 3, 3])
    kind = [HOST] * 3 + [SWITCH]
    bound = counting_bound(Network("x", tuple("abcs"), kind, src, dst, [9, 9, 9, 9, 9, 1], 0.0))
    assert bound.rate == 1
    assert bound.why == "the capacity into the weakest endpoint"


def test_a_rank_without_a_link_makes_it_zero():
    assert counting_bound(Network("x", ("a", "b"), [HOST] * 2, [], [], 1.0, 0.0)).rate == 0


def test_sets_around_a_group_only_tighten_it():
    """A GPU can send over NVLink and over PCIe, but two GPUs that share one NIC cannot leave faster than this NIC."""
    text = "nvswitch_host:n_gpus=2,n_nics=1,n_pcie_switches=1,n_cpus=1,nic=10GB/s@star:n_hosts=2,bandwidth=10GB/s"
    assert counting_bound(load_network(text)).rate == pytest.approx(2 * 10e9 / 2)


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32 - 1))
def test_what_a_schedule_really_reaches_is_never_above(seed):
    from collectives.halving_doubling import halving_doubling_all_reduce
    from collectives.ring import ring_all_reduce
    from commsim.run import predict

    rng = np.random.default_rng(seed)
    n_leaves, per_leaf = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    rate = float(rng.choice([1e9, 3e9]))
    network = leaf_spine(n_leaves, int(rng.integers(1, 3)), per_leaf, 1e9, uplink_bandwidth=rate, latency=0.0)
    p = n_leaves * per_leaf
    if p > 1:
        for build in (ring_all_reduce, halving_doubling_all_reduce):
            result = predict(build(p), network, 1e9, routing="spray")
            assert result.algbw <= counting_bound(network).rate * (1 + 1e-9)
