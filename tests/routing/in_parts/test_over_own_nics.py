"""GPUs with several NICs: each channel takes one of them, in the flow engine and in the closed form."""

from __future__ import annotations

import numpy as np
import pytest

from commsim.core.machines.local_nics import near_nics, nics_of_channels, own_nics
from commsim.networks import load_network, prepare
from commsim.routing.routing import find_routes

# 4 NICs on the CPU of one GPU (GB200), 2 on the PCIe switch of each of 4 GPUs, 2 ports of one PCIe GPU.
ONE_GPU = "nvswitch_host:n_gpus=1,n_nics=4,n_pcie_switches=0,n_cpus=1,pcie=450GB/s,gpu=blackwell,cpu=arm,nic=400Gbps"
TWO_EACH = "nvswitch_host:n_gpus=4,n_nics=8,n_pcie_switches=4,n_cpus=2,pcie=96GB/s,gpu=hopper,cpu=intel,nic=200Gbps"
ON_A_SWITCH = "nvswitch_host:n_gpus=2,n_nics=8,n_pcie_switches=1,n_cpus=1,pcie=96GB/s,gpu=hopper,cpu=intel,nic=200Gbps"
TWO_PORTS = "pcie_host:n_gpus=1,n_nics=2,n_pcie_switches=0,n_cpus=1,pcie=48GB/s,gpu=blackwell,cpu=arm,nic=100Gbps"
FABRIC = "net=roce@star:machines=4"
ONE_OF_EIGHT = "dgx-h100@star:machines=4"
CALLS = ("nccl_all_reduce:algorithm=ring,protocol=simple", "nccl_all_reduce:algorithm=tree,protocol=simple",
         "nccl_all_gather:algorithm=ring,protocol=simple", "nccl_send_recv", "nccl_all_to_all")  # fmt: skip
SIZE = float(2**30)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("machine", [ONE_GPU, TWO_EACH, ON_A_SWITCH, TWO_PORTS])
def test_no_nic_is_shared_where_there_are_more_of_them_than_gpus(machine: str, call: str) -> None:
    plan = prepare(call, f"{machine},{FABRIC}")
    assert plan.predict(SIZE).time == pytest.approx(plan.predict(SIZE, engine="closed-form").time, rel=0.01)


@pytest.mark.parametrize("n_ranks", [4, 8, 16])
@pytest.mark.parametrize("call", CALLS)
def test_fewer_gpus_of_a_machine_have_the_nics_near_them(call: str, n_ranks: int) -> None:
    placed = prepare(call, ONE_OF_EIGHT, n_ranks=n_ranks, placement="spread")
    smaller = prepare(call, f"dgx-h100:n_gpus={n_ranks // 4}@star:machines=4")
    assert placed.predict(SIZE).time == pytest.approx(smaller.predict(SIZE).time, rel=0.01)
    assert placed.predict(SIZE).time == pytest.approx(placed.predict(SIZE, engine="closed-form").time, rel=0.01)


def test_channels_take_the_nics_of_a_gpu_in_turn() -> None:
    network = load_network(f"{ONE_GPU},{FABRIC}")
    a, b = network.endpoints[:2]
    routes = find_routes(network, [a] * 8, [b] * 8, np.arange(8))
    names = [network.nodes[network.dst[routes.link[first + 1]]] for first in routes.first[:-1]]
    assert names == [f"m0.nic{c % 4}" for c in range(8)]
    into = [network.nodes[network.src[routes.link[last - 2]]] for last in routes.first[1:]]
    assert into == [f"m1.nic{c % 4}" for c in range(8)]


def test_gpus_on_one_switch_divide_its_nics() -> None:
    network = load_network(f"{ON_A_SWITCH},{FABRIC}")
    own = own_nics(network)
    assert own is not None
    found = [nics_of_channels(own, network.endpoints[[gpu] * 4], np.arange(4)) for gpu in (0, 1)]
    assert [[network.nodes[nic] for nic in nics] for nics in found] == [
        [f"m0.nic{n}" for n in range(4)],
        [f"m0.nic{n}" for n in range(4, 8)],
    ]


def test_a_nic_for_each_gpu_leaves_routes_to_the_routing() -> None:
    network = load_network(ONE_OF_EIGHT)
    assert own_nics(network) is None
    assert len(near_nics(network, network.endpoints[:3])) == 3
