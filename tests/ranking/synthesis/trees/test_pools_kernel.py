"""Pools of link paths equal queues of tuples, and take some bytes for a part where those took a thousand."""

from collections import defaultdict, deque

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from commsim.ranking.synthesis.trees.max_flow_kernel import new_graph, widen
from commsim.ranking.synthesis.trees.optimum import optimum
from commsim.ranking.synthesis.trees.pools_kernel import NONE, Pools, append_link, join_pairs, n_parts_joined
from commsim.ranking.synthesis.trees.splitting import RankGraph, split_switches
from commsim.ranking.synthesis.trees.whole_rates import whole_network
from topologies.leaf_spine import leaf_spine

N = 4  # nodes of a small graph, of which the last is split off


def slow_take(pool, units):
    taken = []
    while units:
        have, path = pool.popleft()
        used = min(have, units)
        taken.append((used, path))
        if have > used:
            pool.appendleft((have - used, path))
        units -= used
    return taken


def slow_join(paths, switch, pairs):
    for u, t, units in pairs:
        before, after = slow_take(paths[u, switch], units), slow_take(paths[switch, t], units)
        while u != t and before and after:
            amount = min(before[-1][0], after[-1][0])
            (a, first), (b, second) = before.pop(), after.pop()
            if a > amount:
                before.append((a - amount, first))
            if b > amount:
                after.append((b - amount, second))
            paths[u, t].append((amount, first + second))


def empty_pools(n_arcs, room):
    return Pools(
        np.full(n_arcs, NONE, np.int32), np.zeros(n_arcs, np.int32), np.zeros(room, np.int64),
        np.zeros(room, np.int32), np.zeros(room, np.int32), np.zeros((room, 3), np.int32), np.array([0, 0, NONE]),
    )  # fmt: skip


@given(st.data())
def test_joined_and_taken_parts_are_those_of_queues(data):
    units = st.integers(1, 5)
    arcs, search = new_graph(N, 64)
    pools, paths = empty_pools(64, 400), defaultdict(deque)
    for link in range(data.draw(st.integers(4, 20))):
        near, far = data.draw(st.integers(0, N - 2)), data.draw(st.integers(0, N - 2))
        have = data.draw(units)
        a, b = (near, N - 1) if data.draw(st.booleans()) else (N - 1, near)
        if link % 4 == 3 and near != far:
            a, b = near, far
        widen(arcs, a, b, have)
        append_link(pools, int(arcs.between[a, b]), link, have)
        paths[a, b].append((have, (link,)))
    pairs = []
    left = {ends: sum(have for have, _ in pool) for ends, pool in paths.items()}
    for _ in range(data.draw(st.integers(0, 6))):
        u, t = data.draw(st.integers(0, N - 2)), data.draw(st.integers(0, N - 2))
        amount = min(left.get((u, N - 1), 0), left.get((N - 1, t), 0), data.draw(units))
        if amount:
            left[u, N - 1] -= amount
            left[N - 1, t] -= amount
            pairs.append((u, t, amount))
            widen(arcs, u, t, 0 if u == t else amount)
    rows = np.array(pairs, np.int64).reshape(-1, 3)
    assert n_parts_joined(pools, arcs.between, N - 1, rows) >= 2 * len(rows)
    join_pairs(pools, arcs.between, N - 1, rows)
    slow_join(paths, N - 1, pairs)
    graph = RankGraph(arcs, search, N - 1, np.ones(N - 1, np.int64), pools)
    ends = [(a, b) for a, b in paths if paths[a, b]]
    for _ in range(2):  # a share of all arcs at once, and then what is left of each
        share = min((sum(have for have, _ in paths[one]) for one in ends), default=0) // 2
        if share:
            taken = graph.take([a for a, _ in ends], [b for _, b in ends], share)
            assert taken == [slow_take(paths[one], share) for one in ends]
    for a, b in ends:
        whole = sum(have for have, _ in paths[a, b])
        if whole:
            assert graph.take([a], [b], whole) == [slow_take(paths[a, b], whole)]


def test_a_part_takes_some_bytes():
    network = leaf_spine(n_leaves=8, n_spines=4, hosts_per_leaf=8)
    whole = whole_network(network, network.endpoints.astype(np.int32))
    best = optimum(whole, np.ones(64, np.int64))
    pools = split_switches(best.room, best.roots, careful=False).pools
    n_pairs = 64 * 63
    assert pools.used[0] < 3 * n_pairs
    assert sum(table.nbytes for table in pools[2:]) < 150 * n_pairs  # a queue alone took 600 bytes
