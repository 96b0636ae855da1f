"""Trees attain the exact optimum: fractions of published machines, brute force on small graphs, random networks."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from random_networks import networks
from tree_packings import most_sums, most_trees, worst_cut

from benchmarks.synthesis.command import GATHER, REDUCE
from benchmarks.synthesis.networks import NETWORKS
from commsim.core.compiling.kernel_cache import KernelCache, cache_folder
from commsim.core.jit import _is_disabled
from commsim.ranking.synthesis.trees.forest import DIRECTIONS, Grower
from commsim.ranking.synthesis.trees.free_roots import CutProgram, fits, free_roots
from commsim.ranking.synthesis.trees.max_flow_kernel import room_between
from commsim.ranking.synthesis.trees.optimum import optimum, with_few_trees
from commsim.ranking.synthesis.trees.packing_kernel import pack_root
from commsim.ranking.synthesis.trees.splitting import split_switches
from commsim.ranking.synthesis.trees.tree_packing import pack
from commsim.ranking.synthesis.trees.whole_rates import whole_network, whole_rates

SMALL = {build().name: build() for build in NETWORKS}
SMALL = {name: network for name, network in SMALL.items() if network.n_nodes <= 40}
MACHINES = sorted(SMALL)


def whole_of(network):
    return whole_network(network, network.endpoints.astype(np.int32))


def check_trees(network, whole, trees, roots, most_units):
    """Every root has its trees, each reaches every rank over links that meet, and no link is over its units."""
    used = np.zeros(network.n_links, np.int64)
    for tree in trees:
        assert tree.units > 0
        assert sorted(tree.dst) == sorted(set(range(whole.n_ranks)) - {tree.root})
        known = {tree.root}
        for a, b, path in zip(tree.src, tree.dst, tree.paths, strict=True):
            assert a in known
            known.add(b)
            assert network.src[path[0]] == whole.node[a]
            assert network.dst[path[-1]] == whole.node[b]
            assert np.array_equal(network.dst[list(path[:-1])], network.src[list(path[1:])])
            assert network.forwards[network.dst[list(path[:-1])]].all()
            for link in path:
                used[link] += tree.units
    assert [sum(t.units for t in trees if t.root == r) for r in range(whole.n_ranks)] == roots.tolist()
    assert (used <= most_units).all()


@pytest.mark.parametrize("name", sorted(set(GATHER) & set(MACHINES)))
def test_published_machines_have_their_exact_fraction(name):
    """Values of ForestColl's paper and code, and of the cuts of simple networks."""
    proof = Grower(whole_of(SMALL[name]), "all_gather").certificate
    assert proof.fraction == Fraction(GATHER[name])
    assert proof.proved


@pytest.mark.parametrize("name", sorted(set(REDUCE) & set(MACHINES)))
def test_all_reduce_attains_its_program_exactly(name):
    proof = Grower(whole_of(SMALL[name]), "all_reduce").certificate
    assert proof.fraction == Fraction(REDUCE[name])
    assert proof.proved


def test_a_host_at_half_rate_costs_all_reduce_no_more_than_its_own_bytes():
    """A ring takes (7/4)/50 s/GB where the slow link carries all; the optimum is 1/50."""
    whole = whole_of(SMALL["star8_half"])
    plan = free_roots(whole)
    slow = Fraction(50) * 10**9 / whole.unit
    assert plan.rate == plan.bound == slow
    equal = optimum(whole, np.ones(8, np.int64)).per_unit
    assert 8 / (2 * equal) / slow == Fraction(4, 7)


def test_switches_that_add_allow_more():
    whole = whole_of(SMALL["star8"])
    rate = float(whole.unit) / 1e9
    assert CutProgram(whole, adding=True).solve().value * rate == pytest.approx(100, rel=1e-9)
    assert CutProgram(whole).solve().value * rate == pytest.approx(400 / 7, rel=1e-9)


@given(networks(max_ranks=5, max_switches=2))
def test_the_optimum_is_the_worst_of_all_cuts(network):
    whole = whole_of(network)
    for half in (whole, whole.reversed()):
        for weight in (np.ones(whole.n_ranks, np.int64), np.eye(whole.n_ranks, dtype=np.int64)[0]):
            best = optimum(half, weight)
            assert best.per_unit == worst_cut(half, weight)
            inside = int(weight[best.inside[: whole.n_ranks]].sum())
            leaves = int(half.rate[best.inside[half.src] & ~best.inside[half.dst]].sum())
            assert Fraction(inside, leaves) == best.per_unit


@settings(max_examples=settings().max_examples * 2 // 3)
@given(networks(max_ranks=4, max_switches=0))
def test_no_packing_of_trees_is_larger(network):
    whole = whole_of(network)
    arcs = list(zip(whole.src.tolist(), whole.dst.tolist(), strict=True))
    most = most_trees(arcs, whole.rate, whole.n_ranks, list(range(whole.n_ranks)))
    assert float(1 / optimum(whole, np.ones(whole.n_ranks, np.int64)).per_unit) == pytest.approx(most, rel=1e-7)
    plan = free_roots(whole)
    assert float(plan.rate) == pytest.approx(most_sums(arcs, whole.rate, whole.n_ranks), rel=2e-3)
    assert float(plan.bound) >= most_sums(arcs, whole.rate, whole.n_ranks) * (1 - 1e-7)


@given(networks(max_ranks=7, max_switches=4))
def test_trees_fit_every_link_of_random_networks(network):
    whole = whole_of(network)
    for half in (whole, whole.reversed()):
        best = optimum(half, np.ones(whole.n_ranks, np.int64))
        trees = pack(split_switches(best.room, best.roots))
        if half is not whole:
            trees = [tree.backwards() for tree in trees]
            turned = [(tree, *zip(*sorted(zip(tree.src, tree.dst, strict=True)), strict=True)) for tree in trees]
            assert len(turned) == len(trees)
            continue
        check_trees(network, whole, trees, best.roots, best.room.link_rate)


@settings(max_examples=settings().max_examples // 2)
@given(networks(max_ranks=6, max_switches=3))
def test_halves_of_all_reduce_fit_together(network):
    whole = whole_of(network)
    plan = free_roots(whole)
    assert plan.rate <= plan.bound
    assert plan.rate >= plan.bound * Fraction(998, 1000)
    assert fits(plan)
    both = plan.down.link_rate + plan.up.link_rate
    assert (both <= [Fraction(int(r)) / plan.per_tree for r in whole.link_rate]).all()
    check_trees(network, whole, pack(split_switches(plan.down, plan.roots)), plan.roots, plan.down.link_rate)
    assert sum(tree.units for tree in pack(split_switches(plan.up, plan.roots))) == plan.roots.sum()


@settings(max_examples=settings().max_examples // 2)
@given(networks(max_ranks=6, max_switches=2, one_way=False))
def test_few_trees_lose_no_more_than_is_proved(network):
    """At most x*/(k b) for the slowest link b."""
    whole = whole_of(network)
    weight = np.ones(whole.n_ranks, np.int64)
    best = optimum(whole, weight)
    slowest = int(whole.link_rate[whole.link_rate > 0].min())
    for k in (1, 2, 3):
        few, gap = with_few_trees(whole, weight, best, k)
        assert 1 <= gap <= 1 + 1 / (best.per_unit * k * slowest)
        check_trees(network, whole, pack(split_switches(few.room, few.roots)), few.roots, few.room.link_rate)


def test_few_trees_of_the_mi250_box():
    """1, 2 and 3 trees per rank reach 266.67, 320 and 342.86 GB/s."""
    whole = whole_of(SMALL["mi250_x1"])
    grower = Grower(whole, "all_gather")
    rates = [1e-9 / grower.few(k).per_byte for k in (1, 2)]
    assert rates == pytest.approx([266.667, 320.0], rel=1e-5)
    assert 1e-9 / grower.optimal().per_byte == pytest.approx(342.857, rel=1e-5)
    assert grower.few(3) is None


def test_no_switch_keeps_an_arc_and_mesh_trees_are_low():
    whole = whole_of(SMALL["a100_x1"])
    best = optimum(whole, np.ones(8, np.int64))
    graph = split_switches(best.room, best.roots)
    assert not any(room_between(graph.arcs, 8, rank) or room_between(graph.arcs, rank, 8) for rank in range(8))
    assert {tree.height for tree in pack(graph)} == {1}


def test_rates_without_a_common_measure_are_rounded_down_and_it_is_said():
    units, unit, rounded = whole_rates(np.array([100e9, 31.4159265e9]))
    assert 0 < rounded < 1e-3
    assert (units * float(unit) <= [100e9 * (1 + 1e-12), 31.4159265e9]).all()
    assert whole_rates(np.array([100e9 / 3, 100e9]))[2] == 0
    assert whole_rates(np.array([25e9, 300e9]))[0].tolist() == [1, 12]


def test_every_operation_of_trees_has_a_direction():
    assert set(DIRECTIONS.values()) == {(True, False), (False, True), (True, True)}


@pytest.mark.skipif(_is_disabled(), reason="nothing is compiled")
def test_rows_of_batches_are_copied_without_a_message_about_shapes():
    """Where a kernel copies rows whole, Numba compiles a message with all that writes numbers: a second."""
    best = optimum(whole_of(SMALL["a100_x1"]), np.ones(8, np.int64))
    pack(split_switches(best.room, best.roots))
    files = cache_folder().glob(f"{KernelCache(pack_root.py_func, pack_root.options).name}*")
    kept = max(files, key=lambda path: path.stat().st_mtime)
    assert b"cannot assign slice" not in kept.read_bytes()
