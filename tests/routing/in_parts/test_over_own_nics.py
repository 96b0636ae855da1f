"""GPUs with several NICs: each channel takes one of them, in the flow engine and in the closed form."""

from __future__ import annotations

import dataclasses

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
ON_CPUS = "nvswitch_host:n_gpus=8,n_nics=8,n_pcie_switches=0,n_cpus=2,pcie=24GB/s,gpu=ampere,cpu=amd,nic=200Gbps"
HALF_AS_MANY = ON_CPUS.replace("n_nics=8", "n_nics=4") + ",pxn=true"
FABRIC = "net=roce@star:machines=4"
ONE_OF_EIGHT = "dgx-h100@star:machines=4"
CALLS = ("nccl_all_reduce:algorithm=ring,protocol=simple", "nccl_all_reduce:algorithm=tree,protocol=simple",
         "nccl_all_gather:algorithm=ring,protocol=simple", "nccl_send_recv", "nccl_all_to_all")  # fmt: skip
SIZE = float(2**30)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("machine", [ONE_GPU, TWO_EACH, ON_A_SWITCH, TWO_PORTS, ON_CPUS, HALF_AS_MANY])
def test_no_nic_is_shared_by_more_than_its_gpus(machine: str, call: str) -> None:
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


def test_gpus_on_a_cpu_with_as_many_nics_have_one_each() -> None:
    """The number of a GPU with its bits in reverse, as NCCL spreads four GPUs over four NICs."""
    for machine, wanted in ((ON_CPUS, [0, 2, 1, 3, 4, 6, 5, 7]), (HALF_AS_MANY, [0, 1, 0, 1, 2, 3, 2, 3])):
        network = load_network(f"{machine},{FABRIC}")
        own = own_nics(network)
        assert own is not None
        assert own.shape[1] == 1
        assert [network.nodes[own[gpu, 0]] for gpu in network.endpoints[:8]] == [f"m0.nic{nic}" for nic in wanted]


@pytest.mark.parametrize("routing", ["ecmp", "spray"])
def test_all_of_a_message_leaves_and_arrives_by_one_nic(routing: str) -> None:
    network = load_network(f"{ON_CPUS},{FABRIC}")
    gpus = network.endpoints
    routes = find_routes(network, gpus[:8], gpus[8:16], routing=routing)
    inside = network.machine >= 0
    for n, nic in enumerate([0, 2, 1, 3, 4, 6, 5, 7]):
        rows = routes.link[routes.first[n] : routes.first[n + 1]]
        leaves = rows[inside[network.src[rows]] & ~inside[network.dst[rows]]]
        assert [network.nodes[network.src[link]] for link in leaves] == [f"m0.nic{nic}"]


def test_gpus_that_are_not_used_leave_their_nics_to_the_others() -> None:
    network = load_network(f"{ON_CPUS},{FABRIC}")
    gpus = network.endpoints
    own = own_nics(network, gpus[::4])  # one of each CPU
    assert own is not None
    assert [network.nodes[nic] for nic in own[gpus[4]]] == [f"m0.nic{nic}" for nic in range(4, 8)]
    placed = prepare("nccl_all_to_all", f"{ON_CPUS},{FABRIC}", n_ranks=8, placement="spread")
    assert placed.predict(SIZE).time == pytest.approx(placed.predict(SIZE, engine="closed-form").time, rel=0.01)


@pytest.mark.parametrize("used", [[0, 2], [1, 2], [0, 3], [5, 7]])
def test_two_gpus_of_a_cpu_divide_its_nics_whichever_they_are(used: list[int]) -> None:
    network = load_network(f"{ON_CPUS},{FABRIC}")
    gpus = network.endpoints[used]
    own = own_nics(network, gpus)
    assert own is not None
    first = 4 * (used[0] // 4)
    assert [network.nodes[nic] for gpu in gpus for nic in own[gpu]] == [f"m0.nic{first + n}" for n in range(4)]
    places = [network.nodes[8 * machine + gpu] for machine in range(4) for gpu in used]
    ring = prepare("nccl_all_reduce:algorithm=ring,protocol=simple", network, placement=places)
    assert ring.predict(SIZE).time == pytest.approx(ring.predict(SIZE, engine="closed-form").time, rel=0.01)


def test_messages_by_the_nic_of_another_gpu_go_through_that_one() -> None:
    network = load_network(f"{ON_CPUS},pxn=true,{FABRIC}")
    gpus = network.endpoints
    routes = find_routes(network, [gpus[0]], [gpus[9]])
    names = [network.nodes[network.dst[link]] for link in routes.link]
    assert names[:5] == ["m0.nvswitch0", "m0.gpu1", "m0.cpu0", "m0.nic2", "switch0"]


def test_nics_that_do_not_divide_are_left_to_the_routing() -> None:
    network = load_network("dgx-h100:n_nics=3@star:machines=2")
    assert own_nics(network) is None


def test_what_was_found_of_a_network_is_kept_with_it() -> None:
    network = load_network(f"{ON_CPUS},{FABRIC}")
    assert own_nics(network) is own_nics(network)
    assert own_nics(dataclasses.replace(network, latency=1e-6)) is not own_nics(network)


def test_a_nic_for_each_gpu_leaves_routes_to_the_routing() -> None:
    network = load_network(ONE_OF_EIGHT)
    assert own_nics(network) is None
    assert len(near_nics(network, network.endpoints[:3])) == 3
