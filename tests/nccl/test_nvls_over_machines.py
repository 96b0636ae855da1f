"""NVLS trees and trees between machines: what bounds them, in closed form."""

import pytest

from collectives.nccl.call import NcclCall
from commsim.nccl.call_times import CallLinks, tree_time
from commsim.nccl.channel_search import nvls_channels, nvls_inter
from commsim.nccl.gpu_costs import Plugin, Primitives, costs
from commsim.nccl.in_switch import loop_of, nvls_time
from commsim.nccl.nccl_setting import Channels, NcclSetting
from commsim.nccl.prediction import predict, switch_rate
from commsim.nccl.site import Site
from commsim.prediction.build import prepare

GB, GIB, KIB = 1e9, 2**30, 1024
# Costs without any latency: only rates are left.
FREE = Primitives(0, 0, 0, 0, 0, 1e15, 1e15, 1e15, 0, 0, 1e15, 0, 0, 0, 1.0)
WIRE = Plugin(0, 0, 0, 1.0, post=0.0)


@pytest.mark.parametrize(("n_nodes", "share"), [(2, 1.0), (3, 1.5), (4, 2.0), (8, 2.0)])
@pytest.mark.parametrize("algorithm", ["nvls_tree", "tree"])
def test_large_calls_take_the_bytes_of_the_busiest_nic(algorithm, n_nodes, share):
    call = NcclCall("all_reduce", 16 * GIB, 8 * n_nodes, n_nodes, algorithm, "simple", 16)
    ways = CallLinks(1e15, FREE, WIRE, 8 * 50 * GB, n_nics=8, per_node=8)
    seconds = nvls_time(ways, call, 1e15) if algorithm == "nvls_tree" else tree_time(ways, call)
    assert seconds == pytest.approx(share * 16 * GIB / (8 * 50 * GB), rel=0.01)


def test_a_call_of_one_chunk_sends_half_of_its_bytes_up_and_half_down():
    """Two machines of 8: of 16 channels one half has its root here, so that a NIC sends S/16 each way."""
    call = NcclCall("all_reduce", 16 * 8 * 64 * KIB, 16, 2, "nvls_tree", "simple", 16)
    ways = CallLinks(1e15, FREE, WIRE, 8 * 5 * GB, n_nics=8, per_node=8)
    assert nvls_time(ways, call, 1e15) == pytest.approx(call.size / (8 * 5 * GB), rel=0.01)


def site(n_nodes, n_nics=8, gpu="hopper", link=370.8e9):
    ring = Channels(8, 48e9, 48e9 if n_nodes > 1 else 0.0)
    nvls = Channels(8, 40e9, 48e9)
    setting = NcclSetting(8 * n_nodes, n_nodes, gpu, "intel", {"ring": ring, "tree": ring, "nvls": nvls})
    return Site(setting, link, nics=n_nics * 50e9, network="infiniband" if n_nodes > 1 else "", n_nics=n_nics)


def test_the_switch_carries_nccl_s_share_of_the_links():
    """0.85 of 18 NVLinks on Hopper, 0.74 on Blackwell (nvlsEfficiency): with 9/8 of the bytes 280 and 475 GB/s."""
    assert switch_rate(site(1)) == pytest.approx(0.85 * 370.8e9)
    blackwell = switch_rate(site(1, gpu="blackwell", link=721.8e9))
    assert blackwell / (9 / 8) == pytest.approx(475e9, rel=0.01)
    p, call = costs().of_gpu("hopper"), NcclCall("all_reduce", 16 * GIB, 8, 1, "nvls", "simple", 16)
    loop = loop_of(p, call, 16, 128 * KIB, switch_rate(site(1))).later
    assert 16 * 8 * 128 * KIB / loop == pytest.approx(280e9, rel=0.02)


def test_more_channels_than_a_rack_has_leave_less_of_the_switch():
    """32 channels of 32 heads reach 392 GB/s, 24 reach 478, what their warps do; with 8 heads 32 have all of the rate.

    Measured from 4 GiB up: 421 and 417 GB/s with NCCL 2.26 in one rack and in two of GB200, 483 with 24 in one.
    """
    p, rate = costs().of_gpu("blackwell"), switch_rate(site(1, gpu="blackwell", link=721.8e9))

    def reached(heads, channels):
        n_ranks = 72 if heads == 32 else 8
        call = NcclCall("all_reduce", 16 * GIB, n_ranks, 1, "nvls", "simple", channels, heads=heads)
        return channels * heads * 128 * KIB / loop_of(p, call, channels, 128 * KIB, rate).later

    assert reached(32, 32) == pytest.approx(p.nvls_crowded * rate / (1 + 1 / 32))
    assert reached(32, 32) < 410 * GB < 470 * GB < reached(32, 24)
    assert reached(8, 32) == pytest.approx(rate / (1 + 1 / 8))


def test_two_racks_of_gb200_take_longer_than_one():
    """8 GiB were measured in 18.9 ms on 64 GPUs of one rack, with 24 channels, and in 21.5 on two of 64, with 32."""
    one = prepare("nccl_all_reduce:version=2.28", "gb200-nvl72", n_ranks=64).launch.known_site
    net = "gb200-nvl72:n_gpus=64,n_nics=64,n_pcie_switches=64,net=infiniband@star:machines=2"
    two = prepare("nccl_all_reduce:version=2.28", net).launch.known_site
    shorter, longer = (predict(where, "all_reduce", 8 * GIB, how).seconds
                       for where, how in ((one, "nvls"), (two, "nvls_tree")))  # fmt: skip
    assert longer > 1.1 * shorter


@pytest.mark.parametrize("n_nodes", [4, 8, 32])
def test_nvls_trees_over_many_machines_reach_half_of_the_nics(n_nodes):
    """Half of 8 x 48.85 GB/s: the 194 GB/s in sight of NCCL's own 45.5 GB/s a channel, 188 GB/s on four machines."""
    taken = predict(site(n_nodes), "all_reduce", 16 * GIB, "nvls_tree", "simple").seconds
    assert 16 * GIB / taken == pytest.approx(8 * 48.85e9 / 2, rel=0.03)


def test_two_machines_wait_for_the_warps_that_gather_and_not_for_their_nics():
    """NCCL's own estimate is 57.7 GB/s a channel of 8: 246 GB/s for two machines of 8 H100."""
    fast, slow = (predict(site(2, n), "all_reduce", 16 * GIB, "nvls_tree", "simple").seconds for n in (8, 4))
    assert 16 * GIB / fast == pytest.approx(57.7e9 * 8 * 16 / 30, rel=0.03)
    assert 16 * GIB / slow == pytest.approx(4 * 48.85e9, rel=0.03)


@pytest.mark.parametrize(
    ("n_nics", "nic", "rate"),
    [(8, 50e9, 48e9), (8, 25e9, 24e9), (4, 50e9, 24e9), (16, 25e9, 24e9), (1, 50e9, 6e9)],
)
def test_the_search_raises_nvlink_sharp_s_rate_between_nodes_as_far_as_nics_go(n_nics, nic, rate):
    """8 heads of 40 GB/s inside: twice what a NIC of 200 Gb/s, and less than what one of 400 Gb/s carries."""
    n, inside = nvls_channels("hopper", 8, 370.8e9)
    assert (n, inside) == (8, 40e9)
    assert nvls_inter("hopper", n, inside, nic, n_nics) == rate


def test_a_head_s_links_carry_its_channel_twice():
    assert nvls_channels("blackwell", 8, 721.8e9) == (8, 80e9)  # 9 x 80 GB/s fit, 9 x 90 do not
    assert nvls_channels("hopper", 4, 370.8e9) == (4, 60e9)
    assert nvls_channels("hopper", 8, 370.8e9, 7) == (7, 45e9)  # with NICs the rates between nodes, a head for each NIC
    assert nvls_channels("hopper", 8, 370.8e9, 32) == (8, 40e9)
    n, inside = nvls_channels("blackwell", 32, 721.8e9)
    assert nvls_inter("blackwell", n, inside, 50e9, 72) == inside  # in a rack the search has no time to raise it


@pytest.mark.parametrize("n_nodes", [4, 8, 32])
def test_with_a_network_that_adds_nvlink_sharp_is_taken_at_every_large_size(n_nodes):
    """Its 8 x 48 GB/s are above half of the 8 x 48 GB/s of CollNet's chains; what it takes is below a ring's bound."""
    for size in (64 * 2**20, 128 * 2**20, GIB, 8 * GIB):
        plan = prepare("nccl_all_reduce:version=2.30", f"dgx-h100:sharp=on@star:machines={n_nodes}")
        found = predict(plan.launch.site, "all_reduce", size)
        assert found.how == "nvls/simple"
        if size >= GIB:
            assert found.seconds < 2 * size / (8 * 50e9)
            assert size / found.seconds == pytest.approx(0.85 * 370.8e9 / (9 / 8), rel=0.06)


@pytest.mark.parametrize(
    ("version", "how"), [("2.25", "tree/simple"), ("2.26", "nvls_tree/simple"), ("2.30", "nvls_tree/simple")]
)
def test_a_tree_by_one_nic_has_less_of_its_rate_since_2_26(version, how):
    """Two machines of 8 B200: 331 GB/s for trees, 0.85 of it where one NIC serves both ways, and 320 for NVLS trees."""
    site = prepare(f"nccl_all_reduce:version={version}", "hgx-b200@star:machines=2").launch.site
    assert site.setting.one_nic_tree
    assert predict(site, "all_reduce", 2**30).how == how
