"""Channels of rings and trees keep to the NIC of NCCL's search, also where the receiver is on another rail."""

import pytest

from commsim.core.placement import Placement
from commsim.nccl.plans.graph_nics import seen_by_channels
from commsim.prediction.build import prepare
from commsim.prediction.faults import with_faults
from commsim.prediction.inputs import load_network

SIZE = 2.0**30
FABRICS = ("rail_optimized:machines=4", "star:machines=4")


def time_of(fabric, fail, algorithm, machine="dgx-h100"):
    network, _ = with_faults(load_network(f"{machine}@{fabric}"), fail, ())
    return prepare(f"nccl_all_reduce:algorithm={algorithm}", network).predict(SIZE).time


@pytest.mark.parametrize("algorithm", ["ring", "tree", "nvls_tree"])
@pytest.mark.parametrize("fail", [["nic:m0.nic0"], ["nic:m1.nic3"], ["nic:m2.nic1", "nic:m3.nic0", "nic:m3.nic1"]])
def test_a_dead_nic_costs_as_much_on_rails_as_on_one_switch(algorithm, fail):
    """By the receiver's rail two channels would share a NIC, and another one would be idle."""
    rails, star = (time_of(fabric, fail, algorithm) for fabric in FABRICS)
    assert rails == pytest.approx(star, rel=0.01)
    # 8 NICs less 1 or 2: nothing near the factor of 2 of a shared NIC
    assert rails < 1.5 * time_of(FABRICS[0], [], algorithm)


def test_each_live_nic_of_the_machine_carries_one_channel():
    network, _ = with_faults(load_network(f"dgx-h100@{FABRICS[0]}"), ["nic:m0.nic0"], ())
    result = prepare("nccl_all_reduce:algorithm=ring", network).predict(SIZE)
    sent = {
        network.link_name(i): load
        for i, load in enumerate(result.link_bytes.tolist())
        if network.link_name(i).startswith("m0.nic") and ":leaf" in network.link_name(i)
    }
    assert len(sent) == 7
    assert min(sent.values()) == pytest.approx(max(sent.values()), rel=0.01)


@pytest.mark.parametrize("fabric", FABRICS)
def test_a_machine_with_fewer_nics_is_never_faster(fabric):
    """NVLink SHARP has a head for each NIC: with one for each GPU two shared a NIC, and NCCL took other algorithms."""
    dead = [[f"nic:m1.nic{i}" for i in (0, 2, 4, 6)[:n]] for n in range(5)]
    times = {algorithm: [time_of(fabric, fail, algorithm) for fail in dead] for algorithm in ("auto", "nvls_tree")}
    assert times["auto"] == sorted(times["auto"])
    parts = [time / times["nvls_tree"][0] for time in times["nvls_tree"]]
    assert parts == pytest.approx([1, 8 / 7, 8 / 6, 8 / 5, 2], rel=0.04)


def test_messages_between_pairs_go_by_the_rail_of_the_receiver():
    plan = prepare("nccl_all_to_all", load_network(f"dgx-h100@{FABRICS[0]}"))
    assert seen_by_channels(plan.launch, {}) is plan.network


def test_a_gpu_without_a_nic_of_its_own_still_needs_another():
    network, _ = with_faults(load_network(f"dgx-h100@{FABRICS[0]}"), ["nic:m0.nic0"], ())
    one_each = Placement([network.nodes.index(f"m{i}.gpu0") for i in range(4)])
    plan = prepare("nccl_all_reduce:algorithm=ring", network, placement=one_each)
    assert seen_by_channels(plan.launch, {"algorithm": "ring"}) is plan.network


def test_one_machine_stays_as_it_is():
    plan = prepare("nccl_all_reduce:algorithm=ring", load_network("dgx-h100"))
    assert seen_by_channels(plan.launch, {"algorithm": "ring"}) is plan.network
