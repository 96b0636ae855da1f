import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectives import COLLECTIVES
from commsim.auto.exact import alpha_beta_differs, closed_form_differs
from commsim.core.errors import InputError
from commsim.prediction.build import prepare
from commsim.prediction.read import with_costs
from topologies.fat_tree import fat_tree
from topologies.fully_connected import fully_connected
from topologies.leaf_spine import leaf_spine
from topologies.ring import ring
from topologies.star import star
from topologies.torus import torus

DENSE = [name for name in COLLECTIVES if COLLECTIVES[name].metadata["sparse"] is None]


def networks(p, seed):
    rng = np.random.default_rng(seed)
    return [
        star(p + 1),
        leaf_spine(2, 2, p, uplink_bandwidth=p * 12.5e9 / (2 * float(rng.choice([1.0, 2.0])))),
        fat_tree(4),
        ring(p + 1),
        torus((3, 3)),
    ][seed % 5]


@pytest.mark.slow
@given(
    name=st.sampled_from(DENSE),
    p=st.integers(2, 8),
    seed=st.integers(0, 1000),
    placement=st.sampled_from(["packed", "spread"]),
    size=st.sampled_from([1e3, 1e6, 3e8]),
    overhead=st.sampled_from([0.0, 1e-6]),
    gamma=st.sampled_from([0.0, 5e-11]),
)
def test_where_no_difference_is_found_there_is_none(name, p, seed, placement, size, overhead, gamma):
    """Or the choice would promise the flow engine's error for something else."""
    network = with_costs(networks(p, seed), overhead=overhead, gamma=gamma)
    try:
        ready = prepare(name, network, n_ranks=p, placement=placement, routing=None, seed=seed)
    except InputError:
        return  # an algorithm that cannot run on so many ranks
    size = 0.0 if ready.schedule.operation == "barrier" else size
    for engine, differs in (("closed-form", closed_form_differs), ("alpha-beta", alpha_beta_differs)):
        if not differs(ready):
            flow = ready.predict(size, engine="flow").time
            assert ready.predict(size, engine=engine).time == pytest.approx(flow, rel=1e-9), engine


@pytest.mark.parametrize("name", ["ring_all_reduce", "halving_doubling_all_reduce", "direct_all_to_all", "switchml"])
def test_on_a_star_the_closed_form_is_exact(name):
    assert closed_form_differs(prepare(name, star(8), n_ranks=8)) == ""


@pytest.mark.parametrize(
    ("name", "network", "why"),
    [
        ("double_tree_all_reduce", star(4), "double_tree_all_reduce has none"),
        ("ring_all_reduce", leaf_spine(2, 1, 3), "pairs of participants differ in latency"),
        ("ring_all_reduce", leaf_spine(2, 1, 2), "2 pairs of participants share leaf0:spine0"),
        ("ring_all_reduce", leaf_spine(2, 1, 2, uplink_bandwidth=6.25e9), "ports are not the slowest links"),
        ("pairwise_all_to_all", fully_connected(4), "messages leave a rank by several links"),
        ("topk_a:density=0.1", star(4), "the data is sparse"),
    ],
)
def test_it_says_why_the_closed_form_may_be_wrong(name, network, why):
    placement = "packed" if "latency" in why else "spread"
    assert closed_form_differs(prepare(name, network, placement=placement)) == why


def test_spraying_shares_links():
    ready = prepare("ring_all_reduce", leaf_spine(2, 2, 2), placement="spread", routing="spray")
    assert closed_form_differs(ready) == "messages are sprayed over several paths"


def test_a_tree_with_one_rank_under_each_leaf_is_a_star():
    assert closed_form_differs(prepare("direct_all_to_all", leaf_spine(4, 1, 1))) == ""


def test_a_ring_whose_links_are_its_own_needs_no_sharing():
    assert alpha_beta_differs(prepare("ring_all_reduce", ring(6))) == ""
    assert "use h" in alpha_beta_differs(prepare("direct_all_to_all", star(4)))
    assert alpha_beta_differs(prepare("direct_all_to_all", fully_connected(4))) == "h0 sends to 3 others"


def test_what_meets_at_a_switch_is_added_in_turn():
    for name in ("nccl_all_reduce", "rccl_all_reduce"):  # without costs of a library too
        assert alpha_beta_differs(prepare(name, star(2))) == "slices of NCCL overlap"
    assert "meet at switch0" in alpha_beta_differs(prepare("switchml", star(4)))


def test_the_closed_form_of_steps_that_wait_differs():
    ready = prepare("ring_all_reduce:blocking=true", "fat_tree:k=4,bandwidth=100Gbps,latency=1us")
    assert closed_form_differs(ready) == "each step waits for the one before"
