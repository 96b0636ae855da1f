"""Which ways are chosen, and that choosing costs little."""

import dataclasses
import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from collectives import COLLECTIVES
from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.pinned_routes import PinnedRoutes
from commsim.core.placement import place
from commsim.core.program import Program
from commsim.core.schedule import Schedule
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_paths import METHODS, FlowPaths
from commsim.engine.ways import catalog, costs
from commsim.engine.ways.catalog import (
    BOTTLENECKS,
    EVENTS,
    MOVES,
    RINGS,
    SIMULTANEOUS,
    STREAMED,
    SYMMETRIC,
    WAYS,
    Way,
    WayCost,
    choose,
    ways_of_method,
)
from topologies.fat_tree import fat_tree
from topologies.rail_optimized import rail_optimized
from topologies.star import star


def paths_of(collective: str, network: Network, n_ranks: int, routing: str | None = None) -> FlowPaths:
    schedule = COLLECTIVES[collective].build(n_ranks)
    return FlowPaths(network, FlowJob(schedule, place(network, n_ranks)), routing)


def estimates(paths: FlowPaths) -> dict[Way, WayCost]:
    """What each way that may be tried is expected to take."""
    ways = [way for way in WAYS if way.estimate is not None and way.least < paths.event_cost]
    found = {way: way.estimate(paths) for way in ways}
    costs_of = {way: cost for way, cost in found.items() if cost is not None}
    return costs_of | {EVENTS: WayCost(paths.event_cost, paths.event_cost)}


@pytest.mark.parametrize(
    ("collective", "n"), [("ring_all_reduce", 8), ("ring_all_reduce", 64), ("double_tree_all_reduce", 16)]
)
def test_ways_are_estimated_no_earlier_than_needed_and_tried_in_order(collective, n, monkeypatch) -> None:
    paths, known, asked = paths_of(collective, star(n), n), [], []
    for way in WAYS:
        estimate = way.estimate and (lambda p, way=way: asked.append(way.least) or way.estimate(p))
        known.append(dataclasses.replace(way, estimate=estimate))
    in_order = [seconds for _, seconds in choose(paths)][:-1]
    assert in_order == sorted(in_order)
    cost = estimates(paths)
    assert in_order == sorted(cost[way].answer for way, _ in choose(paths) if way is not EVENTS)
    monkeypatch.setattr(catalog, "WAYS", known)
    _, first = next(choose(paths))
    assert asked
    assert all(least <= first for least in asked)


def test_rings_are_tried_first_where_rounds_repeat() -> None:
    assert next(choose(paths_of("ring_all_reduce", star(64), 64)))[0] is RINGS
    rails = rail_optimized(128, hosts_per_group=32, groups_per_pod=2)
    assert next(choose(paths_of("ring_all_reduce", rails, 1024)))[0] is RINGS


def test_rings_of_one_round_with_many_waits_are_not_laid_out() -> None:
    byteps = paths_of("byteps", fat_tree(8), 128)
    assert RINGS not in dict(choose(byteps))
    assert STREAMED not in dict(choose(byteps))
    assert "ring_phases" not in vars(byteps)


def test_byteps_goes_transfer_by_transfer_where_it_shares_in_step_and_by_events_where_not() -> None:
    network = star(16)
    assert paths_of("byteps", network, 16).simulate(2**26).method == "recurrence"
    uneven = fat_tree(4)
    assert paths_of("byteps", uneven, 16).simulate(2**26).method == "events"


def test_an_all_to_all_is_tried_as_simultaneous_first() -> None:
    assert next(choose(paths_of("direct_all_to_all", fat_tree(8), 128)))[0] is SIMULTANEOUS


def test_symmetry_is_not_looked_for_where_paths_are_drawn_by_hashing() -> None:
    network = rail_optimized(64, hosts_per_group=32)
    assert SYMMETRIC in dict(choose(paths_of("double_tree_all_reduce", network, 512, "dmodk")))
    assert SYMMETRIC not in dict(choose(paths_of("double_tree_all_reduce", network, 512, "ecmp")))


def test_what_cannot_be_simulated_by_events_is_tried_in_every_way_that_may_apply() -> None:
    many = paths_of("ring_all_reduce", star(16384), 16384)
    assert many.n_transfers > costs.MAX_TRANSFERS
    assert tuple(dict(choose(many))) == (RINGS, STREAMED, EVENTS)


@pytest.mark.parametrize("n_ranks", [8192, 131072])
def test_estimates_expand_no_schedule(n_ranks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the schedule was expanded")

    monkeypatch.setattr(Schedule, "expand", refuse)
    network = rail_optimized(n_ranks // 8, hosts_per_group=32, groups_per_pod=16, cores_per_spine=32)
    job = FlowJob(COLLECTIVES["ring_all_reduce"].build(n_ranks), place(network, n_ranks))
    ring = FlowPaths(network, job)
    assert RINGS in estimates(ring)
    assert "shared" not in vars(ring)


@pytest.mark.parametrize("collective", ["ring_all_reduce", "byteps", "direct_all_to_all", "double_tree_all_reduce"])
def test_estimates_grow_with_the_number_of_ranks(collective: str) -> None:
    found = [estimates(paths_of(collective, star(128), n)) for n in (16, 32, 64, 128)]
    for few, many in itertools.pairwise(found):
        for way in few.keys() & many.keys():
            assert few[way].decline <= many[way].decline
            assert few[way].answer <= many[way].answer


@pytest.mark.parametrize("collective", sorted(COLLECTIVES))
def test_what_may_be_lost_is_little_beside_the_event_engine(collective: str) -> None:
    try:
        one = paths_of(collective, fat_tree(4), 16)
    except InputError as error:  # it is built for other systems only
        pytest.skip(str(error))
    cost = estimates(one)
    lost = sum(cost[way].decline for way in tuple(dict(choose(one)))[:-1])
    assert lost <= one.at_risk
    assert all(cost[way].answer < cost[EVENTS].answer for way in tuple(dict(choose(one)))[:-1])


def test_a_trace_is_left_to_the_ways_that_have_the_times_of_every_transfer() -> None:
    ring = paths_of("ring_all_reduce", star(8), 8)
    assert RINGS in dict(choose(ring))
    assert not {RINGS, STREAMED} & set(dict(choose(ring, trace=True)))


def test_only_the_event_engine_takes_weights_and_curves() -> None:
    ring = paths_of("ring_all_reduce", star(4), 4)
    pinned = dataclasses.replace(ring.job.placement, routes=PinnedRoutes.of([(0, 1, 0, [0, 5])]))
    assert tuple(dict(choose(dataclasses.replace(ring, job=dataclasses.replace(ring.job, placement=pinned))))) == (
        EVENTS,
    )


def test_a_way_is_added_by_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = paths_of("ring_all_reduce", star(4), 4).simulate(1e6)
    quick = Way("quick", "nothing", "at once", lambda _: WayCost(0.0, 0.0), lambda _: lambda *_, **__: answer)
    monkeypatch.setattr(catalog, "WAYS", (quick, *WAYS))
    assert paths_of("ring_all_reduce", star(8), 8).simulate(1e6).method == "quick"


@pytest.mark.parametrize("share", [1.0, 1.001])
def test_a_way_may_lose_all_that_may_be_lost_and_no_more(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = paths_of("double_tree_all_reduce", star(8), 8)
    risky = Way("risky", "nothing", "at once", lambda p: WayCost(p.at_risk * share, 0.0), lambda _: None)
    monkeypatch.setattr(catalog, "WAYS", (risky, EVENTS))
    assert (risky in dict(choose(paths))) == (share <= 1)


@pytest.mark.parametrize("fences", [False, True])
def test_bottlenecks_are_for_many_messages_at_once_and_not_for_many_one_after_the_other(fences: bool) -> None:
    n, program = 64, Program(64, 64)
    for turn in range(1, n):
        program.copy(np.arange(n), src=np.arange(n), dst=(np.arange(n) + turn) % n)
        if fences:
            program.fence()
    network = star(n)
    found = estimates(FlowPaths(network, FlowJob(program.build(), place(network, n))))
    assert (BOTTLENECKS in found) == (not fences)


def test_every_way_says_what_it_needs_and_how_it_computes() -> None:
    for way in WAYS:
        assert way.needs
        assert way.words
        assert way.words == ways_of_method(way.name)[0].words  # variants of one method have one description


def test_every_way_has_a_method() -> None:
    assert ["auto", *dict.fromkeys(way.name for way in WAYS)] == [*METHODS]
    assert MOVES.name == RINGS.name == "recurrence"


def test_a_way_of_an_installed_package_is_tried_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = paths_of("ring_all_reduce", star(4), 4).simulate(1e6)
    quick = Way("quick", "nothing", "at once", lambda _: WayCost(0.0, 0.0), lambda _: lambda *_, **__: answer)
    monkeypatch.setattr(catalog, "house", lambda: SimpleNamespace(ways={"quick": quick}))
    paths = paths_of("ring_all_reduce", star(8), 8)
    assert paths.simulate(1e6, method="quick").method == "quick"
    assert paths.simulate(1e6).method != "quick"
    with pytest.raises(InputError, match="unknown method 'slow'"):
        paths.simulate(1e6, method="slow")


@pytest.mark.parametrize("n", [2, 3, 8, 40])
@pytest.mark.parametrize("collective", ["ring_all_reduce", "double_tree_all_reduce", "direct_all_to_all"])
def test_what_a_way_takes_at_least_is_below_its_estimate(n: int, collective: str) -> None:
    paths = paths_of(collective, star(n), n)
    for way in WAYS:
        cost = None if way.estimate is None else way.estimate(paths)
        assert cost is None or way.least <= cost.answer
