import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError, PhysicsError
from commsim.core.faults.scaling import scale_links
from commsim.core.network import HOST, SWITCH, Network, both_ways
from commsim.prediction.bounds import cuts
from commsim.prediction.bounds.cuts import floor_of, partition_cuts
from commsim.prediction.bounds.demand import demand_of, usable
from commsim.prediction.build import prepare
from commsim.prediction.inputs import load_network
from topologies.leaf_spine import leaf_spine
from topologies.ring import ring
from topologies.star import star


def tightest(network, operation="all_reduce", anywhere=False):
    """Rate and reason of the worst cut that locality suggests."""
    graph = usable(network, network.endpoints.astype(np.int32), anywhere)
    worst = max(partition_cuts(graph, demand_of(operation, len(network.endpoints))), key=lambda cut: cut.per_byte)
    return 1 / worst.per_byte if worst.per_byte else float("inf"), worst.cut().why


@pytest.mark.parametrize("spec", ["rail_optimized:n_hosts=8", "fat_tree:k=4", "torus:dims=3x4"])
@given(seed=st.integers(0, 99))
def test_one_pass_over_many_links_finds_the_same_cuts(spec, seed):
    network = load_network(spec)
    rng = np.random.default_rng(seed)
    network = dataclasses.replace(network, bandwidth=network.bandwidth * rng.uniform(0.1, 1.0, network.n_links))
    graph = usable(network, rng.permutation(network.endpoints)[:7].astype(np.int32), anywhere=False)
    demand = demand_of("all_reduce", 7)
    few = [one.cut() for one in partition_cuts(graph, demand)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuts, "MANY", 0)
        assert [one.cut() for one in partition_cuts(graph, demand)] == few


@given(p=st.integers(2, 40), bandwidth=st.floats(1.0, 1e12))
def test_on_a_star_it_is_what_a_ring_reaches(p, bandwidth):
    assert tightest(star(p, bandwidth))[0] == pytest.approx(p * bandwidth / (2 * (p - 1)))


@pytest.mark.parametrize(("p", "rate"), [(3, 1.5), (8, 8 / 7)])
def test_on_a_ring_both_directions_count(p, rate):
    assert tightest(ring(p, 1.0))[0] == pytest.approx(rate)


def test_racks_that_are_oversubscribed_are_what_limits():
    rate, why = tightest(leaf_spine(4, 2, 8, 1e9, uplink_bandwidth=0.25e9))
    assert rate == pytest.approx(4 * 0.5e9 / (2 * 3))
    assert why.endswith("all 4 racks together")


def test_machines_are_limited_by_their_nics():
    rate, why = tightest(load_network("rail_optimized:n_hosts=32,preset=dgx-h100"))
    assert rate == pytest.approx(32 * 8 * 48.5e9 / (2 * 31))
    assert "machines" in why


def test_the_weakest_rank_and_the_worse_direction_count():
    src, dst = both_ways([0, 1, 2], [3, 3, 3])
    kind = [HOST] * 3 + [SWITCH]
    rate, why = tightest(Network("x", tuple("abcs"), kind, src, dst, [9, 9, 9, 9, 9, 1], 0.0))
    assert rate == 1
    assert why == "the capacity into rank c"


def test_a_rank_without_a_link_makes_it_zero():
    assert tightest(Network("x", ("a", "b"), [HOST] * 2, [], [], 1.0, 0.0))[0] == 0


def test_sets_around_a_group_only_tighten_it():
    """A GPU can send over NVLink and over PCIe, but two GPUs that share one NIC cannot leave faster than this NIC."""
    text = "nvswitch_host:n_gpus=2,n_nics=1,n_pcie_switches=1,n_cpus=1,nic=10GB/s@star:n_hosts=2,bandwidth=10GB/s"
    assert tightest(load_network(text))[0] == pytest.approx(2 * 10e9 / 2)


@pytest.mark.parametrize("slow", ["h1:h2", "h2:h3"])
def test_both_halves_of_an_odd_side_are_looked_at(slow):
    line = scale_links(load_network("torus:dims=5,wrap=false,bandwidth=100Gbps"), 0.01, pattern=slow)
    rate, why = tightest(line)
    assert rate == pytest.approx(0.01 * 12.5e9)
    assert "half along dimension 0" in why


def test_the_check_fires_when_a_cost_is_halved():
    plan = prepare("ring_all_reduce", "star:n_hosts=8,bandwidth=100Gbps,latency=0us")
    right = plan.predict(2**26)
    with pytest.raises(PhysicsError, match=r"engine flow gives .* but the capacity (out of|into)"):
        plan.checked(dataclasses.replace(right, time=right.time / 2))
    assert plan.checked(right) is right


def test_a_formula_that_does_not_see_a_cut_is_refused_with_its_name():
    plan = prepare("direct_all_to_all", "leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=8,oversubscription=4")
    for engine in ("closed-form", "alpha-beta"):
        with pytest.raises(InputError, match=r"the capacity out of rack leaf0 .*use engine flow"):
            plan.predict(2**25, engine=engine)
    assert plan.predict(2**25).time >= floor_of(plan).per_byte * 2**25


def test_what_carries_no_bytes_has_no_floor():
    assert floor_of(prepare("dissemination_barrier", "star:n_hosts=4")).per_byte == 0
