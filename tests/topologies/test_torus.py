import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.prediction.inputs import load_network
from commsim.routing.bisection import bisection_bandwidth
from commsim.routing.network_metrics import measure
from topologies.hypercube import hypercube
from topologies.ring import ring
from topologies.torus import torus

shapes = st.lists(st.integers(1, 6), min_size=1, max_size=4).map(tuple).filter(lambda dims: math.prod(dims) <= 300)


def neighbours(dims, at, wrap):
    """Places one step away from `at`, by the definition."""
    for d, size in enumerate(dims):
        for step in (-1, 1):
            there = at[d] + step
            if wrap:
                there %= size
            if 0 <= there < size and there != at[d]:
                yield (*at[:d], there, *at[d + 1 :])


@pytest.mark.slow
@given(dims=shapes, wrap=st.booleans())
def test_every_host_has_one_cable_to_each_neighbour_in_the_grid(dims, wrap):
    network = torus(dims, wrap)
    places = [tuple(at) for at in network.coordinates.tolist()]
    assert places == list(itertools.product(*map(range, dims)))
    assert network.forwards.all()
    cables = sorted((places[a], places[b]) for a, b in zip(network.src, network.dst, strict=True))
    assert cables == sorted({(at, there) for at in places for there in neighbours(dims, at, wrap)})


@given(dims=shapes, wrap=st.booleans())
def test_the_diameter_is_that_of_the_textbook(dims, wrap):
    assert measure(torus(dims, wrap)).diameter == sum(size // 2 if wrap else size - 1 for size in dims)


@settings(max_examples=settings().max_examples * 2 // 3)
@given(half=st.integers(1, 3), others=st.lists(st.integers(1, 4), max_size=2), wrap=st.booleans())
def test_an_even_longest_dimension_is_cut_across_for_the_bisection(half, others, wrap):
    pytest.importorskip("scipy")
    longest = 2 * max(half, -(-max(others, default=1) // 2))
    network = torus((longest, *others), wrap, bandwidth=1e9)
    cables = math.prod(others) * (2 if wrap and longest > 2 else 1)
    assert bisection_bandwidth(network) == cables * 1e9


def test_one_dimension_is_a_ring_and_dimensions_of_two_make_a_hypercube():
    assert set(zip(torus((7,)).src, torus((7,)).dst, strict=True)) == set(zip(ring(7).src, ring(7).dst, strict=True))
    cube, grid = hypercube(3), torus((2, 2, 2))
    assert set(zip(cube.src, cube.dst, strict=True)) == set(zip(grid.src, grid.dst, strict=True))


def test_the_command_line_reads_dimensions_and_the_wrap():
    assert load_network("torus:dims=4x2x3,wrap=false") == torus((4, 2, 3), False)


def test_many_dimensions_of_one_are_no_obstacle():
    network = torus((1,) * 70 + (3,))
    assert (network.n_nodes, network.n_links) == (3, 6)


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ((), "torus needs dimensions of at least 1, got dimensions=0"),
        ((4, 0), "torus needs dimension 1 of at least 1, got dimension 1=0"),
        ((-2, -2), "torus needs dimension 0 of at least 1, got dimension 0=-2"),
        (4, r"torus: dims must be whole numbers such as \(4, 4, 4\), got 4"),
        ((2.0, 2), r"torus: dims must be whole numbers such as \(4, 4, 4\), got \(2.0, 2\)"),
        ((2**21, 2**21), "torus would have 4398046511104 nodes"),
    ],
)
def test_wrong_dimensions_are_refused(dims, message):
    with pytest.raises(InputError, match=message):
        torus(dims)


def test_latency_and_bandwidth_are_those_of_every_link():
    network = torus((3, 3), bandwidth=2e9, latency=1e-6)
    assert np.unique(network.bandwidth).tolist() == [2e9]
    assert np.unique(network.latency).tolist() == [1e-6]
