"""What the recurrence says is what the event-driven engine says, or it says nothing."""

import dataclasses
import gc

import numpy as np
import pytest
from flow_cases import Case, cases
from hypothesis import event, given
from hypothesis import strategies as st

from collectives import COLLECTIVES
from collectives.dense.double_tree import double_tree_all_reduce
from collectives.dense.halving_doubling import halving_doubling_all_reduce
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
from commsim.engine.flow_paths import FlowPaths
from commsim.engine.flow_plan import plan_flows
from commsim.engine.ways.catalog import MOVES, RINGS
from topologies.fat_tree import fat_tree
from topologies.rail_optimized import rail_optimized
from topologies.star import star

HELPED = [name for name in COLLECTIVES if COLLECTIVES[name].metadata["systems"]]
WITHOUT_HELPERS = [name for name in COLLECTIVES if name not in HELPED]


def recurrence(
    network: Network, job: FlowJob, size: float, *, routing: str | None = None, seed: int = 0, **options: object
) -> Result | None:
    """By rounds of rings, or else transfer by transfer."""
    paths = FlowPaths(network, job, routing, seed)
    for way in (RINGS, MOVES):
        simulation = way.plan(paths)
        found = None if simulation is None else simulation(size, **options)
        if found is not None:
            return found
    return None


def both(
    network: Network, job: FlowJob, size: float, *, routing: str | None = None, seed: int = 0, **options: object
) -> tuple[Result | None, Result]:
    """By rounds, and by the full engine."""
    ours = recurrence(network, job, size, routing=routing, seed=seed, **options)
    full = plan_flows(network, [job], routing=routing, seed=seed)
    return ours, simulate_flows(full, size, **options)[0]  # type: ignore[arg-type]


def assert_same(ours: Result, full: Result) -> None:
    assert ours.time == pytest.approx(full.time, rel=1e-9)
    assert ours.time_from_last_start == pytest.approx(full.time_from_last_start, rel=1e-9, abs=1e-9 * full.time)
    assert ours.bytes_on_wire == pytest.approx(full.bytes_on_wire, rel=1e-12)
    np.testing.assert_allclose(ours.link_bytes, full.link_bytes, rtol=1e-9, atol=1e-9)
    assert ours.counters["transfers"] == full.counters["transfers"]


@pytest.mark.slow
@given(case=cases(), header=st.booleans())
def test_random_schedules_agree_transfer_by_transfer_or_are_refused(case: Case, header: bool) -> None:
    job = case.jobs[0]
    starts = case.starts[: job.schedule.n_participants]
    connection = Framing(0.5, 0.1) if header else None
    ours, full = both(
        case.network,
        job,
        case.sizes[0],
        routing=case.routing,
        seed=case.seed,
        starts=starts,
        framing=connection,
        trace=True,
    )
    event("refused" if ours is None else "agrees")
    if ours is not None:
        assert_same(ours, full)
        assert ours.trace is not None
        assert full.trace is not None
        for name in ("start", "sent", "done"):
            np.testing.assert_allclose(getattr(ours.trace, name), getattr(full.trace, name), rtol=1e-9, atol=1e-12)


@st.composite
def settings_of(draw: st.DrawFn) -> tuple[Network, Placement, dict[str, object], int]:
    """A network with some ranks on it, where and how they start; the same speeds more often than not."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_ranks = draw(st.integers(1, 16))
    network = draw(st.sampled_from([star(n_ranks, 1e9, 1e-6), fat_tree(4, 1e9, 1e-6), rail_optimized(2, latency=0.0)]))
    n_ranks = min(n_ranks, len(network.endpoints))
    speed = draw(st.sampled_from([[1.0], [1.0], [1.0, 0.5], [1.0, 0.7, 1.3]]))
    gamma, overhead = draw(st.sampled_from([(0.0, 0.0), (0.0, 0.0), (3e-10, 0.0), (1e-11, 1e-6), (4e-9, 0.0)]))
    network = dataclasses.replace(
        network,
        bandwidth=network.bandwidth * rng.choice(speed, network.n_links),
        latency=network.latency * draw(st.sampled_from([0.0, 1.0, 1.0, 50.0])),
        gamma=gamma,
        overhead=overhead,
    )
    late = draw(st.sampled_from([0.0, 0.0, 1e-5, 1e-2]))
    how = {"starts": rng.uniform(0, 1, n_ranks) * late, "routing": draw(st.sampled_from(["ecmp", "spray"]))}
    return network, place(network, n_ranks, draw(st.sampled_from(["packed", "random"])), seed=1), how, n_ranks


@pytest.mark.slow
@given(
    name=st.sampled_from(WITHOUT_HELPERS),
    where=settings_of(),
    size=st.sampled_from([1e2, 1e6, 1e9]),
    trace=st.booleans(),
)
def test_every_collective_agrees_or_is_refused(
    name: str, where: tuple[Network, Placement, dict[str, object], int], size: float, trace: bool
) -> None:
    network, placement, how, n_ranks = where
    try:
        schedule = COLLECTIVES[name].build(n_ranks)
    except InputError:
        return  # not built for so many ranks
    if schedule.n_helpers:
        return
    ours, full = both(network, FlowJob(schedule, placement), size, trace=trace, **how)  # type: ignore[arg-type]
    event("refused" if ours is None else "agrees")
    if ours is not None:
        assert_same(ours, full)


@given(
    n_ranks=st.integers(2, 24),
    seed=st.integers(0, 999),
    late=st.sampled_from([0.0, 1e-4, 1e-2]),
    gamma=st.sampled_from([0.0, 1e-10, 5e-9]),
)
def test_a_ring_is_never_refused_whatever_its_rates_and_starts(
    n_ranks: int, seed: int, late: float, gamma: float
) -> None:
    rng = np.random.default_rng(seed)
    network = dataclasses.replace(
        star(n_ranks),
        bandwidth=rng.uniform(1e8, 1e9, 2 * n_ranks),
        latency=rng.uniform(0, 1e-5, 2 * n_ranks),
        gamma=rng.uniform(0, gamma, n_ranks + 1),
        overhead=rng.uniform(0, 1e-6, n_ranks + 1),
    )
    job = FlowJob(ring_all_reduce(n_ranks), place(network, n_ranks))
    ours, full = both(network, job, 1e6, starts=rng.uniform(0, late, n_ranks))
    assert ours is not None
    assert_same(ours, full)


RAILS = rail_optimized(16, hosts_per_group=4, groups_per_pod=2, cores_per_spine=4)


@pytest.mark.parametrize("routing", ["dmodk", "spray"])
@pytest.mark.parametrize(
    "schedule",
    [ring_all_reduce(128), halving_doubling_all_reduce(128), multi_ring_all_reduce(128, 2),
     hierarchical_all_reduce(128, tuple(tuple(range(i, i + 8)) for i in range(0, 128, 8)))],
    ids=lambda schedule: str(schedule.name),
)  # fmt: skip
def test_messages_that_share_links_in_step_agree(schedule: Schedule, routing: str) -> None:
    ours, full = both(RAILS, FlowJob(schedule, place(RAILS, 128)), 1e9, routing=routing)
    assert ours is not None
    assert_same(ours, full)


def test_sprayed_messages_over_a_folded_network_load_every_link_of_it_alike() -> None:
    network = rail_optimized(32, hosts_per_group=8, groups_per_pod=2, cores_per_spine=4)
    ours, full = both(network, FlowJob(halving_doubling_all_reduce(256), place(network, 256)), 1e9, routing="spray")
    assert ours is not None
    assert_same(ours, full)


def test_messages_that_share_a_link_out_of_step_are_refused() -> None:
    network = star(8, 1e9, 1e-6)
    job = FlowJob(double_tree_all_reduce(8, 4), place(network, 8))
    assert recurrence(network, job, 1e6) is None


def test_what_costs_the_receiver_time_is_refused() -> None:
    network = dataclasses.replace(star(4, 1e9, 1e-6), recv_overhead=1e-6)
    assert recurrence(network, FlowJob(ring_all_reduce(4), place(network, 4)), 1e6) is None


@pytest.mark.nojit
@pytest.mark.parametrize("name", ["halving_doubling_all_reduce", "direct_gather", "binomial_tree_all_reduce"])
def test_a_small_case_of_each_kind_agrees(name: str) -> None:
    # Shared ports in one hop after the other, a port that all share in step, and fences.
    network = dataclasses.replace(star(4, 1e9, 1e-6), gamma=np.full(5, 1e-10))
    ours, full = both(network, FlowJob(COLLECTIVES[name].build(4), place(network, 4)), 1e6, trace=True)
    assert ours is not None
    assert_same(ours, full)


@pytest.mark.nojit
def test_a_message_of_no_time_takes_no_time() -> None:
    network = dataclasses.replace(star(3, 1e9, 0.0), gamma=0.0)
    p = Program(3, 1)
    p.copy(0, src=0, dst=0)
    ours, full = both(network, FlowJob(p.build(), place(network, 3)), 1e6)
    assert ours is not None
    assert (ours.time, ours.bytes_on_wire) == (full.time, full.bytes_on_wire) == (0.0, 0.0)


def test_tiny_messages_do_not_lose_their_digits() -> None:
    # 1 byte in 510 rounds at 100 GB/s: 40 fs each, beside a start that is a second late.
    network = star(256, 1e11, 0.0)
    job = FlowJob(ring_all_reduce(256), place(network, 256))
    starts = np.zeros(256)
    starts[7] = 1.0
    ours, full = both(network, job, 1.0, starts=starts)
    assert ours is not None
    assert ours.time == pytest.approx(full.time, rel=1e-9)
    ours, full = both(network, job, 1.0)
    assert ours is not None
    assert ours.time == pytest.approx(510 / 256 / 1e11, rel=1e-12)


def test_a_ring_of_thousands_needs_no_table_of_its_transfers() -> None:
    network = star(4096, 1e9, 1e-6)
    paths = FlowPaths(network, FlowJob(ring_all_reduce(4096), place(network, 4096)))
    simulation = RINGS.plan(paths)
    assert simulation is not None
    result = simulation(2.0**30)
    assert result is not None
    assert not {"shared", "tables"} & vars(paths).keys()
    assert result.time == pytest.approx(8190 * (2.0**18 / 1e9 + 2e-6), rel=1e-12)


def test_a_plan_of_sprayed_rings_keeps_no_merged_network():
    network = rail_optimized(128, hosts_per_group=8, groups_per_pod=4)
    paths = FlowPaths(network, FlowJob(ring_all_reduce(1024), place(network, 1024)), "spray", 0)
    assert paths.simulate(1e6, method="recurrence").time > 0
    kept = [one.name for one in gc.get_objects() if type(one) is Network]
    assert network.name in kept
    assert f"{network.name}, merged" not in kept  # those of other tests may not have been collected yet
