"""ASTRA-sim's configuration: units, products of dimensions, times after a round trip."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.checking.check import check
from commsim.core.errors import InputError
from commsim.core.files.network_file import read_network
from commsim.formats.astra.network import read_astra_network, read_dimensions, write_astra_network
from commsim.formats.astra.phases import schedule_of_ways
from commsim.formats.astra.products import Dimension, network_of
from commsim.formats.astra.recognise import dimensions_of
from commsim.formats.astra.schedule_choice import schedule_of_system, system_of
from commsim.formats.astra.system_layer import AstraSystem, read_system, write_system
from commsim.prediction.build import prepare
from commsim.prediction.collective_names import load_schedule
from commsim.prediction.inputs import load_network
from commsim.prediction.read import with_costs

EXAMPLE = """topology: [ Switch, Switch ]
npus_count: [ 8, 16 ]
bandwidth: [ 370.0, 46.566 ]
latency: [ 900.0, 2500.0 ]
"""
dimension = st.builds(
    Dimension, st.sampled_from(("Ring", "FullyConnected", "Switch")), st.integers(2, 5),
    st.floats(1e3, 1e15), st.floats(0, 1).map(abs) | st.sampled_from((9e-7, 1e-9, 2.5e-6)),
)  # fmt: skip


def test_a_gb_is_2_to_the_30_bytes_and_latency_is_in_ns(tmp_path: Path) -> None:
    path = tmp_path / "net.yml"
    path.write_text(EXAMPLE)
    first, second = read_dimensions(path)
    assert first == Dimension("Switch", 8, 370.0 * 2**30, 9e-7)
    assert second.bandwidth == pytest.approx(50e9, rel=1e-4)
    network = read_astra_network(path)
    assert (len(network.hosts), network.n_nodes, network.n_links) == (128, 128 + 16 + 8, 4 * 128)


@given(st.lists(dimension, min_size=1, max_size=3).map(tuple))
def test_every_product_is_recognised_and_survives_a_round_trip_exactly(
    tmp_path_factory: pytest.TempPathFactory, dimensions: tuple[Dimension, ...]
) -> None:
    path = tmp_path_factory.mktemp("astra") / "net.yml"
    network = network_of(dimensions, "net")
    assert network.n_links == sum(
        math.prod(d.n_hosts for d in dimensions) * {"Ring": min(2, d.n_hosts - 1), "FullyConnected": d.n_hosts - 1,
                                                   "Switch": 2}[d.block] for d in dimensions)  # fmt: skip
    write_astra_network(network, path)
    again = read_astra_network(path)
    for name in ("src", "dst", "bandwidth", "latency", "coordinates"):
        order = [
            np.lexsort((n.dst, n.src)) if len(getattr(n, name)) == n.n_links else slice(None) for n in (network, again)
        ]
        np.testing.assert_array_equal(getattr(network, name)[order[0]], getattr(again, name)[order[1]])
    found = {"Ring": "Ring", "FullyConnected": "FullyConnected", "Switch": "Switch"}
    for wanted, got in zip(dimensions, dimensions_of(network)[0], strict=True):
        assert (wanted.n_hosts, wanted.bandwidth, wanted.latency) == (got.n_hosts, got.bandwidth, got.latency)
        same = wanted.n_hosts <= 3 and wanted.block != "Switch"  # a ring of 2 or 3 is a full mesh
        assert same or found[wanted.block] == got.block


def test_the_file_is_what_a_yaml_reader_expects(tmp_path: Path) -> None:
    path = tmp_path / "net.yml"
    write_astra_network(load_network("torus:dims=4x8,bandwidth=400Gbps,latency=500ns"), path)
    tree = yaml.safe_load(path.read_text())
    assert tree == {
        "topology": ["Ring", "Ring"], "npus_count": [8, 4], "bandwidth": [50e9 / 2**30] * 2, "latency": [500.0] * 2,
    }  # fmt: skip


NETWORKS = ("ring:n_hosts=8", "star:n_hosts=8,bandwidth=25Gbps", "fully_connected:n_hosts=8", "torus:dims=4x2",
            "torus:dims=2x2x2")  # fmt: skip


@pytest.mark.jit
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("collective", ["ring_all_reduce", "halving_doubling_all_reduce", "pairwise_all_to_all"])
def test_predicted_times_after_a_round_trip_are_unchanged(tmp_path: Path, network: str, collective: str) -> None:
    before = load_network(network)
    assert write_astra_network(before, tmp_path / "n.yml") == ()
    after = read_astra_network(tmp_path / "n.yml")
    times = [prepare(collective, each, n_ranks=8).predict(12345678.0).time for each in (before, after)]
    assert times[1] == pytest.approx(times[0], rel=1e-12)


@pytest.mark.parametrize(
    ("network", "wanted"),
    [
        ("fat_tree:k=4", "joins two switches"), ("leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2", "two switches"),
        ("torus:dims=4x4,wrap=false", "Ring.4.*is missing"), ("dragonfly:p=2,a=2,h=1", "no product"),
        ("dgx-h100", "is a"),
    ],
)  # fmt: skip
def test_other_networks_are_refused_with_the_reason(tmp_path: Path, network: str, wanted: str) -> None:
    with pytest.raises(InputError, match=f"(?s)no product of rings.*{wanted}|{wanted}"):
        write_astra_network(load_network(network), tmp_path / "n.yml")
    assert not (tmp_path / "n.yml").exists()


def test_a_link_that_differs_is_named_and_costs_that_are_lost_are_said(tmp_path: Path) -> None:
    from dataclasses import replace

    ring = load_network("ring:n_hosts=5")
    odd = replace(ring, bandwidth=np.where(np.arange(ring.n_links) == 3, 1e9, ring.bandwidth))
    with pytest.raises(InputError, match="h3:h4 go along one dimension and differ in bandwidth"):
        write_astra_network(odd, tmp_path / "n.yml")
    assert "gamma" in write_astra_network(with_costs(ring, gamma=1e-10), tmp_path / "n.yml")[0]
    with pytest.raises(InputError, match="no product"):
        write_astra_network(
            replace(ring, src=np.append(ring.src[:-1], 0), dst=np.append(ring.dst[:-1], 2)), tmp_path / "o"
        )


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("Switch, Switch", "Switch", "one entry per dimension"), ("370.0", "-1", "bandwidth.0. must be"),
        ("8, 16", "8, 1", "at least 2"), ("8, 16", "8, 2.5", "whole number"),
        ("Switch, Switch", "Ring, Tree", "one of"),
        ("latency", "delay", "exactly"), ("370.0", "nan", "must be a number"), ("370.0", "0", "positive"),
        ("[ 370.0, 46.566 ]", "&a [ 370.0, 46.566 ]", "anchors"), ("8, 16", "1000000, 1000000", "most|too|at most"),
        ("topology: [", "topology: " + "[" * 3000, "nested more than"),
        ("topology: [", "topology: " + "[" * 100, "nested more than"),
    ],
)  # fmt: skip
def test_a_network_that_is_wrong_is_refused(tmp_path: Path, old: str, new: str, wanted: str) -> None:
    path = tmp_path / "net.yml"
    path.write_text(EXAMPLE.replace(old, new))
    with pytest.raises(InputError, match=wanted):
        read_astra_network(path)


def system(tmp_path: Path, **said: object) -> AstraSystem:
    path = tmp_path / "sys.json"
    path.write_text(json.dumps({key.replace("_", "-"): value for key, value in said.items()}))
    return read_system(path)


def test_a_system_file_is_kept_whole_and_chooses_our_collectives(tmp_path: Path) -> None:
    tree = {"scheduling-policy": "LIFO", "all-reduce-implementation": ["ring", "ring"], "peak-perf": 900,
            "all-gather-implementation": ["oneDirect4"], "local-mem-bw": 1.5, "x-unknown": {"a": [1]},
            "collective-optimization": "localBWAware", "preferred-dataset-splits": 4}  # fmt: skip
    read = system(tmp_path, **tree)
    schedule, notes = schedule_of_system(read, "all_reduce", (8, 4))
    assert schedule == load_schedule("torus_all_reduce:dims=4x8", 32)
    assert any("left out: preferred-dataset-splits=4" in note for note in notes)
    schedule, notes = schedule_of_system(read, "all_gather", (8,))
    assert (schedule.operation, schedule.n_transfers) == ("all_gather", 8 * 7)
    assert any("window of oneDirect4" in note for note in notes)
    with pytest.raises(InputError, match="1 dimensions"):
        schedule_of_system(read, "all_reduce", (8,))
    write_system(read, tmp_path / "again.json")
    assert json.loads((tmp_path / "again.json").read_text()) == tree


NAMED = ["ring_all_reduce", "double_tree_all_reduce", "halving_doubling_all_reduce", "byteps", "ring_all_gather",
         "ring_reduce_scatter", "direct_all_to_all"]  # fmt: skip


@pytest.mark.parametrize("sizes", [(8,), (4, 2)])
@pytest.mark.parametrize("collective", NAMED)
def test_the_choice_of_a_collective_survives_a_round_trip(
    tmp_path: Path, collective: str, sizes: tuple[int, ...]
) -> None:
    if collective == "double_tree_all_reduce" and len(sizes) > 1:  # there is no tree over all dimensions
        with pytest.raises(InputError, match="not built into"):
            system_of(collective, sizes)
        return
    said, operation = system_of(collective, sizes)
    write_system(said, tmp_path / "s.json")
    wanted = load_schedule(collective, 8)
    assert operation == wanted.operation
    assert schedule_of_system(read_system(tmp_path / "s.json"), operation, sizes)[0] == wanted


WAYS = [
    (("ring", "ring"), (3, 4)), (("direct", "halvingDoubling"), (3, 4)), (("ring", "direct", "ring"), (2, 3, 2)),
    (("halvingDoubling", "ring", "direct"), (4, 3, 2)), (("ring", "doubleBinaryTree"), (3, 4)),
]  # fmt: skip


@pytest.mark.jit
@pytest.mark.parametrize("optimization", ["baseline", "localBWAware"])
@pytest.mark.parametrize(("ways", "sizes"), WAYS)
def test_an_all_reduce_over_several_dimensions_is_one_whatever_is_chosen_for_each(
    tmp_path: Path, ways: tuple[str, ...], sizes: tuple[int, ...], optimization: str
) -> None:
    read = system(tmp_path, all_reduce_implementation=list(ways), collective_optimization=optimization)
    schedule, _ = schedule_of_system(read, "all_reduce", sizes)
    check(schedule)
    said, operation = system_of(schedule.name, sizes)
    assert schedule_of_system(said, operation, sizes)[0] == schedule


@pytest.mark.jit
def test_the_order_of_phases_decides_how_much_each_dimension_carries() -> None:
    """Two dimensions of 4: baseline carries the whole array along both, localBWAware a quarter along the second."""
    ranks = np.arange(16)
    for optimization, share in (("baseline", 1.0), ("localBWAware", 0.25)):
        schedule = schedule_of_ways("all_reduce", ("ring", "direct"), (4, 4), optimization)
        t = schedule.expand()
        along = [t["src"] // 4 == t["dst"] // 4, t["src"] % 4 == t["dst"] % 4]
        for mask, wanted in zip(along, (1.0, share), strict=True):
            sent = np.bincount(t["src"][mask], t["count"][mask], minlength=len(ranks)) / schedule.n_chunks
            assert sent == pytest.approx(2 * 3 / 4 * wanted)


@pytest.mark.jit
def test_halving_exchanges_its_largest_halves_with_the_nearest_partner() -> None:
    schedule = schedule_of_ways("all_reduce", ("halvingDoubling", "ring"), (8, 2), "localBWAware")
    t = schedule.expand()
    along = t[t["src"] // 8 == t["dst"] // 8]
    by_distance = {int(d): along["count"][along["src"] ^ along["dst"] == d].max() for d in (1, 2, 4)}
    assert by_distance == {d: schedule.n_chunks // 2 // d for d in (1, 2, 4)}


@pytest.mark.jit
@pytest.mark.parametrize("operation", ["reduce_scatter", "all_gather", "all_to_all"])
@pytest.mark.parametrize("way", ["ring", "direct", "halvingDoubling"])
def test_other_collectives_have_one_phase_per_dimension(operation: str, way: str) -> None:
    if operation == "all_to_all" and way != "direct":
        with pytest.raises(InputError, match="is unknown"):
            schedule_of_ways(operation, (way, way), (4, 2), "baseline")
        return
    if operation != "all_to_all":
        check(schedule_of_ways(operation, (way,), (8,), "baseline"))
    schedule = schedule_of_ways(operation, (way, "direct"), (4, 2), "baseline")
    t = schedule.expand()
    first, second = t["src"] // 4 == t["dst"] // 4, t["src"] % 4 == t["dst"] % 4
    assert (first ^ second).all()
    assert first[0] == (operation != "all_gather")  # an all-gather begins with the last dimension
    sent = [t["count"][mask].sum() / 8 / schedule.n_chunks for mask in (first, second)]
    wanted = {"reduce_scatter": (3 / 4, 1 / 8), "all_gather": (3 / 4, 1 / 8), "all_to_all": (3 / 4, 1 / 2)}
    assert sent == pytest.approx(wanted[operation])


@pytest.mark.parametrize(
    ("ways", "wanted"),
    [(["doubleBinaryTree", "ring"], "is unknown"), (["oneRing", "ring"], "over all dimensions"),
     (["halvingDoubling", "ring"], "power of two of hosts, and dimension 0 has 6"), (["ring"], "for 2 dimensions")],
)  # fmt: skip
def test_choices_whose_meaning_is_not_known_are_refused(tmp_path: Path, ways: list[str], wanted: str) -> None:
    read = system(tmp_path, all_reduce_implementation=ways, collective_optimization="localBWAware")
    with pytest.raises(InputError, match=wanted):
        schedule_of_system(read, "all_reduce", (6, 4))
    read = system(tmp_path, all_reduce_implementation=["ring"], collective_optimization="best")
    with pytest.raises(InputError, match="collective-optimization must be baseline or localBWAware, got 'best'"):
        schedule_of_system(read, "all_reduce", (6,))


def test_what_astra_sim_has_not_built_in_is_left_to_chakra_traces(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Chakra"):
        system_of("binomial_tree_all_reduce", (8,))
    (tmp_path / "s.json").write_text(json.dumps({"all-reduce-implementation-custom": ["tree"]}))
    with pytest.raises(InputError, match=r"tree\.\*\.et"):
        schedule_of_system(read_system(tmp_path / "s.json"), "all_reduce", (8,))


@pytest.mark.parametrize("value", [["ringg"], "ring", [1], ["direct-1"]])
def test_a_system_file_that_is_wrong_is_refused(tmp_path: Path, value: object) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"all-reduce-implementation": value}))
    with pytest.raises(InputError, match="all-reduce-implementation"):
        read_system(path)


def test_json_that_nests_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text("[" * 2_000_000)
    with pytest.raises(InputError, match="nested too deeply"):
        read_system(path)
    with pytest.raises(InputError, match="nested too deeply"):
        read_network(path)
