import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.routing.bisection import bisection_bandwidth
from commsim.routing.network_metrics import measure
from topologies.hypercube import hypercube


@settings(max_examples=9)
@given(dimension=st.integers(1, 9))
def test_cables_join_the_numbers_that_differ_in_one_bit(dimension):
    network = hypercube(dimension)
    assert network.n_nodes == 2**dimension
    assert network.n_links == dimension * 2**dimension
    assert {(a ^ b).bit_count() for a, b in zip(network.src.tolist(), network.dst.tolist(), strict=True)} == {1}
    assert len(set(zip(network.src.tolist(), network.dst.tolist(), strict=True))) == network.n_links
    assert np.bincount(network.src).tolist() == [dimension] * 2**dimension
    assert measure(network).diameter == dimension


@settings(max_examples=7)
@given(dimension=st.integers(1, 7))
def test_half_of_the_hosts_have_a_cable_each_to_the_other_half(dimension):
    pytest.importorskip("scipy")
    assert bisection_bandwidth(hypercube(dimension, bandwidth=1e9)) == 2 ** (dimension - 1) * 1e9


def test_coordinates_are_the_bits_the_lowest_first():
    assert hypercube(3).coordinates[6].tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("dimension", "message"),
    [
        (0, "hypercube needs dimension of at least 1, got dimension=0"),
        (23, r"hypercube would have at least 2\^23 nodes; at most 4194304 are built"),
        (22, "hypercube would have 4194304 nodes and 92274688 links"),
    ],
)
def test_a_wrong_dimension_is_refused(dimension, message):
    with pytest.raises(InputError, match=message):
        hypercube(dimension)
