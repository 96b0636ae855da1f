"""Every topology that can have 65,536 hosts is built in at most 1 s and 500 MB, and its routes are found when asked."""

import tracemalloc

import numpy as np
import pytest

from commsim.prediction.inputs import load_network
from commsim.routing.routing import find_routes

LARGE = [
    "bcube:n=16,k=3",
    "dragonfly:p=8,a=16,h=32,n_groups=512",
    "dual_tor:n_racks=1024,n_spines=64,hosts_per_rack=64",
    "fat_tree:k=64",
    "hypercube:dimension=16",
    "jellyfish:n_switches=2048,degree=32,hosts_per_switch=32",
    "leaf_spine:n_leaves=1024,n_spines=64,hosts_per_leaf=64",
    "multi_plane:n_planes=4,n_leaves=1024,n_spines=64,hosts_per_leaf=64",
    "ring:n_hosts=65536",
    "star:n_hosts=65536",
    "torus:dims=32x32x64",
]


@pytest.mark.sample(4)
@pytest.mark.slow
@pytest.mark.parametrize("spec", LARGE)
def test_65536_hosts_are_built_in_half_a_gigabyte(spec):
    tracemalloc.start()
    try:
        assert len(load_network(spec).hosts) == 65536
        assert tracemalloc.get_traced_memory()[1] <= 500e6
    finally:
        tracemalloc.stop()


@pytest.mark.sample(3)
@pytest.mark.slow
@pytest.mark.parametrize("spec", LARGE)
def test_the_routes_of_a_ring_of_65536_hosts_are_found(spec):
    network, host = load_network(spec), np.arange(65536)
    routes = find_routes(network, host, np.roll(host, -1))
    assert (network.src[routes.link[routes.first[:-1]]] == host).all()
    assert (network.dst[routes.link[routes.first[1:] - 1]] == np.roll(host, -1)).all()
