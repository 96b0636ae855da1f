"""Flows that all start together: they end when the full engine says so."""

import dataclasses

import numpy as np
import pytest
from flow_cases import random_network
from hypothesis import given
from hypothesis import strategies as st
from slow_sharing import Flow, max_min_rates

from collectives import COLLECTIVES
from commsim.core.cost import Framing
from commsim.core.network import Network
from commsim.core.placement import Placement, place
from commsim.core.program import Program
from commsim.core.schedule import OUTPUT, Schedule
from commsim.engine.bottlenecks.group_state import group_tables
from commsim.engine.flow import simulate_flows
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import plan_flows
from commsim.engine.simultaneous import bundles
from commsim.engine.simultaneous.departures_kernel import simulate_departures
from commsim.engine.simultaneous.rates_kernel import fair_rates_of_flows
from commsim.engine.simultaneous.simultaneous import plan_simultaneous, simulate_simultaneous
from commsim.routing import walk
from topologies.fat_tree import fat_tree
from topologies.leaf_spine import leaf_spine
from topologies.rail_optimized import rail_optimized
from topologies.star import star

SIZE = 3e9


def once(rng: np.random.Generator, n_ranks: int, n: int, *, reduces: bool = False) -> Schedule:
    """Random messages, each over a connection of its own, into chunks that nobody reads."""
    pairs = rng.permutation(n_ranks * n_ranks)[:n]
    src, dst = pairs // n_ranks, pairs % n_ranks
    p = Program(n_ranks, n_chunks=n_ranks)
    write = p.reduce if reduces else p.copy
    write(src=src, dst=dst, src_chunk=dst, dst_chunk=0 if reduces else src, dst_buffer=OUTPUT if not reduces else 2)
    return p.build()


def agree(network: Network, job: FlowJob, routing: str, seed: int = 0, starts: float = 0.0) -> bool:
    """Whether it applies; then every time of every transfer, and the bytes of every link, must be the full engine's."""
    plan = plan_simultaneous(network, job, routing=routing, seed=seed)
    ours = None if plan is None else simulate_simultaneous(plan, SIZE, starts=starts, trace=True)
    if ours is None:
        return False
    (theirs,) = simulate_flows(plan_flows(network, [job], routing=routing, seed=seed), SIZE, starts=starts, trace=True)
    assert ours.trace is not None
    assert theirs.trace is not None
    for name in ("start", "sent", "done"):
        np.testing.assert_allclose(getattr(ours.trace, name), getattr(theirs.trace, name), rtol=1e-9, atol=0)
    np.testing.assert_allclose(ours.link_bytes, theirs.link_bytes, rtol=1e-9, atol=1e-3)
    for name in ("time", "time_from_last_start", "bytes_on_wire"):
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name), rel=1e-9)
    return True


@pytest.mark.parametrize("routing", ["ecmp", "shortest", "spray", "dmodk"])
@pytest.mark.parametrize("overhead", [0.0, 1e-4])
def test_an_all_to_all_on_a_fat_tree_ends_as_in_the_full_engine(routing: str, overhead: float) -> None:
    network = dataclasses.replace(fat_tree(4), overhead=overhead)
    job = FlowJob(COLLECTIVES["direct_all_to_all"].build(13), place(network, 13, "random", seed=3))
    assert agree(network, job, routing, seed=5, starts=0.25)


@pytest.mark.parametrize("routing", ["spray", "dmodk", "ecmp"])
def test_machines_whose_inside_matters_are_no_exception(routing: str) -> None:
    network = rail_optimized(2)
    assert agree(network, FlowJob(COLLECTIVES["direct_all_to_all"].build(16), place(network, 16)), routing)


@given(seed=st.integers(0, 2**32), routing=st.sampled_from(["ecmp", "shortest", "spray"]), cap=st.booleans())
def test_random_messages_on_random_networks_end_as_in_the_full_engine(seed: int, routing: str, cap: bool) -> None:
    rng = np.random.default_rng(seed)
    network = random_network(rng, int(rng.integers(2, 7)), int(rng.integers(1, 5)), costs=False)
    network = dataclasses.replace(network, latency=rng.uniform(0, 1e8, network.n_links))
    n = int(rng.integers(2, len(network.hosts) + 1))
    schedule = once(rng, n, int(rng.integers(1, n * n + 1)))
    placement = Placement(rng.choice(network.hosts, n, replace=False))
    job = FlowJob(schedule, placement, rate_cap=float(rng.uniform(0.05, 1)) if cap else float("inf"))
    assert agree(network, job, routing, seed % 7)


@given(seed=st.integers(0, 2**32), routing=st.sampled_from(["ecmp", "shortest"]), few=st.booleans())
def test_messages_of_different_sizes_end_as_in_the_full_engine(seed: int, routing: str, few: bool) -> None:
    rng = np.random.default_rng(seed)
    network = random_network(rng, int(rng.integers(2, 9)), int(rng.integers(1, 6)), costs=False)
    n = len(network.hosts)
    schedule = once(rng, n, int(rng.integers(1, n * n + 1)))
    sizes = rng.integers(1, 5, schedule.n_transfers) if few else rng.uniform(0.1, 5, schedule.n_transfers)
    assert agree(network, FlowJob(schedule, place(network, n), messages=lambda size: size * sizes), routing, seed % 7)


@pytest.mark.parametrize("routing", ["ecmp", "dmodk", "spray"])
def test_an_unequal_all_to_all_on_a_fat_tree_ends_as_in_the_full_engine(routing: str) -> None:
    network, counts = fat_tree(4), np.random.default_rng(0).integers(1, 5, 256)
    schedule = COLLECTIVES["direct_all_to_all_v"].build(16, counts=tuple(counts.tolist()))
    assert agree(network, FlowJob(schedule, place(network, 16)), routing)


@pytest.mark.parametrize(("seed", "k"), [(0, 6), (1, 6), (2, 8)])
def test_links_without_a_row_are_given_one_before_they_are_overloaded(seed: int, k: int) -> None:
    rng, network = np.random.default_rng(seed), fat_tree(k)
    network = dataclasses.replace(network, bandwidth=network.bandwidth * rng.uniform(0.4, 1, network.n_links))
    schedule = COLLECTIVES["direct_all_to_all_v"].build(40, counts=tuple(rng.integers(1, 9, 1600).tolist()))
    job = FlowJob(schedule, place(network, 40, "random", seed=seed))
    plan = plan_simultaneous(network, job, routing="ecmp", seed=seed)
    assert plan is not None
    first, link = plan.bundles.rows()
    used, number = np.unique(link, return_inverse=True)
    tables = group_tables(plan.bundles.capacity[used], number.astype(np.int32), len(first) - 1)
    assert tables is not None
    n_bytes, took = rng.integers(1, 9, len(first) - 1) * 1e6, np.empty(len(first) - 1)
    groups = tables.allocate()
    assert simulate_departures(groups, first, n_bytes, took)
    assert groups.counter["n_rows"] < 0.9 * len(used)  # a bound is enough for the others
    taken = np.bincount(number, np.repeat(n_bytes, np.diff(first)))
    last = np.array(
        [took[np.repeat(np.arange(len(took)), np.diff(first))[number == q]].max() for q in range(len(used))]
    )
    assert (taken <= plan.bundles.capacity[used] * last * (1 + 1e-9)).all()
    assert agree(network, job, "ecmp", seed)


@pytest.mark.slow
@pytest.mark.nojit
@given(data=st.data())
def test_the_fair_rates_are_those_of_exact_water_filling(data: st.DataObject) -> None:
    n_links, n_bundles = data.draw(st.integers(2, 6)), data.draw(st.integers(1, 5))
    n_heads = data.draw(st.integers(0, n_links - 1))
    capacity = np.array([data.draw(st.sampled_from([1.0, 2.0, 3.7])) for _ in range(n_links)])
    uses = st.dictionaries(st.integers(n_heads, n_links - 1), st.sampled_from([1.0, 0.5, 0.25]), min_size=1)
    routes = data.draw(st.lists(uses, min_size=n_bundles, max_size=n_bundles))
    flows = data.draw(st.lists(st.tuples(st.integers(0, n_bundles - 1), st.integers(-1, n_heads - 1)), min_size=1))
    slow = [Flow(routes[b] | ({head: 1.0} if head >= 0 else {})) for b, head in flows]
    first = np.cumsum([0, *map(len, routes)])
    link = np.array([q for route in routes for q in route], np.int32)
    share = np.array([share for route in routes for share in route.values()])
    bundle, head = (np.array(column, np.int32) for column in zip(*flows, strict=True))
    fair_rates = fair_rates_of_flows(capacity, (first, link, share), bundle, head, np.inf)
    np.testing.assert_allclose(fair_rates, max_min_rates(slow, dict(enumerate(capacity))), rtol=1e-12)


@pytest.mark.parametrize("overhead", [0.0, 1e-4])
@pytest.mark.parametrize(("seed", "at_once"), [(0, 2**20), (1, 2**20), (2, 2**20), (3, 7)])
def test_counting_the_flows_of_links_gives_the_time_of_their_rates(
    monkeypatch: pytest.MonkeyPatch, overhead: float, seed: int, at_once: int
) -> None:
    monkeypatch.setattr(walk, "LEAST", 0)
    monkeypatch.setattr(bundles, "AT_ONCE", at_once)
    slower = np.random.default_rng(seed).choice([0.5, 1.0], fat_tree(4).n_links)
    network = dataclasses.replace(fat_tree(4), overhead=overhead)
    network = dataclasses.replace(network, bandwidth=network.bandwidth * slower)
    job = FlowJob(COLLECTIVES["direct_all_to_all"].build(13), place(network, 13, "random", seed=3))
    plan = plan_simultaneous(network, job, routing="ecmp", seed=seed)
    assert plan is not None
    counted = simulate_simultaneous(plan, SIZE, starts=0.25)
    assert "rate" not in vars(plan)  # nothing was allocated
    full = simulate_simultaneous(plan, SIZE, starts=0.25, trace=True)
    assert counted is not None
    assert full is not None
    assert (counted.time, counted.bytes_on_wire) == (full.time, full.bytes_on_wire)
    assert counted.link_bytes.tolist() == full.link_bytes.tolist()
    monkeypatch.setattr(walk, "LEAST", 2**20)
    kept = plan_simultaneous(network, job, routing="ecmp", seed=seed)
    assert kept is not None
    assert kept.crossings is None  # the routes themselves say it
    assert kept.spent == plan.spent
    again = simulate_simultaneous(kept, SIZE, starts=0.25)
    assert again is not None
    assert (again.time, again.link_bytes.tolist()) == (counted.time, counted.link_bytes.tolist())


def test_ports_with_other_overheads_are_not_counted_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "LEAST", 0)
    network = dataclasses.replace(fat_tree(4), overhead=np.linspace(1e-6, 2e-6, fat_tree(4).n_nodes))
    job = FlowJob(COLLECTIVES["direct_all_to_all"].build(13), place(network, 13))
    assert plan_simultaneous(network, job, routing="ecmp") is None


def test_flows_are_not_counted_where_one_that_is_faster_has_further_to_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "LEAST", 0)
    network = leaf_spine(n_leaves=2, n_spines=2, hosts_per_leaf=3, latency=1.0)
    program = Program(4, 4)
    program.copy([1, 2], src=[1, 2], dst=0)  # two from below its own leaf share its port
    program.copy(0, src=0, dst=3)  # one goes to the other leaf
    job = FlowJob(program.build(), Placement([0, 1, 2, 3]))
    assert agree(network, job, "ecmp")
    plan = plan_simultaneous(network, job, routing="ecmp")
    assert plan is not None
    counted, full = (simulate_simultaneous(plan, 4e8, trace=trace) for trace in (False, True))
    assert counted is not None
    assert full is not None
    assert counted.time == full.time
    assert counted.time > 4  # four cables of 1 s each


def test_it_refuses_what_does_not_start_together_or_is_not_equal() -> None:
    network, two = star(4), Placement([0, 1])
    chain, fenced, same_connection = (Program(2, 2) for _ in range(3))
    chain.copy(0, src=0, dst=1)
    chain.copy(0, src=1, dst=0)
    fenced.copy(0, src=0, dst=1)
    fenced.fence()
    fenced.copy(1, src=1, dst=0)
    same_connection.copy([0, 1], src=0, dst=1)
    for program in (chain, fenced, same_connection):
        assert plan_simultaneous(network, FlowJob(program.build(), two)) is None
    for costs in ({"recv_overhead": 1.0}, {"overhead": [1.0, 2.0, 1.0, 1.0, 0.0]}):
        job = FlowJob(COLLECTIVES["direct_all_to_all"].build(4), place(network, 4))
        assert plan_simultaneous(dataclasses.replace(network, **costs), job) is None
    rng = np.random.default_rng(0)
    job = FlowJob(once(rng, 4, 12), place(network, 4), messages=lambda size: size * np.arange(12.0))  # one is empty
    plan = plan_simultaneous(network, job)
    assert plan is not None
    assert simulate_simultaneous(plan, SIZE) is None
    plan = plan_simultaneous(network, dataclasses.replace(job, messages=None))
    assert plan is not None
    assert simulate_simultaneous(plan, SIZE, starts=[0.0, 1.0, 2.0, 3.0]) is None
    assert simulate_simultaneous(plan, SIZE, framing=Framing(1000, 40)) is not None


def test_the_connection_order_of_a_later_hop_that_reads_what_an_earlier_one_reads_is_no_obstacle() -> None:
    p = Program(3, 1)
    p.copy(0, src=0, dst=1)
    p.copy(0, src=0, dst=2)
    assert agree(star(3), FlowJob(p.build(), Placement([0, 1, 2])), "ecmp")


@pytest.mark.parametrize("routing", ["ecmp", "spray"])
def test_what_is_found_in_parts_is_the_same(monkeypatch: pytest.MonkeyPatch, routing: str) -> None:
    network = fat_tree(4)
    job = FlowJob(COLLECTIVES["direct_all_to_all"].build(13), place(network, 13, "random", seed=3))
    found = []
    for at_once in (2**20, 7):
        monkeypatch.setattr(bundles, "AT_ONCE", at_once)
        plan = plan_simultaneous(network, job, routing=routing, seed=5)
        assert plan is not None
        result = simulate_simultaneous(plan, SIZE, trace=True)
        assert result is not None
        found.append((result.time, result.link_bytes.tolist(), result.trace.done.tolist()))  # type: ignore[union-attr]
    assert found[0] == found[1]
