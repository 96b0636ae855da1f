"""Numbers by hand from the rules of NCCL 2.30's tuning model; the constants are those of reference 4.5."""

import itertools

import pytest
from nccl_settings import setting, table

from commsim.core.errors import InputError
from commsim.nccl.channel_search import doubled, nvls_channels, packed_channels, tree_intra
from commsim.nccl.choice import ranges
from commsim.nccl.nccl_setting import ALGORITHMS, PROTOCOLS, Channels, NcclSetting
from commsim.nccl.tuning_table import OPERATIONS, cell_time, cells


@pytest.mark.parametrize(
    ("n_nodes", "name", "microseconds"),
    [
        # one node of 8: 14 steps over NVLink
        (1, "ring/ll", 6.6 + 14 * 0.6), (1, "ring/ll128", 14 + 14 * 1.9), (1, "ring/simple", 8.4 + 14 * 3.4),
        (1, "tree/ll", 6.8 + 2 * 7 * 0.6), (1, "tree/simple", 8.4 + 2 * 7 * 4.0),
        # two nodes: 30 steps of which 2 cross; posting to the network costs 1 us, three times that with Simple
        (2, "ring/ll", 6.6 + 28 * 1.0 + 2 * 2.7), (2, "ring/simple", 8.4 + 28 * 3.4 + 2 * 14),
        (2, "tree/ll", 6.8 + 2 * (7 * 0.6 + 1 * 5.0)), (2, "tree/simple", 8.4 + 2 * (7 * 4.0 + 1 * 14)),
        # sixteen nodes: 254 steps of which 30 cross; a tree of depth 4
        (16, "ring/ll128", 14 + 224 * 1.9 + 30 * 4.0), (16, "tree/ll", 6.8 + 2 * (7 * 0.6 + 4 * 5.0)),
    ],
)  # fmt: skip
def test_latencies_of_an_all_reduce(n_nodes, name, microseconds):
    where = setting(8 * n_nodes, n_nodes)
    assert table(where)[name].latency * 1e6 == pytest.approx(microseconds)


def test_an_amd_cpu_posts_to_the_network_more_slowly():
    # 2 us, and 6 with Simple: more than the 3.4 us of NVLink
    assert table(setting(16, 2, cpu="amd"))["ring/simple"].latency * 1e6 == pytest.approx(8.4 + 28 * 6 + 2 * 14)


def test_with_one_gpu_per_node_a_ring_waits_as_long_as_a_tree():
    where = setting(8, 8, path_inter="PIX")
    assert table(where)["ring/ll"].latency * 1e6 == pytest.approx(6.6 + 14 * 5.0)
    halves = table(where, "all_gather")
    assert halves["pat/simple"].latency * 1e6 == pytest.approx(8 + 3 * 14 / 3.5 + 8 * 2.8)
    assert halves["pat/simple"].bandwidth == pytest.approx(0.75 * 8 * 40e9)
    assert table(setting(16, 2), "all_gather")["pat/simple"].why_not == "only with one GPU per node"


def test_the_latency_of_the_plugin_counts_twice_with_simple():
    plain, slow = table(setting(16, 2)), table(setting(16, 2, latency=3e-6))
    assert slow["ring/ll"].latency - plain["ring/ll"].latency == pytest.approx(2 * 3e-6)
    assert slow["ring/simple"].latency - plain["ring/simple"].latency == pytest.approx(2 * 6e-6)


def test_a_broadcast_passes_along_the_ring_once_or_once_per_rank():
    same, other = table(setting(8, 1), "broadcast"), table(setting(8, 1, same=False), "broadcast")
    assert same["ring/simple"].latency * 1e6 == pytest.approx(8.4 + 3.4)
    assert other["ring/simple"].latency * 1e6 == pytest.approx(8.4 + 8 * 4.0)
    assert same["ring/simple"].bandwidth == pytest.approx(320e9)
    assert [name for name, cell in same.items() if cell.bandwidth] == ["ring/ll", "ring/ll128", "ring/simple"]


@pytest.mark.parametrize(
    ("name", "gigabytes"),
    [
        ("ring/simple", 320 * 8 / 14),
        ("ring/ll", 141 * 8 / 14),  # half of 320 is above what LL reaches on one Hopper node
        ("ring/ll128", 8 * 36.7 * 8 / 14),  # 0.92 of 320 is above the largest rate of 8 channels
        ("tree/simple", 0.92 * 320 / 2),  # 294.4 is below 8 times 38.7
        ("tree/ll", 0.92 * 320 / 3.8 / 2),
        ("tree/ll128", 0.92 * 320 * 7 / 9 / 2),
    ],
)
def test_bandwidths_of_an_all_reduce_on_one_hopper_node(name, gigabytes):
    assert table(setting(8, 1))[name].bandwidth / 1e9 == pytest.approx(gigabytes)


def test_across_nodes_the_cpu_says_how_fast_ll_is():
    # 4 nodes: half of 320 GB/s is capped at 20.4 (not AMD) or 19.0; the factor is 32 ranks over 62 steps
    assert table(setting(32, 4))["ring/ll"].bandwidth / 1e9 == pytest.approx(20.4 * 32 / 62)
    assert table(setting(32, 4, cpu="amd"))["ring/ll"].bandwidth / 1e9 == pytest.approx(19.0 * 32 / 62)


def test_one_nic_for_up_and_down_costs_a_tree_15_per_cent():
    ratio = (
        table(setting(32, 4, one_nic_tree=True))["tree/simple"].bandwidth
        / table(setting(32, 4))["tree/simple"].bandwidth
    )
    assert ratio == pytest.approx(0.85)


def test_nvls_on_one_node_and_its_tree_on_several():
    nvls = Channels(8, 40e9, 0.0)
    one = table(setting(8, 1, nvls=nvls))["nvls/simple"]
    assert one.latency * 1e6 == pytest.approx(25)
    # 8 channels of 40 GB/s, 85 % of 7/8 of them, both halves at once
    assert one.bandwidth / 1e9 == pytest.approx(8 * 40 * 0.85 * 7 / 8 * 2 * 8 / 14)
    halves = table(setting(8, 1, nvls=nvls), "all_gather")["nvls/simple"]
    assert halves.bandwidth / 1e9 == pytest.approx(8 * 40 * 0.85 * 7 / 8 * 7 / 8)
    # of four GPUs 60 * 0.85 * 3/4 * 2 = 76.5 GB/s a channel is above the 60 that the search begins with
    four = table(setting(4, 1, nvls=Channels(4, 60e9, 60e9)))["nvls/simple"]
    assert four.bandwidth / 1e9 == pytest.approx(4 * 60 * 4 / 6)
    many = table(setting(32, 4, nvls=Channels(8, 40e9, 40e9)))
    assert many["nvls_tree/simple"].bandwidth / 1e9 == pytest.approx(8 * 40 * 32 / 62)
    assert many["nvls_tree/simple"].latency * 1e6 == pytest.approx(25 + 2 * 2 * 20.9)
    assert "needs a network that reduces" in many["nvls/simple"].why_not
    assert table(setting(8, 1))["nvls/simple"].why_not == "needs NVLink SHARP"
    assert table(setting(8, 1, gpu="ampere", nvls=nvls))["nvls/simple"].bandwidth == 0


def test_collnet_needs_to_be_enabled():
    net = {"ring": Channels(8, 40e9, 40e9), "tree": Channels(8, 40e9, 40e9), "collnet": Channels(8, 40e9, 40e9)}
    off, on = (table(NcclSetting(32, 4, "hopper", "intel", net, collnet)) for collnet in (False, True))
    assert off["collnet_chain/simple"].bandwidth == 0
    assert on["collnet_chain/simple"].latency * 1e6 == pytest.approx(2 * 7 * 2.8 + 30)
    assert on["collnet_direct/simple"].latency * 1e6 == pytest.approx(2 * (3.7 + 7 * 0.4) + 31)
    # a GPU for each channel loses nothing but Hopper's 15 %
    assert on["collnet_direct/simple"].bandwidth / 1e9 == pytest.approx(320 * 0.85 / 2)


def test_ll128_trusts_only_short_paths():
    assert table(setting(16, 2, path_inter="PHB"))["ring/ll128"].why_not.startswith(
        "LL128 needs a NIC no further than PXN"
    )
    assert table(setting(16, 2, gpu="ampere", path_inter="PXN"))["ring/ll128"].bandwidth == 0
    assert table(setting(16, 2, path_inter="PXN"))["ring/ll128"].bandwidth > 0
    assert "needs NVLink between the GPUs" in table(setting(8, 1, path_intra="PHB"))["ring/ll128"].why_not
    assert table(setting(8, 1, path_intra="PHB"))["ring/simple"].latency * 1e6 == pytest.approx(8.4 + 14 * 5.7)


def test_times_dip_for_trees_of_middle_size_and_rings_on_a_plateau():
    where = setting(16, 2)
    tree, ring = table(where)["tree/ll"], table(where)["ring/simple"]
    # 256 KiB is 2^12 times 64 B, where LL keeps 0.4 of a tree's rate
    assert cell_time(where, "all_reduce", tree, 2**18) == pytest.approx(tree.latency + 2**18 / (0.4 * tree.bandwidth))
    assert cell_time(where, "all_reduce", tree, 32) == pytest.approx(tree.latency + 32 / tree.bandwidth)
    assert cell_time(where, "all_reduce", tree, 2**40) == pytest.approx(tree.latency + 2**40 / tree.bandwidth)
    edge = 64 * 8 * 16  # bytes per channel and rank
    assert cell_time(where, "all_reduce", ring, edge - 1) == pytest.approx(ring.latency + (edge - 1) / ring.bandwidth)
    assert cell_time(where, "all_reduce", ring, edge) == pytest.approx(1.4 * ring.latency + edge / ring.bandwidth)
    assert cell_time(where, "all_reduce", table(where)["pat/simple"], 8) is None


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    "where",
    [
        setting(8, 1),
        setting(16, 2),
        setting(128, 16, gpu="ampere", cpu="amd"),
        setting(8, 8),
        setting(24, 3, gpu="volta", intra=20e9),
    ],
)
def test_ranges_have_no_gap_and_hold_the_fastest_cell_everywhere(where, operation):
    found = ranges(where, operation, 2**33)
    assert found[0].low == 1
    assert found[-1].high == 2**33
    assert all(a.high + 1 == b.low and a.cell != b.cell for a, b in itertools.pairwise(found))
    table = cells(where, operation)
    sizes = {s for r in found for s in (r.low, r.high, (r.low + r.high) // 2)} | {3**k for k in range(20)}
    for size in sorted(sizes):
        times = [(t, cell) for cell in table if (t := cell_time(where, operation, cell, size)) is not None]
        chosen = next(r.cell for r in found if r.low <= size <= r.high)
        assert cell_time(where, operation, chosen, size) == pytest.approx(min(t for t, _ in times), rel=1e-12)


def test_the_table_has_every_cell_and_says_why_one_is_empty():
    for operation in OPERATIONS:
        found = cells(setting(16, 2), operation)
        assert [cell.name for cell in found] == [f"{a}/{p}" for a in ALGORITHMS for p in PROTOCOLS]
        assert all(bool(cell.why_not) != bool(cell.bandwidth) for cell in found)
    with pytest.raises(InputError, match=r"NCCL chooses algorithms for broadcast, .*, not for all_to_all"):
        cells(setting(), "all_to_all")


# NCCL 2.27, src/graph/search.cc: speedArrayInter, and sm90SpeedArrayInter for Hopper.
RATES_BETWEEN_MACHINES = {
    "ampere": (48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, 0.24, 0.12),
    "hopper": (48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12),
}


@pytest.mark.parametrize(("gpu", "gbs"), [(gpu, gbs) for gpu, rates in RATES_BETWEEN_MACHINES.items() for gbs in rates])
def test_a_nic_has_one_channel_where_its_rate_is_one_that_nccl_tries(gpu, gbs):
    assert packed_channels(gpu, 1e12, gbs * 1e9, 8) == (8, gbs * 1e9)
    just_more = gbs * 1e9 * 1.001
    assert packed_channels(gpu, 1e12, just_more, 8) == (8, gbs * 1e9)


def test_channels_are_packed_and_doubled():
    assert packed_channels("ampere", 240e9) == (6, 40e9)
    assert doubled("ampere", 6, 40e9) == (12, 20e9)
    assert packed_channels("hopper", 370.8e9) == (6, 60e9)  # 6 of 60, 9 of 40 and 12 of 30 carry the same; the fastest
    assert doubled("hopper", 6, 60e9) == (12, 30e9)
    # 8 NICs of 48 GB/s: 8 channels of 48 that close do not fit into NVLink, 8 of 45 do; open ones have 7 links
    assert packed_channels("hopper", 370.8e9, 48e9, 8) == (8, 45e9)
    assert packed_channels("hopper", 370.8e9, 48e9, 8, near=8) == (8, 48e9)
    # a rack: 15 of 48 and 16 of 45 GB/s are the same, 16 of 45.1, which NCCL tries since 2.27, are more
    assert packed_channels("blackwell", 721.8e9, 50e9, 72, version=(2, 26)) == (15, 48e9)
    assert packed_channels("blackwell", 721.8e9, 50e9, 72, version=(2, 27)) == (16, 45.1e9)
    assert doubled("hopper", 8, 45e9) == (8, 45e9)
    assert doubled("hopper", 4, 45e9) == (8, 22.5e9)
    assert doubled("volta", 6, 20e9) == (6, 20e9)
    assert nvls_channels("hopper", 8, 370.8e9) == (8, 40e9)
    # 4 GH200 with 4 NICs of 25 GB/s: a ring each; with the plugin on Slingshot three each, as a log of Alps shows
    assert packed_channels("hopper", 370.8e9, 25e9, 4) == (4, 24e9)
    assert packed_channels("hopper", 370.8e9, 25e9, 4, "slingshot") == (12, 20e9)
    # chains of 4 have 3 links: what 4 GPUs send carries 12 of 40 GB/s, not of 30
    assert tree_intra("hopper", 12, 20e9, 370.8e9, 4) == 40e9
    with pytest.raises(InputError, match="no channel fits"):
        packed_channels("hopper", 1e9)


@pytest.mark.parametrize(
    ("change", "message"),
    [({"n_ranks": 1, "n_nodes": 1}, "fewer than 2 ranks"), ({"n_nodes": 99, "n_ranks": 8}, "on 1..8 nodes, got 99"),
     ({"gpu": "fermi"}, "gpu must be one of"), ({"cpu": "z80"}, "cpu must be one of"), ({"n": 0}, "at least 1 channel"),
     ({"n": 65}, "0..64 channels"), ({"path_inter": "USB"}, "path_inter must be one of")],
)  # fmt: skip
def test_settings_that_cannot_be_are_refused(change, message):
    with pytest.raises(InputError, match=message):
        setting(**change)
