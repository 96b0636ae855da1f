"""Synthesized schedules keep their promise, are never below the bound, and come as near to it as trees do."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from random_networks import networks
from remark_codes import codes

from benchmarks.synthesis.command import ROWS
from benchmarks.synthesis.networks import FOLDER, NETWORKS
from commsim.core.checking.check import check
from commsim.core.errors import InputError
from commsim.core.faults.scaling import scale_links
from commsim.core.files.store import read_network
from commsim.core.network import HOST, SWITCH, Network
from commsim.core.program import Program
from commsim.prediction.build import prepare
from commsim.prediction.inputs import load_network
from commsim.prediction.read import with_costs
from commsim.ranking.synthesis.synthesize import synthesize
from commsim.ranking.synthesis.trees.forest import DIRECTIONS
from topologies.star import star

BUILT = {one.name: one for one in (build() for build in NETWORKS)}
LARGE = 4 << 30


def test_files_of_networks_are_those_of_the_benchmark():
    assert {path.stem for path in FOLDER.glob("*.toml")} == set(BUILT)
    assert {row.network for row in ROWS} <= set(BUILT)
    for name in ("dgx2_x2", "mi250_x2", "tacos_torus_4x2x3"):
        assert read_network(FOLDER / f"{name}.toml") == BUILT[name]


@pytest.mark.parametrize("operation", DIRECTIONS)
def test_trees_of_two_machines_come_within_a_percent(operation):
    found = synthesize(operation, BUILT["dgx1v"], [LARGE], textbook=False, root=3 if "all" not in operation else 0)
    best = found.best(LARGE)
    assert 1 - 1e-9 <= best.time / found.bounds[LARGE] <= 1.01
    assert found.certificate is not None
    assert found.certificate.proved


def summed_in_the_middle(pieces):
    """All-reduce on a line of five hosts: sums meet in the middle one, and copies go back."""
    p = Program(5, n_chunks=pieces)
    for piece in range(pieces):
        for src, dst in ((0, 1), (1, 2), (4, 3), (3, 2)):
            p.reduce(piece, src=src, dst=dst)
        for src, dst in ((2, 1), (1, 0), (2, 3), (3, 4)):
            p.copy(piece, src=src, dst=dst)
    return p.build(operation="all_reduce")


@pytest.mark.parametrize("operation", ["broadcast", "reduce", "gather", "scatter"])
def test_another_root_of_a_star_is_as_fast(operation):
    """Registered collectives were left out unless the root was rank 0, and a gather was not found at all."""
    times = [synthesize(operation, star(4), [LARGE], root=root).best(LARGE).time for root in (0, 1)]
    assert times[1] == pytest.approx(times[0], rel=1e-9)


def test_trees_of_one_root_are_as_fast_as_sums_in_the_middle_of_a_line():
    """With a tree of each rank, as high as the line is long, 4 MiB took 18 % longer than a program by hand."""
    line = with_costs(load_network("torus:dims=5,wrap=false,bandwidth=100Gbps"), overhead=1e-6)
    for size in (4 << 20, 64 << 20):
        by_hand = min(prepare(summed_in_the_middle(n), line).predict(size).time for n in (16, 36, 73, 146))
        best = synthesize("all_reduce", line, [size], textbook=False).best(size)
        assert best.time <= 1.01 * by_hand
        assert best.method == "trees of one root"


def test_half_a_nic_costs_ring_three_quarters_and_trees_nothing():
    """A ring sends 7/4 of the data over the slow link, the optimum only once."""
    found = synthesize("all_reduce", BUILT["star8_half"], [LARGE])
    times = {one.method: one.time for one in found.candidates[LARGE]}
    assert times["ring_all_reduce"] / times["trees"] == pytest.approx(1.75, rel=0.01)
    assert found.best(LARGE).method == "trees"
    assert found.bounds[LARGE] == pytest.approx(LARGE / 50e9, rel=1e-4)


@pytest.mark.slow
@settings(max_examples=settings().max_examples // 5)
@given(networks(max_ranks=6, max_switches=3))
def test_random_networks_come_within_a_percent_of_their_bound(network):
    for operation in ("all_gather", "reduce_scatter", "all_reduce"):
        found = synthesize(operation, network, [LARGE], textbook=False)
        best = found.best(LARGE)
        check(best.prepared.schedule)
        ratio = best.time / found.bounds[LARGE]
        assert ratio >= 1 - 1e-9
        assert ratio <= (1.01 if operation != "all_reduce" else 1.02)


@settings(max_examples=settings().max_examples // 5)
@given(networks(max_ranks=5, max_switches=2))
def test_schedules_of_random_networks_are_proved_and_carry_no_more_than_links_do(network):
    for operation in DIRECTIONS:
        found = synthesize(operation, network, [1 << 16], textbook=False, max_messages=2_000)
        for one in found.candidates[1 << 16]:
            check(one.prepared.schedule)
            assert one.result.time >= found.bounds[1 << 16] * (1 - 1e-9)
            assert (one.result.link_bytes <= network.bandwidth * one.result.time * (1 + 1e-9)).all()


def test_the_chosen_schedule_is_never_slower_than_a_textbook_one():
    sizes = [1 << 10, 1 << 18, 1 << 26]
    found = synthesize("all_reduce", BUILT["two_leaves"], sizes, max_messages=20_000)
    for size in sizes:
        times = [one.time for one in found.candidates[size]]
        assert times == sorted(times)
        assert len(times) > 4


def uneven():
    """Switch with 3 GB/s in and 2 GB/s out: its second cable has another rate back."""
    src, dst = np.array([0, 2, 1, 2]), np.array([2, 0, 2, 1])
    return Network("uneven", ("h0", "h1", "s"), [HOST, HOST, SWITCH], src, dst, [2e9, 1e9, 1e9, 1e9], 1e-6)


def test_a_switch_with_more_in_than_out_is_trimmed_and_only_what_is_attained_is_claimed():
    """One host's block of half the data at 1 GB/s is the bound, whatever the faster cable could bring."""
    half = 1 << 25
    found = synthesize("all_gather", uneven(), [2 * half], textbook=False)
    assert found.bounds[2 * half] == pytest.approx(half / 1e9, rel=1e-3)
    assert found.certificate is not None
    assert found.certificate.proved == (found.best(2 * half).time < 1.01 * found.bounds[2 * half])
    assert found.certificate.proved
    found = synthesize("all_reduce", uneven(), [2 * half], textbook=False)
    assert found.certificate is None
    assert any("s has 3 GB/s in and 2 GB/s out" in one.text for one in found.notes if one.code == "not-proved")
    assert found.best(2 * half).time >= found.bounds[2 * half] * (1 - 1e-9)


@pytest.mark.sample(4)
@pytest.mark.parametrize("part", [0.3333333, 0.00019])
@pytest.mark.parametrize(
    ("operation", "crossing"), [("all_gather", 3 / 4), ("all_to_all", 3 / 4), ("all_reduce", 1.0), ("broadcast", 1.0)]
)
def test_rates_that_were_rounded_down_do_not_raise_the_bound(operation, crossing, part):
    """What crosses the slow cable takes its own rate, of which rounding to 1/10080 leaves half in the second case."""
    network, size = star(4, bandwidth=1e9, latency=0.0), 1 << 16
    slow = (network.src == network.endpoints[3]) | (network.dst == network.endpoints[3])
    network = dataclasses.replace(network, bandwidth=np.where(slow, part * 1e9, 1e9))
    found = synthesize(operation, network, [size], max_messages=500)
    assert found.bounds[size] == pytest.approx(crossing * size / (part * 1e9), rel=1e-6)
    assert found.best(size).time >= found.bounds[size] * (1 - 1e-9)
    assert "rates-rounded" in codes(found.notes)


def test_ranks_that_cannot_be_reached_are_named():
    parts = Network("parts", ("h0", "h1"), [HOST, HOST], [0], [1], [1e9], 0.0)
    with pytest.raises(InputError, match="h0 cannot be reached from every other rank"):
        synthesize("all_gather", parts, [1 << 20])


def test_a_time_limit_keeps_the_first_schedule():
    found = synthesize("all_gather", BUILT["ring8"], [1 << 20, 1 << 22], time_limit=0.0)
    assert list(found.candidates) == [1 << 20]
    assert len(found.candidates[1 << 20]) == 1
    assert [note.text for note in found.notes] == ["time limit: sizes above 1048576 bytes were not tried"]


def test_an_estimate_is_never_chosen_before_what_is_simulated():
    """On this network the estimate of trees that are too long is far below what they take."""
    network = load_network("leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2")
    size = 1 << 14
    long = synthesize("all_reduce", network, [size], textbook=False)
    cut = synthesize("all_reduce", network, [size], textbook=False, max_messages=59)
    estimates = [one for one in cut.candidates[size] if one.result is None]
    assert estimates
    real = {one.method: one.time for one in long.candidates[size]}
    assert any(one.time < 0.8 * real[one.method] for one in estimates if one.method in real)
    simulated = [one.result is not None for one in cut.candidates[size]]
    assert simulated == sorted(simulated, reverse=True)
    assert simulated[0]
    assert "estimated" in codes(cut.notes)


def test_where_messages_cost_something_schedules_have_fewer():
    network = scale_links(load_network("ring:n_hosts=8,bandwidth=100Gbps"), 0.1, pattern="h0:h1")
    found = synthesize("all_reduce", network, [64 << 20], textbook=False)
    most = int(found.best(64 << 20).prepared.schedule.volumes()[2].max())
    costly = dataclasses.replace(network, overhead=np.full(network.n_nodes, 1e-6))
    cut = synthesize("all_reduce", costly, [64 << 20], textbook=False)
    assert cut.best(64 << 20).prepared.schedule.volumes()[2].max() < most
