"""Rates of groups after arrivals and departures, against water-filling from the beginning, with and without a cap."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from slow_sharing import Flow, bottleneck, max_min_rates

from commsim.engine.bottlenecks.group_state import Groups, GroupTables
from commsim.engine.bottlenecks.groups_kernel import join, leave_group, take_out, use, use_no_more
from commsim.engine.bottlenecks.levels_kernel import change_rate, fill_all, settle

UNIT = 2.0**-50


@dataclass(frozen=True)
class Sharing:
    """Paths of flows over resources, capacities, a cap or none, and which flows are there in one step after another."""

    paths: list[list[int]]
    capacity: list[float]
    cap: float | None
    steps: list[set[int]]

    def flows(self, there: list[int]) -> list[Flow]:
        """Flows that are there, as the slow oracle takes them; each has a cap of its own."""
        capped = [] if self.cap is None else ["cap"]
        return [Flow(dict.fromkeys(self.paths[s], 1.0) | {(name, s): 1.0 for name in capped}) for s in there]

    def capacities(self, there: list[int]) -> dict[object, float]:
        """Capacities of what these flows use."""
        capacity: dict[object, float] = dict(enumerate(self.capacity))
        if self.cap is not None:
            capacity |= {("cap", s): self.cap for s in there}
        return capacity


def draw_sharing(seed: int, *, n_flows: int, n_resources: int, equal: bool, capped: bool, n_steps: int) -> Sharing:
    rng = np.random.default_rng(seed)
    paths = [rng.choice(n_resources, rng.integers(1, min(5, n_resources + 1)), replace=False) for _ in range(n_flows)]
    capacity = rng.choice([1.0, 2.0, 3.0], n_resources) if equal else rng.uniform(0.1, 10, n_resources)
    there = set(rng.choice(n_flows, n_flows // 2, replace=False).tolist())
    steps = [set(there)]
    for _ in range(n_steps):  # some leave and others enter at once, mostly one
        there = there ^ set(rng.choice(n_flows, min(n_flows, rng.choice([1, 1, 1, 2, 5])), replace=False).tolist())
        steps.append(set(there))
    cap = float(rng.uniform(0.05, 1)) if capped else None
    return Sharing([path.tolist() for path in paths], capacity.tolist(), cap, steps)


@st.composite
def sharings(draw: st.DrawFn) -> Sharing:
    return draw_sharing(
        draw(st.integers(0, 2**32)), n_flows=draw(st.integers(1, 40)), n_resources=draw(st.integers(1, 12)),
        equal=draw(st.booleans()), capped=draw(st.booleans()), n_steps=draw(st.integers(1, 12)),
    )  # fmt: skip


def groups_of(sharing: Sharing) -> tuple[Groups, NDArray[np.int64]]:
    """Empty groups, and where the flow links of each flow begin; the cap is the last of a path."""
    n = len(sharing.capacity)
    capped = [] if sharing.cap is None else [n]
    link = np.concatenate([[*path, *capped] for path in sharing.paths]).astype(np.int32)
    capacity = np.array([*sharing.capacity, *([] if sharing.cap is None else [sharing.cap])])
    tables = GroupTables(
        UNIT, n if capped else -1, (capacity / UNIT).astype(np.int64), link,
        np.bincount(link, minlength=len(capacity)), len(sharing.paths),
    )  # fmt: skip
    return tables.allocate(), np.cumsum([0, *(len(path) + len(capped) for path in sharing.paths)])


def rates_after_each_step(sharing: Sharing, *, anew: bool = False) -> list[tuple[list[int], NDArray[np.floating]]]:
    """Let flows leave and enter as the steps say, and read the rates of those that are there."""
    g, first = groups_of(sharing)
    there: set[int] = set()
    out = []
    for number, present in enumerate(sharing.steps):
        for s in sorted(there - present):
            take_out(g, g.group[s], s)
            use_no_more(g, s)
            leave_group(g, s, 0.0)
        for s in sorted(present - there):
            use(g, s, first[s], first[s + 1])
            g.end[s] = 1.0
            if number > 0:
                join(g, s, 0.0, 1.0)
        if number == 0 or anew:
            fill_all(g, 0.0)
        else:
            settle(g, 0.0)
        there = present
        here = sorted(present)
        check_tables(g)
        out.append((here, g.rate[g.group[here]] * UNIT))
    return out


def check_tables(g: Groups) -> None:
    """The lists of crossed rows are those of the table of counts, and what is left of each row is exact."""
    rows = np.flatnonzero(g.resource[: g.counter["n_rows"]] >= 0)
    for i in rows:
        assert sorted(g.crossed[i, : g.n_crossed[i]]) == np.flatnonzero(g.crossing[i]).tolist()
        if g.resource[i] != g.cap:
            taken = sum(int(g.crossing[h, i]) * int(g.rate[h]) for h in rows if g.crossing[h, i])
            assert g.rest[i] == g.capacity[g.resource[i]] - taken


@pytest.mark.slow
@given(sharing=sharings())
@settings(max_examples=settings().max_examples // 2)
def test_rates_after_arrivals_and_departures_are_those_of_water_filling(sharing: Sharing) -> None:
    for there, rates in rates_after_each_step(sharing):
        expected = max_min_rates(sharing.flows(there), sharing.capacities(there))
        np.testing.assert_allclose(rates, expected, rtol=1e-9)


@pytest.mark.parametrize("capped", [False, True])
@pytest.mark.parametrize("equal", [False, True])
def test_every_one_of_many_flows_has_a_bottleneck_and_nothing_is_overloaded(equal: bool, capped: bool) -> None:
    sharing = draw_sharing(1, n_flows=120, n_resources=20, equal=equal, capped=capped, n_steps=25)
    for there, rates in rates_after_each_step(sharing):
        flows, capacity = sharing.flows(there), sharing.capacities(there)
        for r, most in capacity.items():
            assert sum(rate for rate, flow in zip(rates, flows, strict=True) if r in flow.uses) <= most * (1 + 1e-9)
        assert all(bottleneck(i, flows, list(rates), capacity) is not None for i in range(len(flows)))


def test_rates_found_anew_are_those_found_step_by_step() -> None:
    sharing = draw_sharing(2, n_flows=60, n_resources=15, equal=False, capped=True, n_steps=20)
    by_steps, anew = rates_after_each_step(sharing), rates_after_each_step(sharing, anew=True)
    for (_, one), (_, other) in zip(by_steps, anew, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11)


def test_a_link_whose_rest_is_as_before_is_looked_at_all_the_same() -> None:
    # When flow 0 leaves, flow 1 of the same link may take over all of what it had on the third link: what is left
    # there for flow 2 is the same, but flow 1 has more than it.
    sharing = Sharing([[0, 2], [0, 2], [2]], [2.0, 9.0, 3.0], None, [{0, 1, 2}, {1, 2}])
    (_, before), (_, after) = rates_after_each_step(sharing)
    np.testing.assert_allclose(before, [1.0, 1.0, 1.0])
    np.testing.assert_allclose(after, [1.5, 1.5])


def test_a_rate_that_changed_before_all_are_found_anew_leaves_no_trace() -> None:
    # As where patience ends in the middle of a change: what the rate takes is not taken from the new rates' rests too.
    sharing = draw_sharing(2, n_flows=60, n_resources=15, equal=False, capped=False, n_steps=1)
    g, first = groups_of(sharing)
    there = sorted(sharing.steps[0])
    for s in there:
        use(g, s, first[s], first[s + 1])
        g.end[s] = 1.0
    fill_all(g, 0.0)
    lowest = int(g.order[0])
    change_rate(g, lowest, int(g.rate[lowest]) // 2)
    fill_all(g, 0.0)
    settle(g, 0.0)
    expected = max_min_rates(sharing.flows(there), sharing.capacities(there))
    np.testing.assert_allclose(g.rate[g.group[there]] * UNIT, expected, rtol=1e-9)
