"""Numbers by hand from the rules of older releases; the constants are those of their libraries."""

import pytest
from nccl_settings import setting, table

from collectives.nccl.call import NEWEST, OLDEST
from commsim.nccl import channel_search
from commsim.nccl.expected_costs import NVLS_EFFICIENCY
from commsim.nccl.gpu_costs import costs
from commsim.nccl.model_versions import MODELS, model_of
from commsim.nccl.nccl_setting import ALGORITHMS, GENERATIONS, Channels
from commsim.nccl.tuning_table import cell_time


def of(version, n_nodes=1, **more):
    return setting(8 * n_nodes, n_nodes, version=version, **more)


@pytest.mark.parametrize(
    ("version", "name", "microseconds"),
    [
        # one node of 8: 14 steps over NVLink
        ((2, 8), "ring/ll", 3.6 + 14 * 0.47), ((2, 12), "ring/ll128", 10 + 14 * 1.9),
        ((2, 17), "tree/ll", 4.4 + 14 * 0.52),
        ((2, 12), "tree/simple", 14 * 28), ((2, 18), "tree/simple", 14 * 4.0), ((2, 21), "tree/simple", 14 * 28),
        ((2, 22), "tree/simple", 14 * 28), ((2, 23), "tree/simple", 8.4 + 14 * 4.0),
        ((2, 30), "ring/ll", 6.6 + 14 * 0.6),
    ],
)  # fmt: skip
def test_latencies_on_one_node_are_those_of_the_release(version, name, microseconds):
    assert table(of(version))[name].latency * 1e6 == pytest.approx(microseconds)


@pytest.mark.parametrize(
    ("version", "name", "microseconds"),
    [
        # two nodes: of 30 steps 2 cross, before 2.23 it was counted as 4; posting costs 1 us since 2.18, 3 with Simple
        ((2, 12), "ring/simple", 8.4 + 26 * 3.4 + 4 * 9.6), ((2, 21), "ring/ll", 6.6 + 26 * 1.0 + 4 * 2.7),
        ((2, 30), "ring/ll", 6.6 + 28 * 1.0 + 2 * 2.7),
        # steps inside a node cost 1.8 times as much with LL before 2.18
        ((2, 17), "ring/ll", 3.6 + 26 * 1.8 * 0.47 + 4 * 2.7), ((2, 17), "tree/ll", 4.4 + 2 * (7 * 1.8 * 0.52 + 5.0)),
        ((2, 22), "tree/simple", 2 * (7 * 28 + 28)),
    ],
)  # fmt: skip
def test_latencies_across_nodes_are_those_of_the_release(version, name, microseconds):
    assert table(of(version, 2))[name].latency * 1e6 == pytest.approx(microseconds)


def test_the_plugin_s_latency_replaced_that_of_the_hop_before_2_18():
    old, new = (table(of(version, 2, latency=20e-6))["ring/ll"].latency * 1e6 for version in ((2, 17), (2, 30)))
    assert old == pytest.approx(3.6 + 26 * 1.8 * 0.47 + 4 * 20)
    assert new == pytest.approx(6.6 + 28 + 2 * (2.7 + 20))


@pytest.mark.parametrize(
    ("version", "gpu", "name", "gigabytes"),
    [
        # 8 channels of 40 GB/s on one node: a ring's LL had a quarter of the bus, now half, with a largest rate
        ((2, 21), "hopper", "ring/ll", 320 / 4 * 8 / 14), ((2, 30), "hopper", "ring/ll", 141 * 8 / 14),
        ((2, 22), "ampere", "ring/ll", 320 / 4 * 8 / 14),
        # Ampere's bus ended at 235 GB/s; before 2.17 Hopper was an Ampere, before 2.25 Blackwell a Hopper
        ((2, 12), "ampere", "ring/simple", 235 * 8 / 14), ((2, 14), "hopper", "ring/simple", 320 * 8 / 14),
        ((2, 23), "blackwell", "ring/ll128", 8 * 36.7 * 8 / 14),
        ((2, 27), "blackwell", "ring/ll128", 0.92 * 320 * 8 / 14),
        ((2, 29), "blackwell", "tree/ll128", 0.92 * 320 * 7 / 9 / 2),
    ],
)  # fmt: skip
def test_bandwidths_on_one_node_are_those_of_the_release(version, gpu, name, gigabytes):
    assert table(of(version, gpu=gpu))[name].bandwidth / 1e9 == pytest.approx(gigabytes)


def test_nvlink_sharp_came_with_2_17_and_is_reckoned_in_three_ways():
    nvls = Channels(8, 40e9, 40e9)
    rate = {v: table(of(v, nvls=nvls))["nvls/simple"] for v in ((2, 14), (2, 17), (2, 21), (2, 27), (2, 30))}
    assert rate[2, 14].why_not == "not in NCCL 2.14"
    assert rate[2, 17].bandwidth / 1e9 == pytest.approx(0.75 * 320)
    assert rate[2, 17].latency * 1e6 == pytest.approx(40)
    assert rate[2, 21].bandwidth / 1e9 == rate[2, 27].bandwidth / 1e9 == pytest.approx(5 / 6 * 320)
    assert (rate[2, 21].latency * 1e6, rate[2, 27].latency * 1e6) == pytest.approx((23, 25))
    assert rate[2, 30].bandwidth / 1e9 == pytest.approx(320 * 8 / 14)
    trees = {v: table(of(v, 4, nvls=nvls))["nvls_tree/simple"] for v in ((2, 27), (2, 28))}
    assert trees[2, 27].bandwidth / 1e9 == pytest.approx(5 / 6 * 160)  # from three nodes on half of each NIC
    assert trees[2, 27].latency * 1e6 == pytest.approx(25 + 2 * 2 * 14)
    assert trees[2, 28].latency * 1e6 == pytest.approx(25 + 2 * 2 * 20.9)


def test_the_plateau_of_rings_began_at_4_kib_for_each_rank():
    where = of((2, 12), 2, gpu="hopper")
    ring = table(where)["ring/simple"]
    edge = 16 * 4096
    assert cell_time(where, "all_reduce", ring, edge - 1) == pytest.approx(ring.latency + (edge - 1) / ring.bandwidth)
    assert cell_time(where, "all_reduce", ring, edge) == pytest.approx(1.9 * ring.latency + edge / ring.bandwidth)
    newer = of((2, 17), 2, gpu="hopper")
    ring = table(newer)["ring/simple"]
    assert cell_time(newer, "all_reduce", ring, edge) == pytest.approx(1.5 * ring.latency + edge / ring.bandwidth)


def test_every_release_from_the_oldest_to_the_newest_has_a_model_with_a_row_for_each_of_its_algorithms():
    assert [model.since for model in MODELS] == sorted((model.since for model in MODELS), reverse=True)
    for minor in range(OLDEST[1], NEWEST[1] + 1):
        model = model_of((2, minor))
        assert model.since <= (2, minor)
        assert set(model.algorithms) <= set(ALGORITHMS)
        for rows in (model.base_us, *model.hop_us.values()):
            assert set(model.algorithms) <= set(rows)
        for operation in ("all_reduce", "all_gather", "broadcast"):
            for gpu in ("volta", "ampere", "hopper", "blackwell"):
                found = table(of((2, minor), 2, gpu=gpu), operation)
                assert found["ring/simple"].bandwidth > 0
                assert all(bool(cell.why_not) != bool(cell.bandwidth) for cell in found.values())


def test_every_generation_has_a_row_in_each_table():
    tables = (channel_search.CHANNEL_GBS, channel_search.CHANNEL_NET_GBS, NVLS_EFFICIENCY)
    assert all(tuple(table) == GENERATIONS for table in tables)
    assert {*costs().primitives} == {*GENERATIONS}


def test_2_32_gives_trees_of_blackwell_more_with_ll128_on_two_nodes_and_changes_nothing_of_others():
    for gpu in ("volta", "ampere", "hopper", "blackwell"):
        old, new = (table(of((2, minor), 2, gpu=gpu)) for minor in (31, 32))
        changed = {name for name in new if new[name].bandwidth != old[name].bandwidth}
        assert changed == ({"tree/ll128"} if gpu == "blackwell" else set())
    tree = {minor: table(of((2, minor), 2, gpu="blackwell"))["tree/ll128"].bandwidth for minor in (31, 32)}
    assert 1 < tree[32] / tree[31] <= 36.7 / 31.67  # or what the search's channels have
