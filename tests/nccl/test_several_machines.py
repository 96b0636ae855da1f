"""Rings and trees over machines: which links and NICs carry their bytes, and what waits for what."""

import dataclasses

import numpy as np
import pytest

from collectives.nccl.call import NcclCall
from commsim.nccl.call_times import CallLinks, ring_time, tree_time
from commsim.nccl.choice import chosen_cell
from commsim.nccl.gpu_costs import HOP_VARIES, Plugin, Primitives, costs
from commsim.nccl.in_switch import direct_time
from commsim.nccl.nccl_setting import Channels, NcclSetting
from commsim.nccl.prediction import cell_seconds, direct_heads, on_rails, predict, ways_of
from commsim.nccl.site import Site
from commsim.prediction.build import prepare

US, GB, MIB, GIB = 1e-6, 1e9, 2**20, 2**30
# Costs without any latency: only rates are left.
FREE = Primitives(0, 0, 0, 0, 0, 1e15, 1e15, 1e15, 0, 0, 1e15, 0, 0, 0, 1.0)
WIRE = Plugin(0, 0, 0, 1.0, post=0.0)


@pytest.mark.parametrize(("n_nics", "share"), [(4, 3 / 4), (1, 1.0)])
def test_a_rank_s_links_carry_the_channels_that_it_does_not_send_out(n_nics, share):
    """With a NIC for each of 4 GPUs a quarter of the channels leaves by it; with one NIC most GPUs pass all on."""
    call = NcclCall("all_reduce", 16 * GIB, 16, 4, "ring", "simple", 8)
    seconds = ring_time(CallLinks(100 * GB, FREE, WIRE, 1e15, n_nics=n_nics, per_node=4), call)
    assert seconds == pytest.approx(share * 2 * 15 / 16 * 16 * GIB / (100 * GB), rel=0.02)


def test_in_a_tree_of_two_machines_only_the_first_chunk_waits_for_posts():
    """Four channels leave by a rank: the first chunk waits for three posts up and three down, later ones for none."""
    slow, fast = (Plugin(0, 0, 0, 1.0, post=post) for post in (1 * US, 0.0))
    ways = [CallLinks(1e15, FREE, plugin, 1e15, n_nics=4, per_node=4) for plugin in (slow, fast)]

    def waited(size, n_nodes):
        call = NcclCall("all_reduce", size, 4 * n_nodes, n_nodes, "tree", "ll128", 16)
        return tree_time(ways[0], call) - tree_time(ways[1], call)

    assert waited(64 * MIB, 2) == pytest.approx(2 * 3 * US, rel=0.01)
    assert waited(GIB, 2) == pytest.approx(2 * 3 * US, rel=0.01)
    assert waited(GIB, 4) > 1.5 * waited(64 * MIB, 4) > 2 * 3 * US


def test_the_receiver_of_a_tree_s_first_chunk_copies_it_too():
    """Two machines whose CPUs copy at 5 GB/s: half of the bytes each way, to the host and from it, up and down."""
    staged = Plugin(0, 0, 0, 1.0, post=0.0, copy=5 * GB)
    call = NcclCall("all_reduce", 64 * 1024, 2, 2, "tree", "simple", 1)
    assert tree_time(CallLinks(1e15, FREE, staged, 1e15), call) == pytest.approx(2 * 2 * 32 * 1024 / (5 * GB), rel=0.01)


def rack(rings):
    ring = Channels(rings, 45.1e9, 45.1e9)
    setting = NcclSetting(144, 2, "blackwell", "other", {"ring": ring, "tree": ring})
    return Site(setting, 721.8e9, nics=72 * 50e9, network="infiniband", n_nics=72)


def test_rings_and_trees_leave_by_the_nics_of_the_channels_that_the_search_found():
    """A rack has 72 NICs and 16 channels: doubled ones leave by the same 16 NICs."""
    site = rack(16)
    ways = on_rails(site, ways_of(site, costs()), "tree")
    assert (ways.n_nics, ways.nics) == (16, pytest.approx(16 * 50e9))
    assert ways.sharing(32) == 2
    every = on_rails(site, ways_of(site, costs()), "nvls_tree")
    assert every.n_nics == 72  # its heads have their own
    few, many = (predict(rack(n), "all_reduce", 16 * GIB, "tree", "simple").seconds for n in (16, 64))
    assert few > many


def test_with_collnet_direct_a_gpu_near_each_nic_heads_a_part():
    """4 heads among 8 GPUs: a head gives 3 parts of 4 to others and returns its own to 7, so 10 chunks for 4."""
    ring = Channels(4, 24e9, 24e9)
    setting = NcclSetting(32, 4, "ampere", "amd", {"ring": ring, "tree": ring, "collnet": ring}, collnet=True)
    site = Site(setting, 240e9, nics=4 * 25e9, network="infiniband", n_nics=4)
    assert [direct_heads(site, name) for name in ("all_reduce", "all_gather")] == [4, 8]
    call = NcclCall("all_reduce", 16 * GIB, 32, 4, "collnet_direct", "simple", 16, heads=4)
    seconds = direct_time(CallLinks(200 * GB, FREE, WIRE, 1e15, per_node=8), call)
    assert seconds == pytest.approx(10 / 4 * 16 * GIB / (200 * GB), rel=0.02)
    cell = chosen_cell(site, "all_reduce", 2**24, "collnet_direct")
    eight = dataclasses.replace(site, n_nics=8)
    ways = ways_of(site, costs())
    assert cell_seconds(site, ways, "all_reduce", cell, 2**24) > cell_seconds(eight, ways, "all_reduce", cell, 2**24)


@pytest.mark.parametrize("size", [2**20, 2**24])
def test_collnet_with_fewer_nics_than_gpus_is_simulated_as_the_closed_form_has_it(size):
    ready = prepare(
        "nccl_all_reduce:algorithm=collnet_direct", "dgx-a100:n_nics=4,sharp=on@star:machines=4,bandwidth=200Gbps"
    )
    assert ready.launch.parameters(size)["heads"] == 4
    closed, simulated = ready.predict(size, engine="closed-form"), ready.predict(size, method="events")
    assert simulated.time == pytest.approx(closed.time, rel=1e-6)


def test_with_more_channels_on_nics_of_their_own_the_slowest_hop_is_later():
    """The same bytes for each channel: one takes the mean of a hop, eight the longest of eight sums of two waits."""
    ways = CallLinks(1e15, FREE, Plugin(10e-6, 0, 0, 1.0, post=0.0), 1e15, n_nics=8, per_node=8)
    one, eight = (tree_time(ways, NcclCall("all_reduce", n * 4096, 16, 2, "tree", "ll", 8)) for n in (1, 8))
    longest = sum(1 / k for k in range(2, 9))
    assert one == pytest.approx(2 * 10e-6, rel=1e-3)
    assert eight - one == pytest.approx(HOP_VARIES * 10e-6 * 2**0.5 * longest, rel=1e-3)


@pytest.mark.parametrize(("per_node", "n_nodes"), [(1, 2), (1, 5), (2, 2), (4, 2), (8, 2), (8, 4), (4, 16)])
def test_the_slowest_way_round_a_ring_enters_every_machine(per_node, n_nodes):
    """Of the ways of n - 1 steps, one from each rank, the one with the most crossings between machines counts."""
    n = per_node * n_nodes
    of_step = np.arange(n) % per_node == per_node - 1
    counted = max(int(np.take(of_step, range(first, first + n - 1), mode="wrap").sum()) for first in range(n))
    ways = CallLinks(1e15, FREE, Plugin(10e-6, 0, 0, 1.0, post=0.0), 1e15, per_node=per_node)
    time = ring_time(ways, NcclCall("all_gather", n * 64, n, n_nodes, "ring", "ll", 1))
    assert counted * 10e-6 == pytest.approx(time, rel=2e-3)


def test_over_tcpxo_nccl_takes_neither_nvlink_sharp_nor_ll():
    ring = Channels(8, 24e9, 24e9)
    channels = {"ring": ring, "tree": ring, "nvls": Channels(8, 40e9, 48e9)}
    setting = NcclSetting(16, 2, "hopper", "intel", channels, version=(2, 26))
    rdma, tcpxo = (Site(setting, 370.8e9, nics=200e9, network=name, n_nics=8) for name in ("roce", "tcpxo"))
    assert chosen_cell(rdma, "all_reduce", 2**30).algorithm == "nvls_tree"
    assert {chosen_cell(tcpxo, "all_reduce", 2**k).algorithm for k in range(10, 34)} == {"tree", "ring"}
    assert {chosen_cell(tcpxo, "all_reduce", 2**k).protocol for k in range(10, 34)} == {"ll128", "simple"}
