"""The published worked example to exact fractions, and the solver against cases that can be seen."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.validation.rate_allocation import (
    SERVER,
    Aggregator,
    Allocation,
    Way,
    allocate,
    push_pull_time,
    two_servers,
)
from commsim.core.errors import InputError

pytest.importorskip("scipy")
from benchmarks.validation import rate_allocation

GBPS = 1e9 / 8


def exact(found: Allocation) -> Fraction:
    fraction = Fraction(found.rate).limit_denominator(1000)
    assert found.rate == pytest.approx(float(fraction), abs=1e-9)
    return fraction


def test_the_three_schemes_of_the_worked_example() -> None:
    assert exact(rate_allocation.unaggregated()) == 1
    assert exact(rate_allocation.atp()) == Fraction(9, 4) + Fraction(3, 16)
    assert exact(rate_allocation.grid()) == 3


def test_the_published_number_is_ours_cut_off_after_two_digits() -> None:
    assert int(rate_allocation.atp().rate * 100) / 100 == 2.43


def test_dividing_flows_over_both_paths_changes_nothing_without_aggregation() -> None:
    assert exact(rate_allocation.unaggregated(split=True)) == 1


def test_the_first_switch_adds_all_it_can_and_its_workers_share_what_is_left_of_the_link() -> None:
    for aggregated, rest in rate_allocation.atp().sent[:4]:
        assert aggregated == pytest.approx(9 / 4)
        assert rest == pytest.approx(3 / 16)


@given(n=st.integers(1, 12), capacity=st.floats(0.5, 20), uplink=st.floats(0.5, 20))
def test_on_one_switch_the_rate_is_what_the_formula_says(n: int, capacity: float, uplink: float) -> None:
    """One stream of at most C/n, then the rest of the link among n; or, of a slow link, all of it for the stream."""
    links = {"up": uplink}
    ways = [Way((), "S"), Way(("up",))]
    found = allocate(links, {"S": Aggregator(capacity, {SERVER: ("up",)})}, [ways] * n).rate
    stream = min(capacity / n, uplink)
    assert found == pytest.approx(stream + (uplink - stream) / n, rel=1e-7)


def test_all_workers_send_a_server_the_same_share() -> None:
    """If each sent only to its own rack's server, the rate would be 2 + 1/3, and the link between the racks idle."""
    found = two_servers(1.0)
    assert exact(found) == 2
    assert found.shares == pytest.approx({"server0": 1.0, "server1": 1.0})
    alone = [Way((), "S"), Way(("up",))]
    assert exact(allocate({"up": 3.0}, {"S": Aggregator(6.0, {SERVER: ("up",)})}, [alone] * 3)) == Fraction(7, 3)


def test_two_servers_share_what_a_switch_can_add() -> None:
    """A capacity for each server would add all 3 that the servers' links take; shared, 2 are added: 2 + 1/3."""
    assert exact(two_servers(3.0)) == Fraction(7, 3)
    assert exact(two_servers(3.0, switch=9.0)) == 3


@given(between=st.floats(0.1, 10), switch=st.floats(0.1, 30), server=st.floats(0.1, 10))
def test_two_servers_get_what_the_inequalities_leave(between: float, switch: float, server: float) -> None:
    """With b, v, C of racks, servers and switches, a share is min(b, (b + 2 C / 3) / 3, v / 2, (v + 2 C / 3) / 6)."""
    added = 2 * switch / 3
    share = min(between, (between + added) / 3, server / 2, (server + added) / 6)
    assert two_servers(between, switch=switch, server=server).rate == pytest.approx(2 * share, rel=1e-7)


def test_a_way_may_use_a_link_twice() -> None:
    assert allocate({"l": 4.0}, {}, [[Way(("l", "l"))]]).rate == pytest.approx(2.0)


def test_what_nothing_limits_has_no_rate() -> None:
    with pytest.raises(InputError, match="no rates can be found"):
        allocate({"l": 1.0}, {}, [[Way(())]])


@pytest.mark.parametrize(
    ("workers", "message"),
    [
        ([], "every worker needs a way"),
        ([[]], "every worker needs a way"),
        ([[Way(("nowhere",))]], "unknown links nowhere; known: l"),
        ([[Way(("l",), "nobody")]], "unknown aggregators nobody; known: S"),
        ([[Way(("l",), "S", "other")]], "aggregator S has no links to other; it has: server"),
    ],
)
def test_names_that_do_not_exist_are_refused(workers: list[list[Way]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        allocate({"l": 1.0}, {"S": Aggregator(1.0, {SERVER: ("l",)})}, workers)


@pytest.mark.parametrize(
    ("gbps", "computed", "published"),
    [(15.4, 0.569, 0.56), (19.25, 0.455, 0.45), (23.1, 0.380, 0.38), (26.2, 0.335, None)],
)
def test_communication_times_of_the_inart_paper_follow_from_its_rates(
    gbps: float, computed: float, published: float | None
) -> None:
    """The paper's fourth time, 0.31 s, does not: its rate would give 0.335 s."""
    time = push_pull_time(548e6, gbps * GBPS)
    assert round(time, 3) == computed
    if published is not None:
        assert time == pytest.approx(published, rel=0.02)


def test_a_time_needs_a_rate() -> None:
    with pytest.raises(InputError, match="positive rate"):
        push_pull_time(1.0, 0.0)
