"""Which links the event engine has: no more than could limit a flow, and always one for each connection."""

import dataclasses
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from collectives import COLLECTIVES
from commsim.core.network import Network
from commsim.core.placement import place
from commsim.core.schedule import Schedule
from commsim.engine import flow_times
from commsim.engine.flow import play, simulate_plan
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import plan_flows
from commsim.engine.flow_tables import lay_out_flows
from commsim.engine.flow_times import link_bytes
from commsim.routing.routing import Routes, find_routes
from topologies.fat_tree import fat_tree
from topologies.torus import torus


def rated(rates: NDArray[np.float64], **costs: float) -> Network:
    network = fat_tree(4)
    arrays = {name: np.full(network.n_nodes, cost) for name, cost in costs.items()}
    return dataclasses.replace(network, bandwidth=rates, **arrays)


def ring() -> Schedule:
    return COLLECTIVES["ring_all_reduce"].build(16)


def kept_links(network: Network, src: NDArray[np.int64], dst: NDArray[np.int64]) -> tuple[Routes, list[set[int]]]:
    """Routes between nodes, and the links that each has flow links for while it sends."""
    routes = find_routes(network, src, dst, routing="ecmp")
    nodes = np.stack((src, dst), axis=1).astype(np.int32)
    flow, flow_link, _ = lay_out_flows(
        network, [FlowJob(ring(), place(network, 16))], routes, nodes, np.zeros(len(src), np.intp)
    )
    rows = flow[["begin", "end"]][: len(src)].tolist()
    return routes, [set(flow_link.resource[begin:end].tolist()) for begin, end in rows]


@given(seed=st.integers(0, 2**32), n=st.integers(1, 24))
def test_whoever_keeps_to_the_links_that_are_kept_overloads_no_other(seed: int, n: int) -> None:
    random = np.random.default_rng(seed)
    network = rated(random.integers(1, 5, fat_tree(4).n_links).astype(np.float64))
    src = random.integers(0, 16, n)
    routes, kept = kept_links(network, src, (src + random.integers(1, 16, n)) % 16)
    all_links = [set(routes.link[a:b].tolist()) for a, b in zip(routes.first[:-1], routes.first[1:], strict=True)]
    fastest = np.array([min(network.bandwidth[list(mine)]) for mine in kept])  # nobody is without a link
    assert (fastest == [min(network.bandwidth[list(links)]) for links in all_links]).all()
    for link in set().union(*all_links) - set().union(*kept):
        assert sum(fastest[w] for w in range(n) if link in all_links[w]) <= network.bandwidth[link] * (1 + 1e-9)


def test_who_is_alone_everywhere_needs_one_link() -> None:
    network = rated(np.ones(fat_tree(4).n_links))
    _, kept = kept_links(network, np.array([0]), np.array([15]))
    assert [len(links) for links in kept] == [1]


def test_ports_stay_where_messages_have_overheads() -> None:
    network = rated(np.ones(fat_tree(4).n_links), overhead=1e-6, recv_overhead=1e-6)
    routes, kept = kept_links(network, np.array([0]), np.array([15]))
    assert kept == [{int(routes.link[0]), int(routes.link[-1])}]


@pytest.mark.parametrize("seed", range(8))
def test_tables_are_those_of_all_hops_looked_at_together(seed: int) -> None:
    random = np.random.default_rng(seed)
    costs = {"overhead": 1e-6 * (seed % 2), "recv_overhead": 1e-6 * (seed // 2 % 2)}
    network = rated(random.integers(1, 4, fat_tree(4).n_links) / 3, **costs)
    src, dst, job_of = random.integers(0, 16, 60), random.integers(0, 16, 60), random.integers(0, 2, 60)
    jobs = [FlowJob(ring(), place(network, 16), rate_cap=cap) for cap in (np.inf, 0.5)]
    routing = "spray" if seed < 4 else "ecmp"
    routes, nodes = find_routes(network, src, dst, routing=routing), np.stack((src, dst), axis=1).astype(np.int32)
    flow, flow_link, _ = lay_out_flows(network, jobs, routes, nodes, job_of)
    of, link = np.repeat(np.arange(60), np.diff(routes.first)), routes.link
    kept = limiting(network, routes, nodes)[link]
    ends = kept & (network.dst[link] == dst[of])
    shares = flow_link.shares
    for c in range(60):
        own, last = kept & (of == c), ends & (of == c)
        capped = job_of[c] == 1 and src[c] != dst[c]
        sends, receives = (slice(*flow[["begin", "end"]][s].tolist()) for s in (c, 60 + c))
        np.testing.assert_array_equal(flow_link.resource[sends][: own.sum()], link[own])
        np.testing.assert_array_equal(shares[sends][: own.sum()], routes.share[own])
        assert sends.stop - sends.start == own.sum() + capped
        np.testing.assert_array_equal(flow_link.resource[receives], [*link[last], network.n_links + dst[c]])
        np.testing.assert_array_equal(shares[receives][:-1], routes.share[last])
        assert flow["port"][c] - flow["begin"][c] == (own & (network.src[link] == src[c])).sum()
    assert len(flow_link.share) == (len(flow_link) if routing == "spray" else 0)
    assert len(flow_link) == flow["end"][-1]


def limiting(network: Network, routes: Routes, nodes: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Find the links that may limit a flow, from arrays of all hops."""
    of, link = np.repeat(np.arange(len(nodes)), np.diff(routes.first)), routes.link
    fastest, most = routes.rates(network), np.zeros(network.n_links)
    np.add.at(most, link, fastest[of] * routes.share)
    limits: NDArray[np.bool_] = most > network.bandwidth * (1 + 1e-12)
    for end, at, cost in ((0, network.src, network.overhead), (1, network.dst, network.recv_overhead)):
        host = nodes[of, end]
        limits[link[(at[link] == host) & (cost[host] > 0)]] = True
    slowest = network.bandwidth[link] / routes.share == fastest[of]
    is_held = np.zeros(len(nodes), np.bool_)
    is_held[of[slowest & limits[link]]] = True
    rest = np.flatnonzero(slowest & ~is_held[of])
    limits[link[rest[np.unique(of[rest], return_index=True)[1]]]] = True
    return limits


def test_long_routes_take_little_more_than_their_tables() -> None:
    network, n = torus((2, 600)), 1200
    src, dst = np.zeros(n - 1, int), np.arange(1, n)
    routes, nodes = find_routes(network, src, dst), np.stack((src, dst), axis=1).astype(np.int32)
    job = FlowJob(COLLECTIVES["ring_all_reduce"].build(n), place(network, n))
    tracemalloc.start()
    flow, flow_link, _ = lay_out_flows(network, [job], routes, nodes, np.zeros(n - 1, np.intp))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # beside the tables: rows of connections, nodes and links
    assert peak < 4 * len(flow_link) + flow.nbytes + 4 * len(routes.link) + 400 * network.n_links
    assert len(flow_link) > 100 * n


def test_runs_share_the_flow_links_and_change_none() -> None:
    plan = plan_flows(torus((2, 8)), [FlowJob(COLLECTIVES["direct_all_to_all"].build(16), place(torus((2, 8)), 16))])
    before = plan.flow_link.resource.copy()
    runs = [play(plan, 1e6) for _ in range(2)]
    assert all(run.state.resource_of is plan.flow_link.resource for run in runs)
    np.testing.assert_array_equal(plan.flow_link.resource, before)
    np.testing.assert_array_equal(runs[0].times.done, runs[1].times.done)


def test_bytes_of_links_are_summed_in_pieces_in_the_order_of_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_flows(torus((2, 8)), [FlowJob(COLLECTIVES["direct_all_to_all"].build(16), place(torus((2, 8)), 16))])
    n_bytes = np.random.default_rng(1).random(len(plan.connection_of))
    times = simulate_plan(plan, n_bytes)
    weights = np.repeat(np.bincount(plan.connection_of, n_bytes), np.diff(plan.routes.first)) * plan.routes.share
    expected = np.bincount(plan.routes.link, weights, plan.network.n_links)
    for piece in (1, 7, 2**20):
        monkeypatch.setattr(flow_times, "PIECE", piece)
        np.testing.assert_array_equal(link_bytes(plan, times), expected)


def test_a_flow_link_takes_24_bytes_and_a_link_of_a_route_four() -> None:
    """They took 44 and 12: `bound` on a 3x3000 torus 750 MB."""
    network, n = torus((2, 600)), 1200
    dst = np.arange(1, n)
    find_routes(network, 0 * dst, dst)  # compiles
    tracemalloc.start()
    routes = find_routes(network, 0 * dst, dst)
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held < 4 * len(routes.link) + 100 * network.n_links
    assert len(routes.link) > 100 * n
    plan = plan_flows(network, [FlowJob(COLLECTIVES["chain_broadcast"].build(n), place(network, n))])
    state = play(plan, 1e6).state
    of_links = (state.resource_of, state.share, state.user, state.place)
    assert sum(column.nbytes for column in of_links) == 24 * len(plan.flow_link)
