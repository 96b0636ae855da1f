"""Which links the event engine has: no more than could limit a flow, and always one for each connection."""

import dataclasses

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from collectives import COLLECTIVES
from commsim.core.network import Network
from commsim.core.placement import place
from commsim.core.schedule import Schedule
from commsim.engine.flow_plan import Job
from commsim.engine.flow_tables import lay_out_flows
from commsim.routing.routing import Routes, find_routes
from topologies.fat_tree import fat_tree


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
        network, [Job(ring(), place(network, 16))], routes, nodes, np.zeros(len(src), np.intp)
    )
    rows = flow[["begin", "end"]][: len(src)].tolist()
    return routes, [set(flow_link["resource"][begin:end].tolist()) for begin, end in rows]


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
