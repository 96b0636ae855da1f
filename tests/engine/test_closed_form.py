import numpy as np
import pytest

import commsim as cs
from collectives import COLLECTIVES
from commsim.core.cost import LogGP
from commsim.core.errors import InputError, NoClosedFormError
from commsim.core.placement import place
from commsim.core.schedule import REDUCE
from commsim.engine.alpha_beta import connection_costs
from commsim.engine.closed_form import SURE, closed_form, used_paths
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import plan_flows
from commsim.prediction.read import with_costs
from topologies.leaf_spine import leaf_spine
from topologies.star import star


def test_the_closed_form_takes_the_slowest_path():
    network = leaf_spine(n_leaves=2, n_spines=2, hosts_per_leaf=2, bandwidth=2e9, uplink_bandwidth=5e8, latency=1e-6)
    entry = COLLECTIVES["ring_all_reduce"]
    job = FlowJob(entry.build(4), place(network, 4))
    link = used_paths(network, job).slowest
    assert (link.L, link.o, link.gamma) == (4e-6, 0.0, 0.0)
    assert pytest.approx(network.bandwidth.min(), rel=1e-12) == link.B
    assert closed_form(entry, network, job, 4e6, {}).time == entry.metadata["cost"](4, 4e6, link)


@pytest.mark.parametrize(
    "name", ["ring_all_reduce", "halving_doubling_all_reduce", "pairwise_all_to_all", "bruck_all_gather", "parallax"]
)
@pytest.mark.parametrize("routing", ["ecmp", "spray", "dmodk"])
def test_the_slowest_link_is_that_of_all_transfers(name, routing):
    network = with_costs(leaf_spine(4, 2, 4, uplink_bandwidth=6.25e9), overhead=1e-6, recv_overhead=2e-6, gamma=1e-10)
    given = {"n_servers": 3} if name == "parallax" else {}
    schedule = COLLECTIVES[name].build(8, **given)
    job = FlowJob(schedule, place(network, schedule.n_participants, "random", 5))
    plan = plan_flows(network, [job], routing=routing, seed=2)
    costs = connection_costs(plan)
    costs[:, 4] *= np.bincount(plan.connection_of, weights=plan.op == REDUCE, minlength=len(costs)) > 0
    overhead, beta, latency, receive, gamma = costs.max(axis=0)
    assert used_paths(network, job, routing=routing, seed=2).slowest == LogGP(
        latency, overhead + receive, 1 / beta, gamma
    )


TWO = "dgx-h100@star:machines=2,bandwidth=400Gbps"


@pytest.mark.parametrize(
    ("collective", "network", "size"),
    [("ring_all_reduce", TWO, "1MiB"), ("ring_all_reduce", "fat_tree:k=4", "64KiB"), ("ring_all_gather", TWO, "1KiB"),
     ("halving_doubling_all_reduce", "torus:dims=4x4", "64KiB")],
)  # fmt: skip
def test_paths_that_are_not_alike_have_no_closed_form(collective, network, size):
    """All 30 rounds of a ring over two machines were crossings: 89 us for 42.6."""
    with pytest.raises(NoClosedFormError, match=r"not alike .*; use engine alpha-beta or flow"):
        cs.predict(collective, network, size, engine="closed-form", overhead="0us")


@pytest.mark.parametrize("size", ["64MiB", "1GiB"])
def test_a_connection_that_is_busy_nearly_all_the_time_makes_up_for_paths_that_are_not_alike(size):
    times = [cs.predict("ring_all_reduce", TWO, size, engine=engine).time for engine in ("closed-form", "alpha-beta")]
    assert times[1] <= times[0] <= times[1] / SURE


def test_one_rank_takes_no_time():
    entry, network = COLLECTIVES["ring_all_reduce"], star(1)
    assert closed_form(entry, network, FlowJob(entry.build(1), place(network, 1)), 1e6, {}).time == 0.0


def test_a_collective_without_a_closed_form_says_so():
    entry, network = COLLECTIVES["double_tree_all_reduce"], star(4)
    with pytest.raises(InputError, match="double_tree_all_reduce has no closed form"):
        closed_form(entry, network, FlowJob(entry.build(4, n_chunks=2), place(network, 4)), 1e6, {})
    entry = COLLECTIVES["byteps"]
    with pytest.raises(
        InputError, match=r"byteps has no closed form, only bounds \(docs/collectives.md\); use engine flow"
    ):
        closed_form(entry, network, FlowJob(entry.build(4), place(network, 4)), 1e6, {})
