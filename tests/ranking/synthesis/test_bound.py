"""The test that matters: nothing that commsim can send is ever faster than what is said to be impossible to beat."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import commsim as cs
from collectives import COLLECTIVES
from commsim.core.cost import Framing
from commsim.core.errors import InputError
from commsim.core.network import HOST, SWITCH, Network, both_ways
from commsim.engine.flow_paths import FlowPaths
from commsim.prediction.build import prepare
from commsim.ranking.synthesis import lower_bound
from commsim.ranking.synthesis.bound import bound_for
from topologies.fat_tree import fat_tree
from topologies.leaf_spine import leaf_spine
from topologies.ring import ring
from topologies.star import star
from topologies.torus import torus

pytest.importorskip("scipy")
DENSE = [name for name in COLLECTIVES if COLLECTIVES[name].metadata["sparse"] is None]


def random_network(rng):
    """Hosts and switches cabled at random, connected, each direction with a rate and a latency of its own."""
    n_hosts, n_switches = int(rng.integers(2, 8)), int(rng.integers(1, 4))
    ends = [(h, n_hosts + int(rng.integers(n_switches))) for h in range(n_hosts)]
    ends += [(n_hosts + s, n_hosts + int(rng.integers(s))) for s in range(1, n_switches)]
    for _ in range(int(rng.integers(0, 5))):
        a, b = rng.integers(n_hosts + n_switches, size=2).tolist()
        if a != b and (min(a, b), max(a, b)) not in [(min(e), max(e)) for e in ends]:
            ends.append((a, b))
    src, dst = both_ways(*np.array(ends).T)
    m = len(src)
    forwards = np.repeat([bool(rng.integers(2)), True], [n_hosts, n_switches])
    return Network(
        "random", [f"n{i}" for i in range(n_hosts + n_switches)], [HOST] * n_hosts + [SWITCH] * n_switches, src, dst,
        rng.integers(1, 9, m) * 1e9, rng.integers(0, 4, m) * 1e-6, forwards=forwards,
        overhead=rng.integers(0, 3) * rng.integers(1, 3, n_hosts + n_switches) * 1e-6,
        recv_overhead=rng.integers(0, 2) * rng.integers(1, 3, n_hosts + n_switches) * 1e-6,
        gamma=rng.integers(0, 2) * rng.integers(1, 5, n_hosts + n_switches) * 1e-10,
        routing=str(rng.choice(["ecmp", "shortest", "spray"])),
    )  # fmt: skip


def islands():
    return Network("x", ("a", "b"), [HOST] * 2, [], [], 1.0, 0.0)


def regular_network(rng):
    return [
        star(6, 1e9, latency=1e-6),
        leaf_spine(2, 2, 3, 1e9, uplink_bandwidth=float(rng.choice([1.5e9, 0.5e9])), latency=0.0),
        fat_tree(4, 1e9),
        ring(5, 1e9, latency=1e-6),
        torus((3, 2), bandwidth=1e9),
    ][int(rng.integers(5))]


@pytest.mark.slow
@given(name=st.sampled_from(DENSE), seed=st.integers(0, 2**32 - 1), regular=st.booleans())
def test_no_collective_on_any_network_is_faster_than_the_bound(name, seed, regular):
    rng = np.random.default_rng(seed)
    network = regular_network(rng) if regular else random_network(rng)
    n_ranks = int(rng.integers(2, len(network.endpoints) + 1))
    try:
        ready = prepare(name, network, n_ranks=n_ranks, placement="random", seed=seed % 1000)
    except InputError:
        return  # it needs another number of ranks, or a tree of switches
    found = bound_for(ready, as_placed=True)
    for size in ready.sizes([1.0, 1e4, 1e9])[0]:  # a barrier has none, an exchange of experts its own
        took = ready.predict(size).time
        assert took >= found.time(size) * (1 - 1e-9), (found.why(size), took, found.time(size))
        assert found.time(size) > 0 or not network.latency.any()


@pytest.mark.parametrize(
    ("name", "network", "anywhere"),
    [
        ("ring_all_reduce", star(8, 1e9, latency=0.0), False),
        ("ring_all_gather", star(8, 1e9, latency=0.0), False),
        ("ring_reduce_scatter", star(8, 1e9, latency=0.0), False),
        ("direct_scatter", star(8, 1e9, latency=0.0), False),
        ("direct_gather", star(8, 1e9, latency=0.0), False),
        ("ring_send_recv", star(8, 1e9, latency=0.0), False),
        ("direct_all_to_all", fat_tree(4, 1e9, latency=0.0), False),
        ("ring_all_reduce", leaf_spine(2, 2, 4, 1e9, latency=0.0), False),
        pytest.param("ring_all_reduce", fat_tree(4, 1e9, latency=0.0), False, marks=pytest.mark.deep),
    ],
)
def test_algorithms_that_are_known_to_be_optimal_meet_it(name, network, anywhere):
    ready = prepare(name, network, routing="spray")
    assert bound_for(ready).anywhere == anywhere
    assert ready.predict(1e9).time == pytest.approx(bound_for(ready).time(1e9), rel=1e-6)


@pytest.mark.parametrize(("n", "k"), [(8, 2), (3, 1), (6, 6), (2, 1)])
def test_hosts_without_ranks_are_worth_what_theorem_1_of_byteps_says(n, k):
    """The bound was that of as many servers as one likes, or of switches that add."""
    ready = prepare(f"byteps:n_servers={k}", star(n + k, 1e9, latency=0.0), n_ranks=n)
    found = bound_for(ready, as_placed=True)
    assert found.time(1e9) == pytest.approx(max(2 * n * (n - 1) / (n**2 + n * k - 2 * k), 1.0))
    assert not found.anywhere
    assert found.time(1e9) <= ready.predict(1e9).time * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("name", ["byteps", "parameter_server"])
def test_no_servers_are_faster_than_the_bound_of_their_hosts(name, seed):
    rng = np.random.default_rng(seed)
    network = regular_network(rng) if seed % 2 else random_network(rng)
    n = int(rng.integers(1, len(network.endpoints)))
    k = min(n, len(network.endpoints) - n)
    ready = prepare(f"{name}:n_servers={k}", network, n_ranks=n, placement="random", seed=seed)
    found = bound_for(ready, as_placed=True)
    for size in (1e4, 1e9):
        assert ready.predict(size).time >= found.time(size) * (1 - 1e-9)


@pytest.mark.slow
def test_switches_that_add_meet_the_bound_of_their_kind_and_beat_that_of_ranks():
    ready = prepare("switchml:n_chunks=100000", star(8, 1e9, latency=0.0))
    time = ready.predict(1e9, framing=Framing()).time  # without the headers of SwitchML, as the bound is
    assert time == pytest.approx(bound_for(ready).time(1e9), rel=1e-4)
    assert time < lower_bound("all_reduce", ready.network).time(1e9)


@pytest.mark.slow
def test_on_a_star_the_bound_is_the_textbook_s():
    p, S, B = 8, 1e9, 1e9
    network = star(p, B, latency=0.0)
    for operation, factor in {
        "all_reduce": 2 * (p - 1) / p, "all_gather": (p - 1) / p, "reduce_scatter": (p - 1) / p,
        "all_to_all": (p - 1) / p, "gather": (p - 1) / p, "scatter": (p - 1) / p, "broadcast": 1.0, "reduce": 1.0,
    }.items():  # fmt: skip
        assert lower_bound(operation, network).time(S) == pytest.approx(factor * S / B, rel=1e-5), operation


def test_the_latency_of_the_last_message_comes_on_top_of_its_bytes():
    found = lower_bound("broadcast", star(4, 1e9, latency=1e-3))
    assert found.time(1e6) == pytest.approx(1e-3 + 2e-3)
    assert found.why(1e6) == "the capacity out of rank h0"
    assert found.why(0) == "the way from h0 to h1"


def test_adding_limits_where_everybody_adds_slowly():
    from commsim.prediction.read import with_costs

    network = with_costs(star(4, 1e9, latency=0.0), gamma=1e-8)
    found = lower_bound("all_reduce", network)
    assert found.time(1e6) == pytest.approx(3 * 1e6 * 1e-8 / 4)
    assert "adding up" in found.why(1e6)


def test_one_rank_needs_nothing():
    found = lower_bound("all_reduce", star(1))
    assert found.time(1e9) == 0
    assert found.rate == float("inf")
    assert found.why(1e9) == "nothing to send"


@pytest.mark.slow
def test_a_network_too_large_for_programs_is_bounded_by_cuts_and_says_so():
    found = lower_bound("all_to_all", fat_tree(8))
    assert "cuts and distances only, no linear program" in str(found.notes[0])
    assert lower_bound("all_to_all", fat_tree(4)).notes == ()
    assert "minimum cuts are for at most" in str(lower_bound("all_to_all", fat_tree(28)).notes[0])


def test_without_scipy_cuts_by_locality_are_left(monkeypatch):
    from commsim.ranking.synthesis import bound as module

    whole = lower_bound("all_reduce", star(4))
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda _: None)
    found = lower_bound("all_reduce", star(4))
    assert "SciPy" in str(found.notes[0])
    assert found.time(1e6) == pytest.approx(whole.time(1e6), rel=1e-5)


def test_ranks_that_sit_elsewhere_are_bounded_where_they_sit():
    network = leaf_spine(2, 1, 4, 1e9, oversubscription=4.0, latency=0.0)
    together, apart = lower_bound("all_reduce", network, range(4)), lower_bound("all_reduce", network, [0, 4])
    assert together.time(1e9) == pytest.approx(2 * 3 / 4)
    assert apart.time(1e9) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lower_bound("all_reduces", star(4)), "unknown operation"),
        (lambda: lower_bound("all_reduce", star(4), [7]), "ranks must be on nodes 0..4"),
        (lambda: lower_bound("broadcast", star(4), root=4), "root must be a rank 0..3, got 4"),
        (lambda: lower_bound("all_gather_v", star(4)), "counts must be 4 whole numbers"),
        (
            lambda: lower_bound("all_reduce", islands()),
            "x: a rank cannot",
        ),
        (lambda: bound_for(prepare("topk_a:density=0.1", star(4))), "topk_a: bounds are of dense data"),
    ],
)
def test_what_has_no_bound_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_algorithms_of_a_ranking_keep_no_tables(monkeypatch):
    """Those of all algorithms together took half a gigabyte for 512 GPUs."""
    forgotten, forget = [], FlowPaths.forget

    def after(paths):
        forget(paths)
        forgotten.append((sorted(vars(paths)), dict(paths._plans)))

    monkeypatch.setattr(FlowPaths, "forget", after)
    found = cs.over_bound("all_reduce", "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2", "1MiB")
    assert len(forgotten) >= len(found.ratios) > 3
    assert all((names, plans) == (sorted(one.name for one in fields(FlowPaths)), {}) for names, plans in forgotten)


def test_a_hierarchy_over_all_rails_obeys_the_bound():
    network = cs.load_network("rail_optimized:n_hosts=4,preset=dgx-h100")
    result = prepare("hierarchical_all_reduce", network).predict(16 * 2**30)
    assert 0.5 * lower_bound("all_reduce", network).rate < result.algbw < lower_bound("all_reduce", network).rate
