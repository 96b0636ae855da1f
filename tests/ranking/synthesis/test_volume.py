"""Distances beside the linear program, whose dual they are, and beside cuts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.core.network import HOST, SWITCH, Network, both_ways
from commsim.prediction.bounds.cuts import partition_cuts
from commsim.prediction.bounds.demand import demand_of, usable
from commsim.ranking.synthesis import lower_bound
from commsim.ranking.synthesis.min_cut import min_cuts
from commsim.ranking.synthesis.program_bounds import program_bound
from commsim.ranking.synthesis.volume import volume_bounds
from topologies.jellyfish import jellyfish
from topologies.ring import ring
from topologies.star import star
from topologies.torus import torus

pytest.importorskip("scipy")


def largest(network, operation="all_to_all", anywhere=False, **of):
    graph = usable(network, network.endpoints.astype(np.int32), anywhere)
    demand = demand_of(operation, len(network.endpoints), **of)
    return max((cut.per_byte for cut in volume_bounds(graph, demand)), default=0.0)


def program(network, operation="all_to_all", **of):
    graph = usable(network, network.endpoints.astype(np.int32), anywhere=False)
    return program_bound(graph, demand_of(operation, len(network.endpoints), **of)).per_byte


@pytest.mark.parametrize("network", [ring(5, 2.0), ring(6), torus((3, 3), bandwidth=1e9), star(7)])
def test_where_links_are_alike_it_is_the_program_s(network):
    assert largest(network) == pytest.approx(program(network), rel=1e-5)


@given(seed=st.integers(0, 2**32 - 1), operation=st.sampled_from(("all_to_all", "scatter", "gather", "send_recv")))
def test_it_is_never_above_the_program(seed, operation):
    rng = np.random.default_rng(seed)
    n_hosts, n_switches = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    ends = [(h, n_hosts + int(rng.integers(n_switches))) for h in range(n_hosts)]
    ends += [(n_hosts + s, n_hosts + s - 1) for s in range(1, n_switches)] + [(0, 1)] * int(rng.integers(3))
    src, dst = both_ways(*np.array(ends).T)
    kind = [HOST] * n_hosts + [SWITCH] * n_switches
    network = Network("x", [f"n{i}" for i in range(len(kind))], kind, src, dst, rng.integers(1, 9, len(src)), 0.0)
    root = {} if operation in ("all_to_all", "send_recv") else {"root": n_hosts - 1}
    assert largest(network, operation, **root) <= program(network, operation, **root) * (1 + 1e-5)


def test_a_torus_too_large_for_programs_is_bounded_by_its_distances():
    """Ranks of a ring of 24 are 6 links apart on average, of one of 4 a link; each rank has 4 links that leave it."""
    network = torus((24, 4), bandwidth=1.0, latency=0.0)
    assert largest(network) == pytest.approx((6 + 1) / 4)
    found = lower_bound("all_to_all", network)
    assert found.time(1.0) == pytest.approx(3.0)  # halves of the longer side say more: 48 * 48 / 96 over 2 * 4 links
    assert "no linear program" in found.notes[0].text
    assert found.notes[0].code == "bound-loose"


def test_in_a_random_graph_distances_say_more_than_cuts():
    network = jellyfish(32, 4, 4, latency=0.0)
    graph = usable(network, network.endpoints.astype(np.int32), anywhere=False)
    demand = demand_of("all_to_all", len(network.endpoints))
    cuts = max(cut.per_byte for cut in [*partition_cuts(graph, demand), *min_cuts(graph, demand)])
    assert largest(network) > 1.2 * cuts
    assert "all 384 links together (bytes times" in lower_bound("all_to_all", network).why(1e9)


def test_operations_whose_data_may_be_copied_have_none():
    assert largest(star(4), "all_reduce") == largest(star(4), "broadcast") == largest(star(4), "barrier") == 0.0


def test_ranks_apart_are_refused():
    apart = Network("x", ("a", "b", "c"), [HOST] * 3, [0, 1], [1, 0], 1.0, 0.0)
    with pytest.raises(InputError, match="x: a rank cannot reach"):
        largest(apart)
