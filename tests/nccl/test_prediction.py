"""Predicted times: limits that the hardware sets, what steps add up to, and published rates of one machine."""

import dataclasses
import itertools
import math

import pytest

from collectives.nccl.call import NcclCall
from collectives.nccl.rules import used_channels
from commsim.core.errors import InputError
from commsim.nccl.call_times import (
    COPIES,
    RECEIVES,
    SHARE_ALONE,
    UP_AND_DOWN,
    CallLinks,
    ring_time,
    ring_work,
    step_times,
    tree_time,
)  # fmt: skip
from commsim.nccl.channel_search import REPORTED_LATENCY
from commsim.nccl.choice import chosen_cell
from commsim.nccl.gpu_costs import PATH, Plugin, Primitives, costs, read_costs
from commsim.nccl.in_switch import direct_time, loop_of, nvls_time
from commsim.nccl.intervals import intervals
from commsim.nccl.nccl_setting import Channels, NcclSetting
from commsim.nccl.prediction import over_releases, predict
from commsim.nccl.site import Site, efa_of
from commsim.prediction.read import scenario_of
from commsim.prediction.solve import plan_of

US, GB, MIB, GIB = 1e-6, 1e9, 2**20, 2**30
# Costs without any latency: only rates are left.
FREE = Primitives(0, 0, 0, 0, 0, 1e15, 1e15, 1e15, 0, 0, 1e15, 0, 0, 0, 1.0)
WIRE = Plugin(0, 0, 0, 1.0)
# Generations of EFA by machine: AWS documentation, "Elastic Fabric Adapter", supported instance types; P6 has the
# fourth, of which commsim knows no other costs than the third's.
EFAS = {"p4d": "efa", "p5": "efa2", "p5e": "efa2", "p5en": "efa3", "p6-b200": "efa3"}


def one_machine(n=8, gpu="hopper", rings=(12, 30e9), nvls=(8, 40e9), link=370.8e9, **more):
    ring = Channels(rings[0], rings[1], 0.0)
    channels = {"ring": ring, "tree": ring} | ({"nvls": Channels(nvls[0], nvls[1], 60e9)} if nvls else {})
    return Site(NcclSetting(n, 1, gpu, "intel", channels), link, **more)


@pytest.mark.parametrize("n", [2, 4, 8, 72])
@pytest.mark.parametrize("operation", ["all_reduce", "all_gather", "reduce_scatter"])
def test_without_latency_a_ring_takes_its_bytes_over_the_link(n, operation):
    call = NcclCall(operation, GIB, n, 1, "ring", "simple", 24)
    passes = 2 if operation == "all_reduce" else 1
    time = ring_time(CallLinks(300 * GB, FREE), call)
    assert time == pytest.approx(passes * (n - 1) / n * GIB / (300 * GB), rel=0.01)


@pytest.mark.parametrize(("protocol", "share"), [("ll", 1 / 2), ("ll128", 120 / 128), ("simple", 1.0)])
def test_flags_take_their_part_of_the_link(protocol, share):
    call = NcclCall("all_gather", GIB, 8, 1, "ring", protocol, 24)
    assert ring_time(CallLinks(300 * GB, FREE), call) == pytest.approx(7 / 8 * GIB / (300 * GB * share), rel=0.01)


@pytest.mark.parametrize(("n_nodes", "times"), [(2, 1), (4, 2), (64, 2)])
def test_a_nic_carries_a_tree_once_between_two_machines_and_twice_with_more(n_nodes, times):
    call = NcclCall("all_reduce", 16 * GIB, n_nodes, n_nodes, "tree", "simple", 2)
    seconds = tree_time(CallLinks(1e15, FREE, WIRE, 50 * GB), call)
    assert seconds == pytest.approx(times * 16 * GIB / (50 * GB), rel=0.02)


@pytest.mark.parametrize(("n_nodes", "levels", "times"), [(2, 1, 1 / 2), (4, 2, 1), (64, 6, 1)])
def test_the_first_chunk_of_a_tree_goes_one_way_at_a_time_over_a_nic(n_nodes, levels, times):
    """On two machines half of the channels go each way at once; with more, each NIC sends a chunk of every channel."""
    call = NcclCall("all_reduce", 2 * 512 * 1024, n_nodes, n_nodes, "tree", "simple", 2)
    seconds = tree_time(CallLinks(1e15, FREE, WIRE, 50 * GB), call)
    assert seconds == pytest.approx(2 * levels * times * 2 * 512 * 1024 / (50 * GB), rel=0.01)


def test_a_network_that_reduces_takes_a_chunk_once_however_many_machines_there_are():
    two, many = (NcclCall("all_reduce", 16 * GIB, 8 * n, n, "collnet_chain", "simple", 8) for n in (2, 64))
    ways = CallLinks(1e15, FREE, WIRE, 50 * GB, per_node=8)
    assert tree_time(ways, two) == pytest.approx(16 * GIB / (50 * GB), rel=0.02)
    assert tree_time(ways, many) == pytest.approx(tree_time(ways, two), rel=1e-3)
    hop = Plugin(0, 0, 30 * US, 1.0, post=0.0)
    small = NcclCall("all_reduce", 1024, 512, 64, "collnet_chain", "simple", 8)
    assert tree_time(CallLinks(1e15, FREE, hop, 1e15, per_node=8), small) == pytest.approx(30 * US, rel=0.01)


def test_a_network_that_adds_has_no_children_to_wait_for():
    """The chain of a machine and its NICs work on different chunks: the slower sets the pace, on four machines too."""
    call = NcclCall("all_reduce", 16 * GIB, 32, 4, "collnet_chain", "simple", 8)
    link = 2 * 7 / 8 * 50 * GB  # so that both take as long
    seconds = tree_time(CallLinks(link, FREE, WIRE, 50 * GB, per_node=8), call)
    assert seconds == pytest.approx(16 * GIB / (50 * GB), rel=0.02)
    tree = NcclCall("all_reduce", 16 * GIB, 32, 4, "tree", "simple", 8)
    assert tree_time(CallLinks(link, FREE, WIRE, 100 * GB, per_node=8), tree) == pytest.approx(
        2**0.5 * seconds, rel=0.02
    )


def test_lines_of_ll_share_a_machine_s_links_evenly():
    """A channel's own rate and its share of the link do not add up, as they do for the slices of Simple."""
    rings = Primitives(0, 0, 0, 0, 0, 1 * GB, 1 * GB, 1 * GB, 0, 0, 1e15, 0, 0, 0, 1.0)
    ll, simple = (NcclCall("all_gather", 8 * 16 * 1024 * 8, 8, 1, "ring", name, 8) for name in ("ll", "simple"))
    n = [used_channels(call)[0] for call in (ll, simple)]
    bound = 7 * 16 * 1024 * 8 / GB
    assert ring_time(CallLinks(2 * n[0] * GB, rings), ll) == pytest.approx(8 / 7 * bound / n[0], rel=0.01)
    waited = math.hypot(COPIES, 1) + RECEIVES / 7
    assert ring_time(CallLinks(n[1] * GB, rings), simple) == pytest.approx(waited * bound / n[1], rel=0.01)


def test_collnet_direct_is_bounded_by_links_or_nics():
    """A GPU gives parts to the other heads and returns its own: 2 (p - 1) / p of the bytes; a NIC has them once."""
    call = NcclCall("all_reduce", 16 * GIB, 32, 4, "collnet_direct", "simple", 16)
    assert direct_time(CallLinks(200 * GB, FREE, WIRE, 1e15, per_node=8), call) == pytest.approx(
        2 * 7 / 8 * 16 * GIB / (200 * GB), rel=0.02
    )
    assert direct_time(CallLinks(1e15, FREE, WIRE, 100 * GB, per_node=8), call) == pytest.approx(
        16 * GIB / (100 * GB), rel=0.02
    )


def test_a_chunk_that_the_network_adds_comes_back_later():
    """By what NCCL's own hop of CollNet direct has more than that of a tree."""
    small = NcclCall("all_reduce", 1024, 32, 4, "collnet_direct", "simple", 1)
    hop = Plugin(0, 0, 14 * US, 1.0, post=0.0)
    assert direct_time(CallLinks(1e15, FREE, hop, 1e15, per_node=8), small) == pytest.approx(31 * US, rel=0.01)


def test_the_slowest_nic_s_announcements_hold_a_step():
    """One NIC waits 10 us, the slowest of four 1 + 1/2 + 1/3 + 1/4 times that; a NIC's turns follow each other."""
    plugin = Plugin(0, 0, 0, 1.0, eager=5000, announce=10 * US, post=0.0)
    assert plugin.hop("ll", 5000, 4) == 0
    assert plugin.hop("ll", 5001) == pytest.approx(10 * US)
    assert plugin.hop("ll", 5001, 4) == pytest.approx(25 / 12 * 10 * US)
    assert plugin.announced("ll", 5001, 1, 4) == pytest.approx(40 * US)
    assert plugin.announced("ll", 5001, 4, 4) == pytest.approx((4 + 2 * 13 / 12) * 10 * US)
    ways = CallLinks(1e15, FREE, plugin, 1e15, n_nics=4, per_node=4)
    one, two, four, eight = (
        tree_time(ways, NcclCall("all_reduce", n * 4096, 8, 2, "tree", "ll", 8)) for n in (1, 2, 4, 8)
    )
    assert (one, two, four) == pytest.approx((20 * US, 30 * US, 500 / 12 * US), rel=1e-5)
    assert eight == pytest.approx(four)  # two messages of each NIC under way together


@pytest.mark.parametrize("operation", ["all_gather", "reduce_scatter"])
def test_a_half_in_a_network_that_adds_is_bounded_by_links_or_nics(operation):
    """Parts of 3 machines cross the NICs of the fourth; links carry all but the own rail, with NVLink SHARP all."""
    for algorithm, time in (
        ("collnet_direct", direct_time),
        ("nvls", lambda ways, call: nvls_time(ways, call, ways.link)),
    ):
        call = NcclCall(operation, 16 * GIB, 32, 4, algorithm, "simple", 16)
        links, nics = (time(ways, call) for ways in (
            CallLinks(200 * GB, FREE, WIRE, 1e15, per_node=8), CallLinks(1e15, FREE, WIRE, 100 * GB, per_node=8)
        ))  # fmt: skip
        inside = 1 if algorithm == "nvls" else 7 / 8
        assert links == pytest.approx(inside * 16 * GIB / (200 * GB), rel=0.02)
        assert nics == pytest.approx(3 / 4 * 16 * GIB / (100 * GB), rel=0.02)


def test_later_loops_of_a_ring_take_the_mean_of_its_hops():
    """Two crossings of 40 us among 16 hops cost a loop four of them, and 26 hops of 1 us."""
    rings = Primitives(0, 0, 1 * US, 0, 0, 1e15, 1e15, 1e15, 0, 0, 1e15, 0, 0, 0, 1.0)
    ways = CallLinks(1e15, rings, Plugin(0, 40 * US, 0, 1.0, post=0.0), 1e15, per_node=8)
    step = 576_000 * 16  # a chunk for each rank
    one, four = (ring_time(ways, NcclCall("all_reduce", n * step, 16, 2, "ring", "ll128", 1)) for n in (1, 4))
    assert four - one == pytest.approx(3 * (26 * 1 + 4 * 40) * US, rel=0.01)


def test_the_copy_of_a_receiver_s_last_slice_overlaps_with_nothing():
    """Two machines whose CPUs copy at 5 GB/s: each of both steps has the bytes' copy beside that of the last slice."""
    staged = Plugin(0, 0, 0, 1.0, post=0.0, copy=5 * GB)
    call = NcclCall("all_reduce", 64 * 1024, 2, 2, "ring", "simple", 1)
    chunk = 32 * 1024 / (5 * GB)
    assert ring_time(CallLinks(1e15, FREE, staged, 1e15), call) == pytest.approx(2 * math.hypot(chunk, chunk), rel=0.01)


def test_a_send_one_way_waits_for_no_chunk_of_its_peer():
    ring = Channels(12, 20e9, 0.0)
    exchange = Site(NcclSetting(2, 1, "ampere", "intel", {"ring": ring, "tree": ring}), 240e9)
    send, p = dataclasses.replace(exchange, one_way=True), costs().of_gpu("ampere")
    assert predict(send, "send_recv", GIB).seconds == pytest.approx(GIB / 240e9, rel=0.01)
    assert predict(send, "send_recv", 1024).seconds == pytest.approx(p.launch + p.p2p_ll, rel=0.01)
    for size in (MIB, 16 * MIB):
        assert predict(send, "send_recv", size).seconds < predict(exchange, "send_recv", size).seconds


def test_the_plugin_of_the_first_efa_leaves_simple_only():
    """aws-ofi-nccl sets NCCL_PROTO=simple where the NIC does not keep 128 bytes in order, as on P4d."""
    ring = Channels(4, 12e9, 12e9)
    site = Site(NcclSetting(16, 2, "ampere", "intel", {"ring": ring, "tree": ring}), 240e9, nics=50e9, network="efa")
    assert {chosen_cell(site, "all_reduce", 2**k).protocol for k in range(10, 34)} == {"simple"}


def test_before_nccl_2_5_a_ring_takes_ll_up_to_64_bytes_a_thread_of_each_channel_and_rank():
    """NCCL_PROTO is newer, so that no plugin forces Simple: 2 channels, 16 ranks, 256 threads; 512 KiB."""
    ring = Channels(1, 12e9, 12e9)
    setting = NcclSetting(16, 2, "volta", "intel", {"ring": ring, "tree": ring}, version=(2, 8))
    old = Site(setting, 120e9, nics=12.5e9, network="efa_staged", version=(2, 4, 8))
    assert [chosen_cell(old, "all_reduce", size, "ring").protocol for size in (1024, 2**19, 2**19 + 1)] == [
        "ll",
        "ll",
        "simple",
    ]
    new = dataclasses.replace(old, version=(2, 8))
    assert chosen_cell(new, "all_reduce", 1024, "ring").protocol == "simple"


@pytest.mark.parametrize("operation", ["broadcast", "reduce"])
def test_chunks_follow_each_other_down_a_chain(operation):
    """A large array passes every link once, whatever the number of ranks."""
    for n in (2, 8, 16):
        call = NcclCall(operation, 16 * GIB, n, 1, "ring", "simple", 16)
        assert ring_time(CallLinks(300 * GB, FREE), call) == pytest.approx(16 * GIB / (300 * GB), rel=0.02)


def test_a_small_ring_takes_its_hops():
    costs_of_hops = Primitives(5 * US, 1 * US, 0, 0, 0, 1e15, 1e15, 1e15, 0, 0, 1e15, 0, 0, 0, 1.0)
    call = NcclCall("all_reduce", 1024, 8, 1, "ring", "ll", 24)
    assert ring_time(CallLinks(1e15, costs_of_hops), call) == pytest.approx(5 * US + 14 * US)
    plugin = Plugin(4 * US, 0, 0, 1.0, post=0.0)
    call = NcclCall("all_reduce", 1024, 16, 2, "ring", "ll", 16)
    assert ring_time(CallLinks(1e15, costs_of_hops, plugin, 1e15), call) == pytest.approx((5 + 26 * 1 + 4 * 4) * US)
    call = NcclCall("all_reduce", 1024, 32, 4, "tree", "ll", 16)  # up and down: 7 hops inside, 2 between
    assert tree_time(CallLinks(1e15, costs_of_hops, plugin, 1e15), call) == pytest.approx(
        (5 + 2 * (7 + 2 * 4)) * US, rel=1e-4
    )


def test_lines_of_ll128_are_passed_on_as_they_come_and_chunks_of_simple_when_they_are_there():
    """Down a chain of 8 and up, a chunk passes once with LL128 and 14 times with Simple."""
    p = Primitives(0, 0, 1 * US, 1 * US, 0, 1e15, 10 * GB, 10 * GB, 0, 0, 1e15, 0, 0, 0, 1.0)
    size = 100_000
    lines, chunks = (
        tree_time(CallLinks(1e15, p), NcclCall("all_reduce", size, 8, 1, "tree", how, 1)) for how in ("ll128", "simple")
    )
    alone = {how: size / (SHARE_ALONE[how] * 10 * GB) for how in ("ll128", "simple")}
    chunk = 36_000 / (SHARE_ALONE["ll128"] * 10 * GB)  # of LL128 the chunk is smaller, and the others follow
    assert lines < 14 * US + 4 * alone["ll128"] < chunks
    assert lines > 14 * US + chunk / 2
    assert chunks == pytest.approx(14 * (UP_AND_DOWN * alone["simple"] + 1 * US), rel=0.01)


def test_the_proxy_of_a_nic_posts_the_messages_of_its_channels_one_after_another():
    """8 channels on 4 NICs: for each chunk 2 channels x 2 neighbours, one message each way."""
    slow, fast = (Plugin(0, 0, 0, 1.0, post=post) for post in (1 * US, 0.0))
    call = NcclCall("all_reduce", 64 * MIB, 256, 64, "tree", "simple", 8)
    ways = [CallLinks(1e15, FREE, plugin, 1e15, n_nics=4, per_node=4) for plugin in (slow, fast)]
    chunks = 64 * MIB / 8 / (512 * 1024)
    hops = 2 * 6 * 1 * US  # the second channel waits for the first on each crossing
    assert tree_time(ways[0], call) - tree_time(ways[1], call) == pytest.approx((chunks - 1) * 8 * US + hops, rel=0.01)


def test_the_second_slice_of_a_chunk_hides_the_hop():
    p = Primitives(0, 0, 0, 3 * US, 4 * US, 1e15, 1e15, 100 * GB, 0, 0, 1e15, 0, 0, 0, 1.0)
    ways = CallLinks(1e15, p)
    one = 4 * US + 1e5 / (100 * GB)
    assert step_times(ways, "simple", 1e5, 1, 3 * US) == pytest.approx((one + 3 * US, one))
    half = 4 * US + 5e4 / (100 * GB)
    assert step_times(ways, "simple", 1e5, 2, 3 * US) == pytest.approx((2 * half, 2 * half))
    assert step_times(ways, "simple", 1e5, 2, 30 * US) == pytest.approx((half + 30 * US, 2 * half))


def test_channels_wait_for_each_other_in_the_first_loop_only():
    # 24 channels, chunks of 2 MiB: a loop of 8 ranks has 24 x 16 MiB; alone, a channel takes 2/3 of the link's time.
    p = Primitives(0, 0, 0, 0, 0, 1e15, 1e15, 15 * GB, 0, 0, 1e15, 0, 0, 0, 1.0)
    calls = [NcclCall("all_reduce", n * 24 * 16 * MIB, 8, 1, "ring", "simple", 24) for n in (1, 4)]
    one, four = (ring_time(CallLinks(240 * GB, p), call) for call in calls)
    _, work, last = ring_work(calls[0])
    by_link, alone = 14 * 48 * MIB / (240 * GB), 14 * work * 2 * MIB / (15 * GB)
    a_primitive_more = last * 2 * MIB / (15 * GB)
    assert one == pytest.approx(math.hypot(by_link, alone) + a_primitive_more, rel=1e-3)
    assert four - one == pytest.approx(3 * (by_link + a_primitive_more), rel=1e-3)


def test_nvlink_sharp_sends_all_bytes_and_the_results_of_its_own_part():
    call = NcclCall("all_reduce", 16 * GIB, 8, 1, "nvls", "simple", 16)
    assert nvls_time(CallLinks(0, FREE), call, 400 * GB) == pytest.approx((1 + 1 / 8) * 16 * GIB / (400 * GB), rel=0.01)


def test_times_grow_with_the_size_but_for_the_choice_of_an_algorithm():
    site = one_machine()
    for forced in (("ring", "simple"), ("ring", "ll128"), ("tree", "simple")):
        times = [predict(site, "all_reduce", 2**k, *forced).seconds for k in range(10, 35)]
        assert all(later > 0.97 * earlier for earlier, later in itertools.pairwise(times))


@pytest.mark.parametrize(
    ("site", "how", "busbw"),
    [
        (one_machine(), "nvls", 480 * GB),  # 8 H100 with NVLink SHARP, published by NVIDIA
        (one_machine(), "ring", 370 * GB),
    ],
)
def test_rates_of_large_all_reduces_on_8_h100(site, how, busbw):
    time = predict(site, "all_reduce", 16 * GIB, how, "simple").seconds
    # The search's rate and the protocol's efficiency alone, then with what steps cost.
    if how == "nvls":
        of_rules = 8 * 40 * GB * 0.85 * (8 - 1) / 8 * 2
        assert of_rules == pytest.approx(busbw, rel=0.05)
    else:
        assert site.link == pytest.approx(busbw, rel=0.05)
    assert 14 / 8 * 16 * GIB / time == pytest.approx(busbw, rel=0.05)


def test_a_prediction_has_the_interval_of_its_machines_and_size():
    ring = Channels(4, 24e9, 24e9)
    where = NcclSetting(8, 2, "hopper", "other", {"ring": ring, "tree": ring})
    sites = {"machine": one_machine(), "infiniband": Site(where, 370.8e9, nics=100e9, network="infiniband")}
    for machines, site in sites.items():
        for size, name in ((1024, "small"), (2**16, "middle"), (64 * MIB, "large")):
            p = predict(site, "all_reduce", size)
            low, high = intervals()[machines, name]
            assert (p.low, p.high) == pytest.approx((p.seconds * low, p.seconds * high))
            assert 0.5 < low < 1 < high < 3


def test_where_the_release_is_not_known_the_interval_holds_that_of_every_release():
    ring = Channels(8, 24e9, 24e9)
    where = NcclSetting(32, 4, "ampere", "intel", {"ring": ring, "tree": ring})
    site = Site(where, 240e9, nics=200e9, network="infiniband", n_nics=8)
    for size in (64 * 1024, 4 * MIB, GIB):
        low, high = over_releases(site, "all_reduce", size)
        found = [
            predict(
                dataclasses.replace(site, version=v, setting=dataclasses.replace(where, version=v)), "all_reduce", size
            )
            for v in ((2, 8), (2, 17), (2, 22), (2, 23), (2, 30))
        ]
        assert all(low <= one.low <= one.high <= high for one in found)
    with pytest.raises(InputError, match="no all_reduce with nvls/any here"):
        over_releases(site, "all_reduce", MIB, "nvls")


def test_protocols_that_a_network_does_not_leave_are_not_chosen():
    ring = Channels(4, 24e9, 24e9)
    where = NcclSetting(8, 2, "hopper", "other", {"ring": ring, "tree": ring})
    sites = {name: Site(where, 370.8e9, nics=100e9, network=name) for name in ("infiniband", "slingshot")}
    taken = {
        name: {chosen_cell(site, "all_reduce", 2**k).protocol for k in range(10, 30)} for name, site in sites.items()
    }
    assert taken["infiniband"] == {"ll", "ll128", "simple"}
    assert taken["slingshot"] == {"ll", "simple"}


def test_what_has_no_constants_is_refused_with_what_has():
    ring = Channels(4, 24e9, 24e9)
    where = NcclSetting(8, 2, "hopper", "other", {"ring": ring, "tree": ring})
    with pytest.raises(InputError, match=r"known for infiniband, roce, .*, not for 'tofu'"):
        predict(Site(where, 370.8e9, nics=100e9, network="tofu"), "all_reduce", MIB)
    with pytest.raises(InputError, match="ampere, hopper, blackwell, volta, not for pascal"):
        costs().of_gpu("pascal")
    with pytest.raises(InputError, match="no all_reduce with nvls/ll here"):
        predict(one_machine(), "all_reduce", MIB, "nvls", "ll")


def test_constants_are_of_three_kinds_and_name_their_tables():
    known = read_costs(PATH.read_text(encoding="utf-8"))
    assert {"ampere", "hopper", "blackwell"} <= known.primitives.keys()
    assert len(known.fitted_on) == len(set(known.fitted_on)) >= 10
    for p in known.primitives.values():
        assert 0.5 < p.p2p_efficiency <= 1
        # A channel moves more with Simple than with LL128, and with LL128 than with LL; latencies are the other way.
        assert p.rate_ll < p.rate_ll128 < p.rate_simple
        assert p.hop_ll < p.hop_ll128 < p.hop_simple + p.slice
    assert all(0 < plugin.efficiency <= 1 and math.isfinite(plugin.hop_simple) for plugin in known.plugins.values())


def test_a_forced_ring_loses_to_a_tree_the_more_the_more_machines_there_are():
    # MareNostrum 5, 4 GPUs and 4 NDR200 NICs a machine: at 8 MiB a ring takes 1.06, 2.1 and 3.5 times as long as a tree
    # on 4, 16 and 64 machines, and at 64 MiB it is the faster one on 4.
    def ratio(n_nodes, size):
        ring = Channels(4, 24e9, 24e9)
        setting = NcclSetting(4 * n_nodes, n_nodes, "hopper", "intel", {"ring": ring, "tree": ring})
        site = Site(setting, 370.8e9, nics=100e9, network="infiniband", n_nics=4)
        ring_seconds, tree_seconds = (predict(site, "all_reduce", size, how).seconds for how in ("ring", "tree"))
        return ring_seconds / tree_seconds

    assert ratio(4, 8 * MIB) < ratio(16, 8 * MIB) < ratio(64, 8 * MIB)
    assert ratio(16, 8 * MIB) > 1 > ratio(4, 64 * MIB)


def test_announced_messages_of_a_nic_follow_each_other():
    """16 channels of 2 x 4 ranks, 4 of them on each of 4 NICs, 14 steps: the slowest NIC holds each step."""
    plugin = Plugin(0, 0, 0, 1.0, eager=5000, announce=12 * US, post=0.0)
    call = NcclCall("all_reduce", 2**19, 8, 2, "ring", "ll", 16)
    ways = CallLinks(1e15, FREE, plugin, 1e15, n_nics=4, per_node=4)
    slowest = 4 + 2 * (1 / 2 + 1 / 3 + 1 / 4)  # of four sums of four waits, in mean waits
    assert ring_time(ways, call) == pytest.approx(14 * slowest * 12 * US, rel=1e-3)
    small = NcclCall("all_reduce", 2**12, 8, 2, "ring", "ll", 16)  # below the limit, no message is announced
    assert ring_time(ways, small) < 1 * US


def test_messages_of_channels_that_leave_by_one_rank_are_posted_one_after_another():
    ways = CallLinks(1e15, FREE, Plugin(0, 0, 0, 1.0, post=2 * US), 1e15)
    posts = [ring_time(ways, NcclCall("all_gather", size, 2, 2, "ring", "ll", 4)) for size in (2**13, 2**15)]
    assert posts == pytest.approx([0, 3 * 2 * US], abs=1e-9)  # 1 channel, then 4


def test_a_ring_of_one_gpu_in_each_machine_waits_for_its_nic_once():
    call = NcclCall("all_gather", 8 * MIB, 2, 2, "ring", "simple", 2)
    assert ring_time(CallLinks(1e15, FREE, Plugin(0, 0, 0, 1.0, post=0.0), 10 * GB), call) == pytest.approx(
        4 * MIB / (10 * GB), rel=1e-3
    )


def test_a_cpu_that_copies_bounds_each_rank():
    plugin = Plugin(0, 0, 0, 1.0, copy=3 * GB)
    assert CallLinks(1e15, FREE, plugin, 50 * GB, per_node=1).outside("simple") == 3 * GB
    assert CallLinks(1e15, FREE, plugin, 50 * GB, per_node=4).outside("simple") == 12 * GB
    assert CallLinks(1e15, FREE, plugin, 10 * GB, per_node=4).outside("simple") == 10 * GB
    assert [efa_of("volta", gpudirect=False), efa_of("ampere", gpudirect=True)] == ["efa_staged", "efa"]
    # These write to the host's memory without the CPU.
    assert [efa_of("hopper", gpudirect=False), efa_of("blackwell", gpudirect=False)] == ["efa2", "efa3"]


def test_the_plugin_reports_35_us_from_the_third_efa_on_and_75_before():
    """aws-ofi-nccl, src/platform-aws.cpp (June 2026): P4d, P5 and P5e 75 us, P5en, P6 and G7e 35 us."""
    found = {name: plan_of(scenario_of("nccl", f"{name}@star:machines=2")).launch.known_site for name in EFAS}
    assert {name: site.network for name, site in found.items()} == EFAS
    for name, site in found.items():
        assert site.setting.channels["ring"].latency == (35e-6 if EFAS[name] == "efa3" else 75e-6)
    assert [REPORTED_LATENCY[name] * 1e6 for name in ("efa", "efa2", "efa3")] == [75, 75, 35]


def test_the_third_efa_has_the_second_s_rates_and_shorter_hops():
    second, third = (costs().of_network(name) for name in ("efa2", "efa3"))
    assert third.hop("ll") == pytest.approx(0.65 * second.hop("ll"))
    assert third.hop("simple") == pytest.approx(0.65 * second.hop("simple"))
    assert (third.efficiency, third.protocols) == (second.efficiency, second.protocols)


@pytest.mark.parametrize(("nic", "rate"), [(0.125 * GB, 0.98 * 0.125 * GB), (12.5 * GB, 0), (50 * GB, 0)])
def test_over_sockets_a_rank_copies_as_fast_as_its_cpu_does_whatever_the_nic_carries(nic, rate):
    sockets = costs().of_network("sockets")
    assert CallLinks(1e15, FREE, sockets, nic, per_node=1).outside("simple") == pytest.approx(rate or sockets.copy)


# Loops of 10 us and 1 us a head; a chunk of 70 kB takes a channel 0.7 us.
NVLS = Primitives(0, 0, 0, 0, 0, 1e15, 1e15, 1e15, 10 * US, 1 * US, 100 * GB, 0, 0, 0, 1.0)


def loops_of(chunk, n_ranks, n_nodes=1, algorithm="nvls", link=1e15):
    return loop_of(NVLS, NcclCall("all_reduce", GIB, n_ranks, n_nodes, algorithm, "simple", 16), 16, chunk, link)


def test_a_loop_of_nvlink_sharp_is_as_long_as_its_heads_or_its_own_part_s_way():
    assert loops_of(0, 4).later == pytest.approx(10 * US)
    assert loops_of(7e4, 32).later == pytest.approx(32 * 1.7 * US)
    assert loops_of(7e4, 8, link=1 * GB).later == pytest.approx(16 * 9 * 7e4 / GB)


def test_the_first_loop_of_nvlink_sharp_goes_through_all_groups_of_warps():
    own = 10 * US + 3 * 0.7 * US * 7 / 5  # five warps reduce, seven gather
    assert loops_of(7e4, 32).first == pytest.approx(2 * 32 * 1.7 * US + own)
    assert loops_of(7e4, 4).first == pytest.approx(2 * 4 * (1 + 0.7 * 7 / 6) * US + 10 * US + 3 * 0.7 * US)


def test_a_tree_between_machines_leaves_fewer_warps_to_the_heads():
    assert loops_of(7e4, 64, 2, "nvls_tree").later == pytest.approx(32 * (1 + 0.7 * 7 / 5) * US)
    assert loops_of(7e4, 64, 2, "nvls").later == pytest.approx(32 * 1.7 * US)  # the network adds


@pytest.mark.parametrize("operation", ["all_gather", "reduce_scatter"])
def test_halves_by_nvlink_sharp_take_their_bytes_over_the_link(operation):
    call = NcclCall(operation, 16 * GIB, 8, 1, "nvls", "simple", 16)
    assert nvls_time(CallLinks(0, FREE), call, 400 * GB) == pytest.approx(16 * GIB / (400 * GB), rel=0.01)


def test_nvlink_sharp_over_a_network_that_adds_sends_each_byte_once():
    tree, plain = (
        nvls_time(
            CallLinks(1e15, FREE, WIRE, 50 * GB), NcclCall("all_reduce", 16 * GIB, 64, 8, name, "simple", 16), 1e15
        )
        for name in ("nvls_tree", "nvls")
    )
    assert plain == pytest.approx(16 * GIB / (50 * GB), rel=0.01)
    assert tree == pytest.approx(2 * plain, rel=0.01)


def test_one_rank_of_a_machine_sends_by_its_own_nic():
    ring = Channels(4, 24e9, 24e9)
    where = NcclSetting(8, 2, "hopper", "other", {"ring": ring, "tree": ring})
    site = Site(where, 370.8e9, nics=100e9, network="infiniband", n_nics=4)
    reached = 2**30 / predict(site, "send_recv", 2**30).seconds
    assert reached == pytest.approx(25e9 * costs().of_network("infiniband").efficiency, rel=0.02)


def test_a_pair_reaches_the_share_of_its_links_that_eight_do():
    pair, all_eight = one_machine(n=2), one_machine()
    rate = 2**32 / predict(pair, "send_recv", 2**32).seconds
    of_eight = 7 / 8 * 2**32 / predict(all_eight, "all_to_all", 2**32).seconds
    assert pair.link == all_eight.link
    assert rate == pytest.approx(of_eight, rel=0.02)
    assert rate < 0.9 * pair.link


def test_trees_take_the_threads_that_rings_do_not_have():
    """Down, of 640 threads 30 % are left with LL and LL128, in whole warps."""
    assert SHARE_ALONE == {"ll": 192 / 512, "ll128": 192 / 640, "simple": 320 / 512}


def test_a_tree_s_hop_with_ll128_is_nccl_s_share_of_a_ring_s():
    gpu = costs().of_gpu("hopper")
    ways = CallLinks(float("inf"), gpu)
    assert ways.hop("ll128", "tree") == pytest.approx(gpu.hop_ll128 * 1.25 / 1.9)
    assert ways.hop("ll128", "ring") == gpu.hop_ll128
    assert ways.hop("ll", "tree") == gpu.hop_ll
