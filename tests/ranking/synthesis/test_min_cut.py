"""Minimum cuts and linear programs beside trying every cut, on networks small enough for that."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.network import HOST, SWITCH, Network, both_ways
from commsim.prediction.bounds.demand import demand_of, usable
from commsim.ranking.synthesis.min_cut import min_cuts
from commsim.ranking.synthesis.program_bounds import n_variables, program_bound
from topologies.leaf_spine import leaf_spine
from topologies.ring import ring
from topologies.star import star

pytest.importorskip("scipy")
EXACT = ("broadcast", "reduce", "all_gather", "reduce_scatter", "all_gather_v")


def small_network(seed):
    rng = np.random.default_rng(seed)
    n_hosts, n_switches = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    ends = [(h, n_hosts + int(rng.integers(n_switches))) for h in range(n_hosts)]
    ends += [(n_hosts + s, n_hosts + s - 1) for s in range(1, n_switches)]
    ends += [(0, 1)] * int(rng.integers(2))
    src, dst = both_ways(*np.array(ends).T)
    kind = [HOST] * n_hosts + [SWITCH] * n_switches
    return Network("x", [f"n{i}" for i in range(len(kind))], kind, src, dst, rng.integers(1, 9, len(src)), 0.0)


def demanded(operation, p):
    return demand_of(operation, p, root=p - 1 if operation in ("broadcast", "reduce") else 0,
                     layout=tuple(range(1, p + 1)) if operation.endswith("_v") else ())  # fmt: skip


def every_cut(graph, demand):
    """The worst of all cuts, by trying them."""
    worst = 0.0
    for bits in itertools.product([False, True], repeat=graph.n_nodes):
        side = np.array(bits)
        inside = side[graph.ranks]
        if inside.any() and not inside.all():
            leaving, _ = demand.crossing(np.where(inside, 0, -1), 1)
            capacity = graph.bandwidth[side[graph.src] & ~side[graph.dst]].sum()
            worst = max(worst, leaving[0] / capacity)
    return worst


@given(seed=st.integers(0, 2**32 - 1), operation=st.sampled_from(EXACT), anywhere=st.booleans())
def test_newton_s_method_finds_the_worst_of_all_cuts(seed, operation, anywhere):
    network = small_network(seed)
    graph = usable(network, network.endpoints.astype(np.int32), anywhere)
    demand = demanded(operation, len(network.endpoints))
    found = max(cut.per_byte for cut in min_cuts(graph, demand))
    assert found == pytest.approx(every_cut(graph, demand), rel=1e-5)


@given(seed=st.integers(0, 2**32 - 1), operation=st.sampled_from((*EXACT, "all_reduce", "all_to_all", "scatter")))
def test_a_program_knows_at_least_what_every_cut_knows(seed, operation):
    network = small_network(seed)
    graph = usable(network, network.endpoints.astype(np.int32), anywhere=False)
    demand = demanded(operation, len(network.endpoints))
    assert program_bound(graph, demand).per_byte >= every_cut(graph, demand) * (1 - 1e-5)


@pytest.mark.parametrize("p", [2, 3, 5])
def test_on_a_star_the_programs_are_those_of_the_ports(p):
    network = star(p, 2.0)
    graph = usable(network, network.endpoints.astype(np.int32), anywhere=False)
    for operation, wanted in {"all_reduce": 2 * (p - 1) / p, "all_gather": (p - 1) / p, "broadcast": 1.0}.items():
        assert program_bound(graph, demand_of(operation, p)).per_byte == pytest.approx(wanted / 2, rel=1e-5)


def test_switches_that_only_forward_make_trees_slower_than_cuts_say():
    """One port sends twice what the other takes: counting says 2/3 of a second, every cut half of one."""
    src, dst = both_ways([0, 1, 2], [3, 3, 3])
    network = Network("x", tuple("abcs"), [HOST] * 3 + [SWITCH], src, dst, [1.0, 1.0, 1.0, 2.0, 2.0, 2.0], 0.0)
    graph = usable(network, network.endpoints.astype(np.int32), anywhere=False)
    demand = demand_of("broadcast", 3)
    assert max(cut.per_byte for cut in min_cuts(graph, demand)) == pytest.approx(1.0)
    assert program_bound(graph, demand).per_byte == pytest.approx(1.0, rel=1e-5)
    gather = demand_of("all_gather", 3)
    assert max(cut.per_byte for cut in min_cuts(graph, gather)) == pytest.approx(1 / 3, rel=1e-5)
    assert program_bound(graph, gather).per_byte == pytest.approx(2 / 3, rel=1e-5)


def test_halves_of_ranks_are_separated_for_messages_between_pairs():
    network = leaf_spine(2, 1, 4, 1.0, oversubscription=4.0)
    graph = usable(network, network.endpoints.astype(np.int32), anywhere=False)
    found = max(min_cuts(graph, demand_of("all_to_all", 8)), key=lambda cut: cut.per_byte)
    assert found.per_byte == pytest.approx(4 * 4 / 8 / 1.0)
    assert found.why == "the capacity out of h0, h1, h2 and 1 others (minimum cut)"


def test_all_to_all_on_a_ring_takes_the_shorter_ways():
    network = ring(5, 1.0)
    graph = usable(network, network.endpoints.astype(np.int32), anywhere=False)
    hops = 2 * (1 + 2)
    assert program_bound(graph, demand_of("all_to_all", 5)).per_byte == pytest.approx(hops / 5 / 2, rel=1e-5)


def test_ranks_may_send_on_what_others_sent_them():
    """GPU 1 has the only link out; what GPU 0 sends goes through it, though it does not forward."""
    src, dst = both_ways([0, 1], [1, 2])
    network = Network("x", tuple("abc"), [HOST] * 3, src, dst, 1.0, 0.0)
    graph = usable(network, network.endpoints.astype(np.int32), anywhere=False)
    assert program_bound(graph, demand_of("all_to_all", 3)).per_byte == pytest.approx(2 / 3, rel=1e-5)


def test_programs_are_left_out_where_they_say_nothing_more():
    network = star(4)
    nodes = network.endpoints.astype(np.int32)
    assert n_variables(usable(network, nodes, anywhere=True), demand_of("broadcast", 4)) == 0
    assert n_variables(usable(network, nodes, anywhere=False), demand_of("barrier", 4)) == 0
    assert program_bound(usable(network, nodes, anywhere=True), demand_of("broadcast", 4)) is None
