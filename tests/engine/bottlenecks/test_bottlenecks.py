"""Times with one rate per bottleneck, against the event engine and the slow oracle."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from flow_cases import Case, cases
from hypothesis import assume, given
from slow_flow import simulate

from collectives import COLLECTIVES
from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.placement import place
from commsim.engine.bottlenecks.group_state import lay_out_groups
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_paths import FlowPaths
from commsim.engine.flow_plan import plan_flows
from commsim.engine.ways.catalog import BOTTLENECKS, choose
from topologies.fat_tree import fat_tree
from topologies.leaf_spine import leaf_spine
from topologies.star import star

SMALL = fat_tree(4)


def paths_of(network: Network, collective: str, n_ranks: int, routing: str | None = None, **options: Any) -> FlowPaths:
    schedule = COLLECTIVES[collective].build(n_ranks, **options)
    return FlowPaths(network, FlowJob(schedule, place(network, schedule.n_participants)), routing)


def assert_same_times(paths: FlowPaths, size: float, **options: Any) -> None:
    found, full = (paths.simulate(size, method=m, trace=True, **options) for m in ("bottlenecks", "events"))
    assert found.method == "bottlenecks"
    assert found.trace is not None
    assert full.trace is not None
    assert found.time == pytest.approx(full.time, rel=1e-9)
    for name in ("start", "sent", "done"):
        np.testing.assert_allclose(getattr(found.trace, name), getattr(full.trace, name), rtol=1e-9)
    np.testing.assert_array_equal(found.link_bytes, full.link_bytes)
    assert found.counters == full.counters


@pytest.mark.slow
@given(case=cases(plain=True, routings=("ecmp", "shortest")))
def test_times_are_those_of_the_slow_oracle(case: Case) -> None:
    job, size = case.jobs[0], case.sizes[0]
    starts = case.starts[: job.schedule.n_participants]
    paths = FlowPaths(case.network, job, case.routing, case.seed)
    assume(lay_out_groups(paths.plan) is not None)  # all messages stay within their rank
    found = paths.simulate(size, method="bottlenecks", starts=starts, trace=True)
    expected = simulate(case.network, [job], [size], starts, routing=case.routing, seed=case.seed)
    assert found.trace is not None
    times = np.stack((found.trace.start, found.trace.sent, found.trace.done), axis=1)
    np.testing.assert_allclose(times, np.array(expected).reshape(-1, 3), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n_partitions", [1, 3])
def test_partitions_that_collide_end_when_the_event_engine_says(n_partitions: int) -> None:
    assert_same_times(paths_of(SMALL, "byteps", 16, n_partitions=n_partitions), 2.0**26)


def test_messages_that_share_links_in_step_end_together() -> None:
    assert_same_times(paths_of(star(12), "byteps", 12, n_partitions=2), 2.0**24)


def test_overheads_and_reductions_are_phases_of_their_own() -> None:
    n = SMALL.n_nodes
    costly = dataclasses.replace(
        SMALL, overhead=np.full(n, 1e-6), recv_overhead=np.full(n, 2e-6), gamma=np.full(n, 1e-10)
    )
    assert_same_times(paths_of(costly, "byteps", 16, n_partitions=2), 2.0**22)


@pytest.mark.parametrize("part", [1.0, 0.04, 0.005])
def test_caps_of_all_messages_are_one_resource(part: float) -> None:
    paths = paths_of(SMALL, "byteps", 16, n_partitions=2)
    cap = part * float(SMALL.bandwidth[0])
    capped = FlowPaths(SMALL, dataclasses.replace(paths.job, rate_cap=cap))
    assert_same_times(capped, 2.0**24)
    groups = lay_out_groups(capped.plan)
    assert groups is not None
    assert groups.cap == len(groups.capacity) - 1 <= SMALL.n_links


def test_ranks_may_start_at_different_times() -> None:
    starts = np.random.default_rng(0).uniform(0, 1e-3, 16)
    assert_same_times(paths_of(SMALL, "byteps", 16, n_partitions=2), 2.0**24, starts=starts)


def test_sprayed_messages_are_declined() -> None:
    sprayed = paths_of(leaf_spine(4, 2, 4), "byteps", 16, "spray", n_partitions=2)
    assert lay_out_groups(sprayed.plan) is None
    with pytest.raises(InputError, match="it needs messages that take links whole"):
        sprayed.simulate(1e6, method="bottlenecks")


def test_rates_that_would_be_rounded_are_declined() -> None:
    bandwidth = SMALL.bandwidth.copy()
    bandwidth[0] = 1.0  # beside 12.5 GB/s
    uneven = dataclasses.replace(SMALL, bandwidth=bandwidth)
    assert lay_out_groups(plan_flows(uneven, [paths_of(uneven, "byteps", 16).job])) is None


def test_it_is_tried_where_many_messages_may_collide() -> None:
    def is_tried(paths: FlowPaths) -> bool:
        return BOTTLENECKS in dict(choose(paths))

    assert is_tried(paths_of(fat_tree(8), "byteps", 128, n_partitions=8))
    assert not is_tried(paths_of(SMALL, "byteps", 16, n_partitions=2))  # too little work to begin with
    assert not is_tried(paths_of(fat_tree(8), "ring_all_reduce", 128))
    assert not is_tried(paths_of(fat_tree(8), "pairwise_all_to_all", 128))  # one after the other
