"""Which way the flow engine computes, and what it says when a way does not apply."""

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from collectives.dense.all_to_all import direct_all_to_all, pairwise_all_to_all
from collectives.dense.double_tree import double_tree_all_reduce
from collectives.dense.halving_doubling import halving_doubling_all_reduce, recursive_doubling_all_reduce
from collectives.dense.ring import ring_all_reduce
from commsim.core import limits
from commsim.core.errors import InputError
from commsim.core.placement import place
from commsim.core.schedule import Schedule
from commsim.engine import flow, flow_paths, job_connections
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_paths import METHODS, FlowPaths
from commsim.engine.simultaneous import begun_together
from commsim.engine.ways import costs
from commsim.routing import walk
from topologies.leaf_spine import leaf_spine
from topologies.star import star
from topologies.torus import torus

STAR = star(8, 1e9, 1e-6)
RING = FlowPaths(STAR, FlowJob(ring_all_reduce(8), place(STAR, 8)))


def limit_transfers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "MAX_TRANSFERS", 100)


def test_the_cheapest_way_is_taken_and_named() -> None:
    assert RING.simulate(1e6).method == "recurrence"
    assert RING.simulate(1e6) == RING.simulate(1e6, method="recurrence")


def test_the_method_is_no_part_of_the_value_of_a_result() -> None:
    quick, full = RING.simulate(2e6, method="recurrence"), RING.simulate(2e6, method="events")
    assert (quick.method, full.method) == ("recurrence", "events")
    assert quick.time == pytest.approx(full.time, rel=1e-12)
    assert "method" not in quick.row()


def test_no_table_of_all_transfers_is_laid_out_unless_it_is_needed() -> None:
    paths = FlowPaths(STAR, RING.job)
    paths.simulate(1e6)
    assert "tables" not in vars(paths)
    assert len(paths.plan.connection_of) == 8 * 14
    assert paths.plan is paths.plan


def test_an_unknown_method_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=f"unknown method 'round'; known: {', '.join(METHODS)}"):
        RING.simulate(1e6, method="round")


def test_a_method_that_does_not_apply_is_refused_with_what_it_needs() -> None:
    paths = FlowPaths(STAR, FlowJob(double_tree_all_reduce(8, 4), place(STAR, 8)))
    with pytest.raises(
        InputError, match=r"method 'recurrence' does not apply to .* on star.*: it needs every message alone"
    ):
        paths.simulate(1e6, method="recurrence")
    assert paths.simulate(1e6).method in METHODS


def test_what_the_full_engine_cannot_hold_is_refused_before_it_is_laid_out(monkeypatch: pytest.MonkeyPatch) -> None:
    limit_transfers(monkeypatch)
    costly = dataclasses.replace(STAR, recv_overhead=1e-6)  # which rounds do not know, and trees are no rings
    paths = FlowPaths(costly, FlowJob(double_tree_all_reduce(8, 16), place(costly, 8)))
    with pytest.raises(InputError, match=r"double_tree_all_reduce: \d+ transfers share links irregularly"):
        paths.simulate(1e9)
    assert "tables" not in vars(paths)


def test_a_ring_that_the_full_engine_cannot_hold_is_streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    costly = dataclasses.replace(STAR, recv_overhead=1e-6)  # which no other way knows
    paths = FlowPaths(costly, RING.job)
    full = paths.simulate(1e6, method="events")
    limit_transfers(monkeypatch)
    paths = FlowPaths(costly, RING.job)
    assert paths.simulate(1e6).method == "streamed"
    assert paths.simulate(1e6).time == full.time
    with pytest.raises(InputError, match=r"too many messages \(112; at most 100 are traced\)"):
        paths.simulate(1e6, trace=True)


def test_tables_that_no_memory_holds_are_refused_before_they_are_laid_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A direct all-to-all of 16,000 hosts took 9 GB before its messages were counted."""
    slim = leaf_spine(4, 2, hosts_per_leaf=2000, oversubscription=2.0)
    paths = FlowPaths(slim, FlowJob(direct_all_to_all(8000), place(slim, 8000)))
    monkeypatch.setattr(limits, "available_bytes", lambda: 8e9)
    with pytest.raises(
        InputError, match=r"64000000 transfers of direct_all_to_all would take [\d.]+ GiB of memory, but"
    ):
        paths.simulate(1e6)
    monkeypatch.setattr(costs, "MAX_TRANSFERS", 2**25)
    with pytest.raises(InputError, match="64000000 transfers share links irregularly"):
        FlowPaths(slim, paths.job).simulate(1e6)
    assert "tables" not in vars(paths)


def test_long_simulations_say_what_they_do(monkeypatch: pytest.MonkeyPatch) -> None:
    limits.EXPECTED.clear()
    RING.simulate(1e6)
    assert not limits.EXPECTED.what
    monkeypatch.setattr(flow_paths, "WORTH_SAYING", 1e-4)
    FlowPaths(STAR, RING.job).simulate(1e6)
    assert limits.EXPECTED.what == "simulating 112 messages of ring_all_reduce"
    assert 1e-4 < limits.EXPECTED.seconds < 1.0


def test_long_routes_and_searches_for_them_are_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    """`bound` on a torus of 3000x3 took minutes for each of 18 algorithms, of which it expected less than a second."""
    said: list[tuple[float, str]] = []
    for module in (flow_paths, walk):
        monkeypatch.setattr(module, "WORTH_SAYING", 1e-4)
        monkeypatch.setattr(module, "expect", lambda seconds, what, _: said.append((seconds, what)))
    for n in (30, 60):
        line = torus((n, 3))
        FlowPaths(line, FlowJob(halving_doubling_all_reduce(3 * n), place(line, 3 * n))).simulate(1e6, method="events")
    what = ["finding the paths between", "simulating"]
    assert [text.startswith(start) for (_, text), start in zip(said, 2 * what, strict=True)] == [True] * 4
    assert said[2][0] > 3.9 * said[0][0], "each of twice the nodes looks at twice the links"
    assert said[3][0] > 5 * said[1][0], "twice the messages have routes that are longer, too"


@pytest.mark.parametrize("method", ["recurrence", "events"])
def test_bad_sizes_and_starts_are_refused_alike(method: str) -> None:
    with pytest.raises(InputError, match="size must be positive and finite, got 0"):
        RING.simulate(0.0, method=method)
    with pytest.raises(InputError, match="start must be 0 or more and finite, got -1"):
        RING.simulate(1.0, starts=np.array([-1.0] * 8), method=method)


def test_other_payloads_leave_the_routes_as_they_are() -> None:
    doubled = RING.with_messages(lambda size: np.full(8 * 14, size / 4))
    assert doubled.plan.routes is RING.plan.routes
    assert doubled.simulate(1e6).link_bytes == pytest.approx(2 * RING.simulate(1e6).link_bytes)


def test_a_trace_with_another_hash_is_of_the_way_that_found_the_time() -> None:
    """A trace took the recurrence where the time was of events: sums of the same draw differed in the last bit."""
    net = leaf_spine(4, 2, 4, 12.5e9, oversubscription=2)
    paths = FlowPaths(net, FlowJob(recursive_doubling_all_reduce(16), place(net, 16)))
    assert paths.simulate(2**20).method == "events"
    hashed = paths.hashed_by(3964924996)
    found, traced = hashed.simulate(2**20), hashed.simulate(2**20, trace=True)
    assert hashed.simulate(2**20, method="recurrence").time != found.time
    assert (traced.method, traced.time) == (found.method, found.time)


def test_another_hash_examines_the_schedule_no_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    net = leaf_spine(4, 2, 4, 12.5e9, oversubscription=2)
    together = FlowPaths(net, FlowJob(direct_all_to_all(16), place(net, 16)))
    in_turn = FlowPaths(net, FlowJob(recursive_doubling_all_reduce(16), place(net, 16)))
    for paths, method in ((together, "simultaneous"), (in_turn, "events")):
        assert paths.simulate(2**20).method == method
    monkeypatch.setattr(begun_together, "unrolled", None)
    monkeypatch.setattr(job_connections, "connections", None)
    for paths in (together, in_turn):
        paths.hashed_by(7).simulate(2**20)


@pytest.mark.parametrize(("build", "n"), [(ring_all_reduce, 32), (pairwise_all_to_all, 256)])
def test_connections_are_the_rows_unless_rounds_go_to_other_ranks(build: Callable[[int], Schedule], n: int) -> None:
    """A ring's rounds send other chunks to the same neighbour; those of an exchange go to another rank each."""
    network = star(16)
    paths = FlowPaths(network, FlowJob(build(16), place(network, 16)))
    assert (paths.n_connections, paths.n_rows) == (n, 32)


@pytest.mark.parametrize("method", ["bottlenecks", "events"])
def test_hashes_that_draw_the_same_routes_are_simulated_once(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A star of machines has one path, though its routing hashes: a second draw took as long as the first."""
    net = leaf_spine(4, 2, 4, 12.5e9)
    paths = FlowPaths(net, FlowJob(recursive_doubling_all_reduce(4), place(net, 4)))  # all below one leaf
    found = paths.simulate(2**20, method=method)
    monkeypatch.setattr(flow, "simulate_plan", None)
    assert paths.hashed_by(7).simulate(2**20, method=method).time == found.time
    with pytest.raises(TypeError):
        paths.hashed_by(7).simulate(2**21, method=method)
