"""Schedules whose channels have weights, and placements that pin routes: what each engine makes of them."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weighted_channels import side_by_side

from commsim.core.errors import InputError
from commsim.core.names.nodes_and_links import find_link
from commsim.core.pinned_routes import PinnedRoutes
from commsim.core.placement import Placement
from commsim.engine.flow import simulate_flows
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_paths import METHODS
from commsim.engine.flow_plan import plan_flows
from commsim.prediction.build import prepare
from topologies.leaf_spine import leaf_spine
from topologies.star import star

SPINES = leaf_spine(2, 2, 2)
RATE = float(SPINES.bandwidth[0])


def over(spines):
    """Pin channel c from h0 to h2 to a spine."""
    return PinnedRoutes.of(
        (0, 1, c, [find_link(SPINES, f"{a}:{b}") for a, b in
                   (("h0", "leaf0"), ("leaf0", f"spine{s}"), (f"spine{s}", "leaf1"), ("leaf1", "h2"))])
        for c, s in enumerate(spines)
    )  # fmt: skip


@settings(max_examples=settings().max_examples * 2 // 3)
@given(counts=st.lists(st.integers(1, 9), min_size=1, max_size=6))
def test_messages_whose_weights_are_their_sizes_end_together(counts):
    result = prepare(side_by_side(counts, counts), star(2), placement=Placement([0, 1])).predict(1e9, trace=True)
    np.testing.assert_allclose(result.trace.done, result.time, rtol=1e-9)
    np.testing.assert_allclose(result.time, 1e9 / star(2).bandwidth[0] + 1e-6, rtol=1e-9)


def test_equal_shares_let_the_small_message_end_first():
    result = prepare(side_by_side([3, 1], ()), star(2), placement=Placement([0, 1])).predict(1e9, trace=True)
    np.testing.assert_allclose(result.trace.done, [0.08 + 1e-6, 0.04 + 1e-6])


def test_a_channel_without_a_weight_has_weight_one():
    weights = side_by_side([3, 1, 1], [3.0]).weight_of(np.array([2, 0, 1]))
    assert weights.tolist() == [1, 3, 1]


@pytest.mark.parametrize("weights", [[1.0, 0.0], [-1.0], [np.inf], [np.nan], [[1.0]]])
def test_weights_are_positive_numbers_in_a_row(weights):
    with pytest.raises(InputError, match="weights of channels are positive numbers in a row"):
        side_by_side([1, 1], weights)


@pytest.mark.parametrize("engine", ["flow", "alpha-beta", "packet"])
@pytest.mark.parametrize("spines", [(0, 1), (1, 0), (1, 1)])
def test_every_engine_takes_the_pinned_route(engine, spines):
    placed = Placement([0, 2], over(spines))
    carried = prepare(side_by_side([3, 1], ()), SPINES, placement=placed).predict(4e6, engine=engine).link_bytes
    payload = [0.0, 0.0]
    for count, spine in zip((3, 1), spines, strict=True):
        payload[spine] += count * 1e6
    links = [find_link(SPINES, f"leaf0:spine{s}") for s in (0, 1)]
    np.testing.assert_allclose(carried[links], payload, rtol=0.03)  # headers of packets are 2 %


@pytest.mark.parametrize("routing", ["ecmp", "spray", "dmodk"])
def test_no_routing_moves_a_pinned_message(routing):
    ready = prepare(side_by_side([1], ()), SPINES, placement=Placement([0, 2], over([1])), routing=routing)
    carried = ready.predict(1e6).link_bytes
    assert carried[find_link(SPINES, "leaf0:spine1")] == 1e6
    assert carried[find_link(SPINES, "leaf0:spine0")] == 0


def test_two_jobs_keep_their_own_pins():
    job = FlowJob(side_by_side([1], ()), Placement([0, 2], over([0])))
    other = dataclasses.replace(job, placement=Placement([0, 2], over([1])))
    first, second = simulate_flows(plan_flows(SPINES, [job, other]), 1e6)
    for result, spine in ((first, 0), (second, 1)):
        assert result.link_bytes[find_link(SPINES, f"leaf0:spine{spine}")] == 1e6


def test_weights_of_jobs_and_of_channels_multiply():
    jobs = [
        FlowJob(side_by_side([1], [2.0]), Placement([0, 1]), weight=3.0),
        FlowJob(side_by_side([1], ()), Placement([0, 1])),
    ]
    first, second = simulate_flows(plan_flows(star(2), jobs), 1e9, trace=True)
    alone = 1e9 / star(2).bandwidth[0]
    np.testing.assert_allclose(first.time, alone * 7 / 6 + 1e-6)  # 6 parts of 7, and then the rest is the other's
    np.testing.assert_allclose(second.time, alone * 2 + 1e-6)


@pytest.mark.parametrize("way", sorted({*METHODS} - {"auto", "events"}))
def test_the_cheaper_ways_decline_pins_and_weights(way):
    for schedule, placement in (
        (side_by_side([3, 1], [3.0, 1.0]), Placement([0, 2])),
        (side_by_side([3, 1], ()), Placement([0, 2], over([0, 1]))),
    ):
        ready = prepare(schedule, SPINES, placement=placement)
        assert ready.predict(1e6).method == "events"
        with pytest.raises(InputError, match="needs routes that are not pinned, and equal weights"):
            ready.predict(1e6, method=way)


def test_weights_of_one_are_no_weights():
    ready = prepare(side_by_side([1, 1], [1.0, 1.0]), star(2), placement=Placement([0, 1]))
    assert ready.predict(1e6).method != "events"
