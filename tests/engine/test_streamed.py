"""Streamed rings: the full engine's answer, from counts of messages and without a table of transfers."""

import dataclasses

import numpy as np
import pytest
from flow_cases import random_network
from hypothesis import event, given
from hypothesis import strategies as st

from collectives import COLLECTIVES
from collectives.dense.double_tree import double_tree_all_reduce
from collectives.dense.hierarchical import hierarchical_all_reduce
from collectives.dense.multi_ring import multi_ring_all_reduce
from collectives.dense.ring import ring_all_reduce
from commsim.core.cost import Framing
from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.placement import Placement, place
from commsim.core.program import Program
from commsim.core.result import Result
from commsim.core.schedule import Schedule
from commsim.engine.flow import simulate_flows
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import plan_flows
from commsim.engine.streamed import streamed
from commsim.engine.streamed.streamed import plan_streamed, simulate_streamed
from topologies.fat_tree import fat_tree
from topologies.rail_optimized import rail_optimized
from topologies.star import star

RINGS = ["ring_all_reduce", "ring_reduce_scatter", "ring_all_gather", "multi_ring_all_reduce",
         "hierarchical_all_reduce", "torus_all_reduce"]  # fmt: skip

FAT = fat_tree(4, 1e9, 1e-6)
RAILS = rail_optimized(16, hosts_per_group=4, groups_per_pod=2, cores_per_spine=4)


def both(network: Network, job: FlowJob, size: float, *, routing: str = "ecmp", seed: int = 0, **options: object
         ) -> tuple[Result | None, Result]:  # fmt: skip
    """Streamed, and by the full engine."""
    plan = plan_streamed(network, job, routing=routing, seed=seed)
    assert plan is not None
    ours = simulate_streamed(plan, size, **options)  # type: ignore[arg-type]
    full = plan_flows(network, [job], routing=routing, seed=seed)
    return ours, simulate_flows(full, size, **options)[0]  # type: ignore[arg-type]


def some_network(rng: np.random.Generator, n_ranks: int) -> Network:
    """A graph, or one with mostly uncontended connections: a star, or machines whose ranks reach each other inside."""
    which = rng.integers(4)
    if which > 1:
        return random_network(rng, n_ranks + int(rng.integers(2)), int(rng.integers(1, 5)), bool(rng.integers(2)))
    network = star(n_ranks, 1.0, 0.1) if which else dataclasses.replace(RAILS, latency=RAILS.latency * 1e4)
    n = network.n_nodes
    return dataclasses.replace(
        network,
        bandwidth=network.bandwidth / network.bandwidth.max() * rng.choice([1.0, 1.0, 0.7], network.n_links),
        overhead=rng.uniform(0, 0.2, n) * rng.integers(2),
        recv_overhead=rng.uniform(0, 0.2, n) * (rng.random(n) < 0.3) * rng.integers(2),
        gamma=rng.uniform(0, 2, n) * (rng.random(n) < 0.7) * rng.integers(2),
    )


def assert_same(ours: Result, full: Result) -> None:
    assert ours.time == pytest.approx(full.time, rel=1e-12)
    assert ours.time_from_last_start == pytest.approx(full.time_from_last_start, rel=1e-12, abs=1e-12 * full.time)
    assert ours.bytes_on_wire == pytest.approx(full.bytes_on_wire, rel=1e-12)
    np.testing.assert_allclose(ours.link_bytes, full.link_bytes, rtol=1e-12, atol=1e-12)
    assert ours.counters["transfers"] == full.counters["transfers"]


def sliced_rings(rng: np.random.Generator, n_ranks: int) -> Schedule:
    """One or two cycles, whose connections carry several messages of unequal lengths in each round."""
    counts = [rng.integers(1, 4, int(rng.integers(2, 4))) for _ in range(int(rng.integers(1, 3)))]
    width = sum(int(count.sum()) for count in counts)
    rows: list[list[np.ndarray]] = [[] for _ in range(5)]
    at = 0
    for channel, slices in enumerate(counts):
        order = rng.permutation(n_ranks)
        for count in slices.tolist():
            row = (order, np.roll(order, -1), np.arange(n_ranks) * width + at, count, channel)
            for column, value in zip(rows, row, strict=True):
                column.append(np.broadcast_to(value, n_ranks))
            at += count
    src, dst, chunk, number, channel = map(np.concatenate, rows)
    p = Program(n_ranks, n_ranks * width)
    n_reduced, n_copied = (int(rng.integers(0, 2 * n_ranks)) for _ in range(2))
    for i in range(n_reduced + n_copied + 1):
        write = p.reduce if i < n_reduced else p.copy
        write((chunk - i * width) % (n_ranks * width), src=src, dst=dst, count=number, channel=channel)
    return p.build()


@given(seed=st.integers(0, 2**32), n_ranks=st.integers(2, 9), late=st.booleans())
def test_slices_of_a_piece_follow_each_other_as_in_the_full_engine(seed: int, n_ranks: int, late: bool) -> None:
    rng = np.random.default_rng(seed)
    schedule, network = sliced_rings(rng, n_ranks), some_network(rng, n_ranks)
    job = FlowJob(schedule, Placement([*rng.choice(network.endpoints, n_ranks, replace=False)]))
    starts = rng.uniform(0, 3, n_ranks) if late else 0.0
    ours, full = both(network, job, 40.0 * schedule.n_chunks / n_ranks, seed=seed, starts=starts)
    assert ours is not None
    assert_same(ours, full)


def random_rings(rng: np.random.Generator, n_ranks: int, n_phases: int) -> Schedule:
    """Turns on random cycles of random channels, some of which go on where the one before ended."""
    p = Program(n_ranks, n_ranks)
    order, moved = rng.permutation(n_ranks), 0
    for _ in range(n_phases):
        if rng.random() < 0.4:
            order, moved = rng.permutation(n_ranks), 0
        write = p.reduce if rng.random() < 0.5 else p.copy
        times = int(rng.integers(1, 2 * n_ranks))
        with p.repeat(times, chunk=-1):
            write((np.arange(n_ranks) - moved) % n_ranks, src=order, dst=np.roll(order, -1), channel=rng.integers(2))
        moved += times
    return p.build()


@pytest.mark.slow
@given(
    seed=st.integers(0, 2**32),
    name=st.sampled_from([*RINGS, "random"]),
    late=st.sampled_from([0.0, 0.5, 20.0]),
    routing=st.sampled_from(["ecmp", "ecmp", "shortest", "spray"]),
    header=st.booleans(),
)
def test_rings_that_collide_anywhere_take_what_the_full_engine_says(
    seed: int, name: str, late: float, routing: str, header: bool
) -> None:
    rng = np.random.default_rng(seed)
    n_ranks = int(rng.integers(2, 13))
    network = some_network(rng, n_ranks)
    schedule = random_rings(rng, n_ranks, 3) if name == "random" else COLLECTIVES[name].build(n_ranks)
    placement = Placement([*rng.choice(network.endpoints, n_ranks, replace=False)])
    cap = float(rng.choice([np.inf, np.inf, 0.3]))
    job = FlowJob(schedule, placement, float(rng.choice([1, 3])), 0, cap)
    ours, full = both(
        network, job, float(rng.uniform(0.5, 3)), routing=routing, seed=seed % 10,
        starts=rng.uniform(0, 1, n_ranks) * late, framing=Framing(0.05, 0.01) if header else None,
    )  # fmt: skip
    event(f"{name}: {'refused' if ours is None else 'agrees'}")
    ring_connections = plan_streamed(network, job, routing=routing, seed=seed % 10).ring_connections.row  # type: ignore[union-attr]
    event(f"uncontended: {np.round(ring_connections['uncontended'].mean(), 1)}")
    if ours is not None:
        event("to the last bit" if ours.time == full.time else "to 1e-12")
        assert_same(ours, full)
    elif name != "random":
        assert len(plan_streamed(network, job).phases) > 1  # type: ignore[union-attr]


@pytest.mark.parametrize("jitter", [0.0, 1e-4])
@pytest.mark.parametrize(
    "schedule",
    [ring_all_reduce(16), multi_ring_all_reduce(16, 2),
     hierarchical_all_reduce(16, tuple(tuple(range(i, i + 4)) for i in range(0, 16, 4)))],
    ids=lambda schedule: str(schedule.name),
)  # fmt: skip
def test_collisions_of_a_fat_tree_are_shared_alike(schedule: Schedule, jitter: float) -> None:
    ours, full = both(FAT, FlowJob(schedule, place(FAT, 16)), 1e8, seed=3, starts=np.linspace(0, jitter, 16))
    assert ours is not None
    assert ours.time == full.time
    assert_same(ours, full)


def test_rails_with_collisions_agree_to_the_last_bit() -> None:
    ours, full = both(RAILS, FlowJob(ring_all_reduce(128), place(RAILS, 128)), 1e9)
    assert ours is not None
    assert ours.time == full.time
    assert_same(ours, full)


@pytest.mark.nojit
@pytest.mark.parametrize("costs", [0.0, 1e-6])
def test_a_small_ring_agrees_with_and_without_costs_of_its_ends(costs: float) -> None:
    network = dataclasses.replace(
        star(4, 1e9, 1e-6),
        overhead=np.full(5, costs),
        recv_overhead=np.full(5, 2 * costs),
        gamma=np.full(5, 1e-3 * costs),
    )
    ours, full = both(network, FlowJob(ring_all_reduce(4), place(network, 4)), 1e6, starts=np.array([0, 0, 3e-5, 0]))
    assert ours is not None
    assert ours.time == full.time


def test_thousands_of_messages_at_once_on_a_slow_connection_are_all_waited_for() -> None:
    # 200 tiny messages follow each other on links on which each takes longer than all of them together to send.
    network = star(200, 1e12, 1e-3)
    ours, full = both(network, FlowJob(ring_all_reduce(200), place(network, 200)), 200.0)
    assert ours is not None
    assert ours.time == full.time


def test_what_would_take_hours_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    job = FlowJob(ring_all_reduce(16), place(FAT, 16))
    monkeypatch.setattr(streamed, "MAX_STREAMED", 16 * 30)
    assert plan_streamed(FAT, job) is not None
    monkeypatch.setattr(streamed, "MAX_STREAMED", 16 * 30 - 1)
    assert plan_streamed(FAT, job) is None


def test_what_is_no_ring_is_left_to_others() -> None:
    job = FlowJob(double_tree_all_reduce(16, 4), place(FAT, 16))
    assert plan_streamed(FAT, job) is None
    ring = FlowJob(ring_all_reduce(4), place(FAT, 4))
    assert plan_streamed(FAT, dataclasses.replace(ring, messages=lambda size: np.full(24, size))) is None
    plan = plan_streamed(FAT, ring)
    assert plan is not None
    assert simulate_streamed(plan, 1e6, trace=True) is None


def test_a_phase_that_meets_another_in_its_middle_is_refused_where_it_would_be_too_early() -> None:
    # Each connection of the second phase ends where one of the first starts; what it overwrites there leaves later.
    network = dataclasses.replace(star(6, 1e9, 1e-6), bandwidth=np.geomspace(1e8, 1e9, 12))
    found = [both(network, FlowJob(random_rings(np.random.default_rng(seed), 6, 3), place(network, 6)), 1e6)
             for seed in range(20)]  # fmt: skip
    assert 0 < sum(ours is None for ours, _ in found) < 20
    for ours, full in found:
        assert ours is None or ours.time == full.time


@pytest.mark.parametrize(("size", "starts", "message"), [
    (0.0, 0.0, "size must be positive and finite, got 0"),
    (1.0, -1.0, "start must be 0 or more and finite, got -1"),
])  # fmt: skip
def test_bad_sizes_and_starts_are_refused(size: float, starts: float, message: str) -> None:
    plan = plan_streamed(FAT, FlowJob(ring_all_reduce(4), place(FAT, 4)))
    assert plan is not None
    with pytest.raises(InputError, match=message):
        simulate_streamed(plan, size, starts=starts)
