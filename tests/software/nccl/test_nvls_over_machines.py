"""NVLS trees and trees between machines: what bounds them, in closed form."""

import pytest

from collectives.nccl.call import Call
from commsim.software.nccl.gpu_costs import Plugin, Primitives, costs
from commsim.software.nccl.in_switch import loop_of, nvls_time
from commsim.software.nccl.prediction import Site, predict, switch_rate
from commsim.software.nccl.search import Channels, Setting
from commsim.software.nccl.steps import Ways, tree_time

GB, GIB, KIB = 1e9, 2**30, 1024
# Costs without any latency: only rates are left.
FREE = Primitives(0, 0, 0, 0, 0, 1e15, 1e15, 1e15, 0, 0, 1e15, 0, 0, 0, 1.0)
WIRE = Plugin(0, 0, 0, 1.0, post=0.0)


@pytest.mark.parametrize(("n_nodes", "share"), [(2, 1.0), (3, 1.5), (4, 2.0), (8, 2.0)])
@pytest.mark.parametrize("algorithm", ["nvls_tree", "tree"])
def test_large_calls_take_the_bytes_of_the_busiest_nic(algorithm, n_nodes, share):
    call = Call("all_reduce", 16 * GIB, 8 * n_nodes, n_nodes, algorithm, "simple", 16)
    ways = Ways(1e15, FREE, WIRE, 8 * 50 * GB, n_nics=8, per_node=8)
    seconds = nvls_time(ways, call, 1e15) if algorithm == "nvls_tree" else tree_time(ways, call)
    assert seconds == pytest.approx(share * 16 * GIB / (8 * 50 * GB), rel=0.01)


def test_a_call_of_one_chunk_sends_half_of_its_bytes_up_and_half_down():
    """Two machines of 8: of 16 channels one half has its root here, so that a NIC sends S/16 each way."""
    call = Call("all_reduce", 16 * 8 * 64 * KIB, 16, 2, "nvls_tree", "simple", 16)
    ways = Ways(1e15, FREE, WIRE, 8 * 5 * GB, n_nics=8, per_node=8)
    assert nvls_time(ways, call, 1e15) == pytest.approx(call.size / (8 * 5 * GB), rel=0.01)


def site(n_nodes, n_nics=8, gpu="hopper", link=370.8e9):
    ring = Channels(8, 48e9, 48e9 if n_nodes > 1 else 0.0)
    nvls = Channels(8, 40e9, 48e9)
    setting = Setting(8 * n_nodes, n_nodes, gpu, "intel", {"ring": ring, "tree": ring, "nvls": nvls})
    return Site(setting, link, nics=n_nics * 50e9, network="infiniband" if n_nodes > 1 else "", n_nics=n_nics)


def test_the_switch_carries_nccl_s_share_of_the_links():
    """0.85 of 18 NVLinks on Hopper, 0.74 on Blackwell (nvlsEfficiency): with 9/8 of the bytes 280 and 475 GB/s."""
    assert switch_rate(site(1)) == pytest.approx(0.85 * 370.8e9)
    blackwell = switch_rate(site(1, gpu="blackwell", link=721.8e9))
    assert blackwell / (9 / 8) == pytest.approx(475e9, rel=0.01)
    p, call = costs().of_gpu("hopper"), Call("all_reduce", 16 * GIB, 8, 1, "nvls", "simple", 16)
    loop = loop_of(p, call, 16, 128 * KIB, switch_rate(site(1))).later
    assert 16 * 8 * 128 * KIB / loop == pytest.approx(280e9, rel=0.02)


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
