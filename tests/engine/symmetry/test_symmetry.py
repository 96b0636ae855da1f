"""One connection of each class gives what the event engine gives for all, for any schedule and network."""

import dataclasses

import numpy as np
import pytest
from flow_cases import random_network, random_schedule
from hypothesis import given
from hypothesis import strategies as st

from collectives import COLLECTIVES
from commsim.core.cost import Framing
from commsim.core.network import Network
from commsim.core.placement import Placement, place
from commsim.core.program import Program
from commsim.core.schedule import SCRATCH, Schedule
from commsim.engine.flow import simulate_flows
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import plan_flows
from commsim.engine.job_connections import JobConnections
from commsim.engine.symmetry import classes, symmetry
from commsim.engine.symmetry.pattern import Pattern, find_pattern
from commsim.engine.symmetry.symmetry import plan_symmetric, simulate_symmetric
from topologies.fat_tree import fat_tree
from topologies.rail_optimized import rail_optimized
from topologies.star import star

SIZE = 1e9


def play_whatever_it_is_worth(patch: pytest.MonkeyPatch) -> None:
    """Simulate classes even where there are as many as connections."""
    patch.setattr(classes, "MAX_SHARE", 1.0)
    patch.setattr(symmetry, "MAX_ROUNDS", 100)
    patch.setattr(symmetry, "LEAST_CONNECTIONS", 1)


@pytest.fixture
def whatever_it_is_worth(monkeypatch: pytest.MonkeyPatch) -> None:
    play_whatever_it_is_worth(monkeypatch)


def compare(network: Network, job: FlowJob, routing: str | None = None, start: float = 0.0) -> float | None:
    """Classes per connection, None where it does not apply; every transfer and link must be as in the full engine."""
    plan = plan_symmetric(network, job, routing=routing)
    ours = None if plan is None else simulate_symmetric(plan, SIZE, starts=start, trace=True)
    if plan is None or plan.connections is None or ours is None:
        return None
    (theirs,) = simulate_flows(plan_flows(network, [job], routing=routing), SIZE, starts=start, trace=True)
    assert ours.trace is not None
    assert theirs.trace is not None
    for name in ("start", "sent", "done"):
        np.testing.assert_allclose(getattr(ours.trace, name), getattr(theirs.trace, name), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours.link_bytes, theirs.link_bytes, rtol=1e-9, atol=1e-3)
    for name in ("time", "time_from_last_start", "bytes_on_wire"):
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name), rel=1e-9)
    assert ours.counters["transfers"] == theirs.counters["transfers"]
    return ours.counters["classes"] / len(plan.connections.full.connection)


@pytest.mark.parametrize("routing", ["dmodk", "spray"])
def test_a_double_tree_on_rails_needs_few_classes(routing: str) -> None:
    network = rail_optimized(64, "dgx-h100:pxn=false", hosts_per_group=32)
    share = compare(
        network, FlowJob(COLLECTIVES["double_tree_all_reduce"].build(512, n_chunks=8), place(network, 512)), routing
    )
    assert share is not None
    assert share < 1 / 20


def test_a_ring_on_a_star_is_one_class() -> None:
    network = dataclasses.replace(star(70), overhead=1e-6, recv_overhead=2e-6, gamma=1e-11)
    assert compare(network, FlowJob(COLLECTIVES["ring_all_reduce"].build(70), place(network, 70)), start=0.5) == 1 / 70


@pytest.mark.parametrize(
    "collective", ["halving_doubling_all_reduce", "hierarchical_all_reduce", "pairwise_all_to_all"]
)
def test_other_collectives_end_as_in_the_full_engine(collective: str, whatever_it_is_worth: None) -> None:
    network = fat_tree(6)
    assert compare(network, FlowJob(COLLECTIVES[collective].build(32), place(network, 32)), "spray") is not None


def test_members_that_share_links_with_others_are_told_apart(whatever_it_is_worth: None) -> None:
    network = star(64)
    job = FlowJob(COLLECTIVES["double_tree_all_reduce"].build(64), place(network, 64))
    plan = plan_symmetric(network, job)
    assert plan is not None
    assert simulate_symmetric(plan, SIZE) is not None
    assert len(plan.classes) > 1
    assert compare(network, job) is not None


def alike(rng: np.random.Generator, n_ranks: int, costs: bool) -> Network:
    """Random networks in which much is alike: hosts on a few switches, all links of two speeds."""
    network = random_network(rng, n_ranks, int(rng.integers(1, 4)), costs)
    bandwidth = rng.choice([1.0, 2.0], network.n_links)
    few = {name: np.where(getattr(network, name) > 0, 0.125, 0.0) for name in ("overhead", "recv_overhead", "gamma")}
    return dataclasses.replace(
        network, bandwidth=bandwidth * 1e9, latency=0.25 * rng.integers(0, 2, network.n_links), **few
    )


def random_collective(rng: np.random.Generator, n_ranks: int) -> Schedule:
    """Random hops, or one of the collectives whose connections have roles."""
    name = str(
        rng.choice(["random", "double_tree_all_reduce", "ring_all_reduce", "direct_all_to_all", "bruck_all_gather"])
    )
    if name == "random" or name not in COLLECTIVES:
        return random_schedule(rng, n_ranks, 0, int(rng.integers(1, 6)))
    return COLLECTIVES[name].build(n_ranks)


@given(seed=st.integers(0, 2**32), routing=st.sampled_from(["ecmp", "shortest", "spray"]), costs=st.booleans())
def test_random_schedules_on_random_networks_end_as_in_the_full_engine(seed: int, routing: str, costs: bool) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    network = alike(rng, n, costs)
    job = FlowJob(random_collective(rng, n), Placement(rng.permutation(n)))
    with pytest.MonkeyPatch.context() as patch:
        play_whatever_it_is_worth(patch)
        assert compare(network, job, routing) is not None


def test_it_refuses_what_has_no_symmetry() -> None:
    network = star(80)
    job = FlowJob(COLLECTIVES["ring_all_reduce"].build(80), place(network, 80))
    assert plan_symmetric(network, dataclasses.replace(job, messages=lambda size: np.full(12640, size))) is None
    uneven = dataclasses.replace(network, latency=np.random.default_rng(0).uniform(0, 1, network.n_links))
    plan = plan_symmetric(uneven, job)
    assert plan is not None
    assert simulate_symmetric(plan, SIZE) is None
    plan = plan_symmetric(network, job)
    assert plan is not None
    assert simulate_symmetric(plan, SIZE, starts=np.arange(80.0)) is None
    assert simulate_symmetric(plan, SIZE, framing=Framing(1000, 40)) is not None


def random_fetches(n: int, each: int) -> Schedule:
    """Everybody fetches messages of random sizes from random others, one after the other."""
    random = np.random.default_rng(0)
    p = Program(n, n_chunks=16, n_scratch=16)
    for _ in range(each):
        src = (np.arange(n) + random.integers(1, n, n)) % n
        count = random.integers(1, 17, n)
        p.copy(src=src, dst=np.arange(n), src_chunk=0, dst_chunk=0, count=count, dst_buffer=SCRATCH)
    return p.build()


def test_who_waits_for_whom_is_not_looked_for_where_most_participants_send_and_receive_something_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("looked for")

    monkeypatch.setattr(Pattern, "find_waits", fail)
    network = star(80)
    fetches = plan_symmetric(network, FlowJob(random_fetches(80, 5), place(network, 80)))
    assert fetches is not None
    assert simulate_symmetric(fetches, SIZE) is None
    ring = plan_symmetric(network, FlowJob(COLLECTIVES["ring_all_reduce"].build(80), place(network, 80)))
    assert ring is not None
    with pytest.raises(AssertionError, match="looked for"):
        simulate_symmetric(ring, SIZE)


def test_a_pattern_is_one_repetition_only_where_repetitions_have_no_chunk_in_common() -> None:
    apart, shared = COLLECTIVES["double_tree_all_reduce"].build(8), COLLECTIVES["ring_all_reduce"].build(8)
    pattern, whole = find_pattern(apart), find_pattern(shared)
    assert pattern is not None
    assert whole is not None
    assert pattern.times * len(pattern.transfers) == apart.n_transfers
    assert pattern.times == 64
    assert (whole.times, len(whole.transfers)) == (1, shared.n_transfers)


def test_transfers_laid_out_before_have_the_same_pattern() -> None:
    schedule = COLLECTIVES["ring_all_reduce"].build(8)
    network = star(8)
    pattern = find_pattern(schedule)
    again = find_pattern(schedule, JobConnections(network, FlowJob(schedule, place(network, 8)), None, 0))
    assert pattern is not None
    assert again is not None
    for field in dataclasses.fields(Pattern):
        np.testing.assert_array_equal(getattr(again, field.name), getattr(pattern, field.name))
