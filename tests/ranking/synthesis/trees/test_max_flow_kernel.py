"""Maximum flows equal networkx's, end early where that is all that is asked, and leave a minimum cut."""

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.ranking.synthesis.trees.max_flow_kernel import (
    UNLIMITED,
    add_arc,
    drop_arcs,
    max_flow,
    new_graph,
    reaches_all,
    room_between,
    widen,
)

ARC = st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 9))


def graph_of(arcs, spare=4):
    graph, search = new_graph(7, 2 * (len(arcs) + spare))
    oracle = networkx.DiGraph()
    oracle.add_nodes_from(range(7))
    for a, b, room in arcs:
        if a != b:
            widen(graph, a, b, room)
            before = oracle.get_edge_data(a, b, {"capacity": 0})["capacity"]
            oracle.add_edge(a, b, capacity=before + room)
    return graph, search, oracle


@pytest.mark.nojit
@given(st.lists(ARC, max_size=30))
def test_flow_is_that_of_networkx_and_levels_are_a_minimum_cut(arcs):
    graph, search, oracle = graph_of(arcs)
    wanted = networkx.maximum_flow_value(oracle, 0, 6)
    assert max_flow(graph, search, 0, 6, UNLIMITED) == wanted
    side = search.level >= 0
    assert side[0]
    assert not side[6]
    assert sum(room for a, b, room in arcs if side[a] and not side[b]) == wanted


@given(st.lists(ARC, max_size=30), st.integers(0, 20))
def test_a_limit_ends_the_search_and_changes_nothing_else(arcs, limit):
    graph, search, oracle = graph_of(arcs)
    wanted = networkx.maximum_flow_value(oracle, 0, 6)
    assert max_flow(graph, search, 0, 6, limit) == min(limit, wanted)
    assert max_flow(graph, search, 0, 6, UNLIMITED) == wanted


@given(st.lists(ARC, max_size=20), ARC, ARC)
def test_what_is_added_for_a_question_is_dropped_after_it(arcs, one, other):
    graph, search, oracle = graph_of(arcs)
    before = max_flow(graph, search, 0, 6, UNLIMITED)
    count = int(graph.n_arcs[0])
    for a, b, room in (one, other):
        add_arc(graph, a, b, room)
        if a != b:
            known = oracle.get_edge_data(a, b, {"capacity": 0})["capacity"]
            oracle.add_edge(a, b, capacity=known + room)
    assert max_flow(graph, search, 0, 6, UNLIMITED) == networkx.maximum_flow_value(oracle, 0, 6)
    drop_arcs(graph, count)
    assert max_flow(graph, search, 0, 6, UNLIMITED) == before


def test_lasting_arcs_are_found_and_narrowed_again():
    graph, search, _ = graph_of([(0, 1, 3), (1, 6, 2)])
    widen(graph, 1, 6, 4)
    assert room_between(graph, 1, 6) == 6
    assert room_between(graph, 6, 1) == 0
    assert max_flow(graph, search, 0, 6, UNLIMITED) == 3
    widen(graph, 1, 6, -5)
    assert max_flow(graph, search, 0, 6, UNLIMITED) == 1


def test_the_first_rank_that_is_not_reached_is_named():
    graph, search, _ = graph_of([(6, 0, 2), (6, 1, 1), (0, 1, 1), (1, 2, 1)])
    assert reaches_all(graph, search, 6, 2, 2) == -1
    assert reaches_all(graph, search, 6, 3, 2) == 2
