"""The sharing kernel alone: incremental arrivals and departures against exact water-filling in fractions."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from slow_sharing import Flow, bottleneck, max_min_rates

from commsim.engine import flow_state
from commsim.engine.flow_state import (
    CONNECTION_ROW,
    DATA,
    FLOW_ROW,
    FlowLinks,
    FlowState,
    share_table,
)
from commsim.engine.max_min_kernel import share_again
from commsim.engine.users_kernel import enter, leave


@dataclass(frozen=True)
class Sharing:
    """Flows, capacities, and which flows are there in one step after the other."""

    flows: list[Flow]
    capacity: dict[int, float]
    steps: list[set[int]]


@st.composite
def sharings(draw: st.DrawFn, *, priorities: bool = False) -> Sharing:
    n_resources = draw(st.integers(1, 6))
    speed = st.one_of(st.sampled_from([1.0, 2.0, 3.0]), st.floats(0.1, 10))
    capacity = {r: draw(speed) for r in range(n_resources)}
    share = st.sampled_from([1.0, 1.0, 0.5, 0.25, 1 / 3])
    uses = st.dictionaries(st.integers(0, n_resources - 1), share, min_size=1)
    weight, priority = st.sampled_from([1.0, 1.0, 0.3, 2.0, 50.0]), st.integers(0, 2 if priorities else 0)
    flows = draw(st.lists(st.builds(Flow, uses, weight, priority), min_size=1, max_size=10))
    steps = draw(st.lists(st.sets(st.integers(0, len(flows) - 1)), min_size=1, max_size=6))
    return Sharing(flows, capacity, steps)


def tables(sharing: Sharing) -> FlowState:
    flow_links = [use for flow in sharing.flows for use in flow.uses.items()]
    share = np.array([share for _, share in flow_links])
    flow_link = FlowLinks(np.array([r for r, _ in flow_links], np.int32), share if (share != 1).any() else np.empty(0))
    flow = np.zeros(len(sharing.flows), FLOW_ROW)
    flow["end"] = np.cumsum([len(flow.uses) for flow in sharing.flows])
    flow["begin"][1:] = flow["end"][:-1]
    flow["data"] = flow["begin"]
    flow["weight"] = [flow.weight for flow in sharing.flows]
    flow["priority"] = [flow.priority for flow in sharing.flows]
    capacity = np.array(list(sharing.capacity.values()))
    resource = share_table(capacity, np.bincount(flow_link.resource, minlength=len(capacity)))
    nothing = np.empty(0, np.int32)
    transfers = nothing, np.empty(0, np.uint8), np.empty(0), nothing
    state = flow_state.allocate_state(
        transfers, (np.empty(0, CONNECTION_ROW), flow, flow_link, resource), nothing, (np.zeros(1, np.int64), nothing)
    )
    state.flow["phase"] = DATA
    return state


def rates_after_each_step(sharing: Sharing) -> list[tuple[list[int], NDArray[np.float64]]]:
    """Let flows leave and enter as the steps say, and read the rates of those that are there."""
    t = tables(sharing)
    several = len({flow.priority for flow in sharing.flows}) > 1
    there: set[int] = set()
    out = []
    for present in sharing.steps:
        for s in sorted(there - present):
            leave(t, s, several)
        entered = sorted(present - there)
        for s in entered:
            enter(t, s)
        t.beginning[: len(entered)], t.counter["n_beginning"] = entered, len(entered)
        share_again(t, 0.0, several)
        t.flow["changed"][t.changed[: t.counter["n_changed"]]] = False
        there, here = present, sorted(present)
        out.append((here, t.flow["fair_rate"][here] * t.flow["weight"][here]))
    return out


@pytest.mark.slow
@pytest.mark.parametrize("priorities", [False, True])
@given(data=st.data())
def test_rates_after_arrivals_and_departures_are_those_of_exact_water_filling(
    data: st.DataObject, priorities: bool
) -> None:
    sharing = data.draw(sharings(priorities=priorities))
    exact = {r: Fraction(c) for r, c in sharing.capacity.items()}
    flows = [Flow({r: Fraction(s) for r, s in f.uses.items()}, Fraction(f.weight), f.priority) for f in sharing.flows]
    for there, rates in rates_after_each_step(sharing):
        expected = [float(rate) for rate in max_min_rates([flows[s] for s in there], exact)]
        # A flow that gets nothing is left with the rounding of the capacity that the others took.
        rounding = 1e-12 * max([1.0, *sharing.capacity.values()])
        np.testing.assert_allclose(rates, expected, rtol=1e-9, atol=rounding)


@pytest.mark.slow
@given(sharing=sharings())
def test_every_flow_always_has_a_bottleneck_and_no_resource_is_overloaded(sharing: Sharing) -> None:
    for there, rates in rates_after_each_step(sharing):
        flows = [sharing.flows[s] for s in there]
        for r, capacity in sharing.capacity.items():
            load = sum(rate * flow.uses.get(r, 0.0) for rate, flow in zip(rates, flows, strict=True))
            assert load <= capacity * (1 + 1e-9)
        assert all(bottleneck(i, flows, list(rates), sharing.capacity) is not None for i in range(len(flows)))


@pytest.mark.parametrize("n_resources", [3, 24, 25, 60, 200])
def test_short_lists_and_heaps_of_resources_give_the_rates_of_exact_water_filling(n_resources: int) -> None:
    """Up to ``SHORT`` resources are a list; the queue also grows and shrinks over that length in one filling."""
    random = np.random.default_rng(n_resources)
    uses = [dict.fromkeys(random.choice(n_resources, min(3, n_resources), replace=False).tolist(), 1.0)
            for _ in range(n_resources)]  # fmt: skip
    capacity = dict(enumerate(random.uniform(1, 9, n_resources).tolist()))
    everyone = set(range(n_resources))
    sharing = Sharing([Flow(use) for use in uses], capacity, [everyone, set(range(0, n_resources, 2)), everyone])
    exact = {r: Fraction(c) for r, c in capacity.items()}
    flows = [Flow({r: Fraction(1) for r in use}, Fraction(1)) for use in uses]
    for there, rates in rates_after_each_step(sharing):
        expected = [float(rate) for rate in max_min_rates([flows[s] for s in there], exact)]
        np.testing.assert_allclose(rates, expected, rtol=1e-9)


def test_the_bottleneck_test_itself_refuses_an_unfair_allocation() -> None:
    flows, capacity = [Flow({0: 1.0}), Flow({0: 1.0})], {0: 2.0}
    assert bottleneck(0, flows, [1.0, 1.0], capacity) == 0
    assert bottleneck(0, flows, [0.5, 1.5], capacity) is None  # full, but the other has more
    assert bottleneck(0, flows, [0.9, 0.9], capacity) is None  # nothing is full
