"""Greedily sent chunks get everywhere, no link carries two at once, and time is what news needs where bytes are few."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_networks import networks

from benchmarks.synthesis.networks import FOLDER, grid
from commsim.core.checking.check import check
from commsim.packets.hosts.message_plan import MAX_RATIO
from commsim.prediction.bounds.demand import usable
from commsim.prediction.build import prepare
from commsim.prediction.inputs import load_network
from commsim.ranking.synthesis.greedy import MOST_RATIO, _drawn_ways, send_greedily
from commsim.ranking.synthesis.greedy_kernel import send_rarest
from commsim.ranking.synthesis.trees.forest import DIRECTIONS


@given(networks(max_ranks=5, max_switches=3), st.integers(1, 3), st.sampled_from([1.001, 1.5, 1e9]))
def test_messages_keep_the_rules(network, per_rank, patience):
    graph = usable(network, network.endpoints.astype(np.int32), anywhere=False)
    n, chunks = len(graph.ranks), len(graph.ranks) * per_rank
    ways, _ = _drawn_ways(graph, 1000.0, np.random.default_rng(0))
    have, sent = np.full((n, chunks), np.inf), np.empty((n * chunks, 4))
    have[np.arange(chunks) // per_rank, np.arange(chunks)] = 0.0
    count = send_rarest(ways, np.arange(len(ways.src)), patience, 0, np.zeros(len(graph.link)), have, sent)
    assert count == (n - 1) * chunks  # nobody hears anything twice
    since = {(c // per_rank, c): 0.0 for c in range(chunks)}
    free = np.zeros(len(graph.link))
    for row in sent[:count]:
        way, chunk, start, arrival = int(row[0]), int(row[1]), row[2], row[3]
        rows = slice(ways.first[way], ways.first[way + 1])
        assert since[int(ways.src[way]), chunk] <= start
        assert (free[ways.link[rows]] <= start).all()
        free[ways.link[rows]] = start + ways.busy[rows]
        assert arrival == pytest.approx(start + ways.takes[way])
        since[int(ways.dst[way]), chunk] = arrival
    assert len(since) == n * chunks
    assert have.max() == max(since.values())


@settings(max_examples=8)
@given(networks(max_ranks=5, max_switches=2), st.sampled_from(sorted(DIRECTIONS)))
def test_schedules_do_what_they_say(network, operation):
    graph = usable(network, network.endpoints.astype(np.int32), anywhere=False)
    found = send_greedily(operation, graph, 4096, 2, root=1, restarts=3)
    for in_order in (False, True):
        plan = found.plan(in_order=in_order)
        check(plan.schedule)
        plan.placement.routes.check(network, plan.placement.nodes)


@pytest.mark.parametrize(("dims", "far"), [((6,), 3), ((7,), 3), ((3, 3), 2)])
def test_few_bytes_take_as_long_as_news_to_the_farthest_rank(dims, far):
    """A ring way round takes p - 1 latencies; both ways at once, on the shortest, half of them."""
    network = grid("some", dims, (50.0,) * len(dims), wrap=True, latency=1e-6)
    graph = usable(network, network.endpoints.astype(np.int32), anywhere=False)
    for operation, times in (("all_gather", 1), ("reduce_scatter", 1), ("all_reduce", 2)):
        plan = send_greedily(operation, graph, 9.0, 1).plan(in_order=False)
        time = prepare(plan.schedule, network, placement=plan.placement).predict(9).time
        assert time == pytest.approx(times * far * 1e-6, rel=0.01)


@pytest.mark.jit
@pytest.mark.parametrize(("name", "operation"), [("h100_x2", "all_gather"), ("star8_half", "reduce_scatter")])
def test_larger_shares_for_what_starts_sooner_keep_the_times_that_were_found(name, operation):
    """Greedy sending gives a link to one message at a time; fair sharing lets later ones take from it."""
    network = load_network(str(FOLDER / f"{name}.toml"))
    graph = usable(network, network.endpoints.astype(np.int32), anywhere=False)
    found = send_greedily(operation, graph, 1e6, 2)
    plans = [found.plan(in_order=in_order) for in_order in (False, True)]
    shared, in_order = (prepare(p.schedule, network, placement=p.placement).predict(10**6).time for p in plans)
    assert shared > 1.1 * found.time
    assert in_order == pytest.approx(found.time, rel=0.03)
    assert MOST_RATIO <= MAX_RATIO  # so that packets can be asked too
