import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.routing.network_metrics import measure
from topologies.torus import torus
from topologies.torus_slices import torus_slices
from topologies.twisted_torus import twisted_torus


@pytest.mark.parametrize("dims", [(4, 8), (4, 4, 8), (2, 4, 4), (8, 4)])
def test_twisting_keeps_the_degree_and_shortens_the_mean_distance(dims):
    network, plain = twisted_torus(dims), torus(dims)
    assert len(network.src) == len(plain.src) or min(dims) == 2
    degree = np.bincount(network.src, minlength=network.n_nodes)
    assert (degree == 2 * len(dims)).all()
    assert measure(network).diameter < measure(plain).diameter


def test_equal_sides_are_a_plain_torus():
    for dims in ((2, 2), (4, 4), (3,)):
        network, plain = twisted_torus(dims), torus(dims)
        assert sorted(zip(network.src, network.dst, strict=True)) == sorted(zip(plain.src, plain.dst, strict=True))


def test_a_short_wrap_leads_half_way_along_the_long_side():
    network = twisted_torus((4, 8))
    assert {int(to) for of, to in zip(network.src, network.dst, strict=True) if of == 3 * 8 + 1} == {16 + 1, 5, 24, 26}


def test_sides_other_than_k_and_2k_are_refused():
    with pytest.raises(InputError, match="twisted_torus needs dims of k and 2k, got 4x6"):
        twisted_torus((4, 6))


def test_slices_are_tori_whose_hosts_share_one_switch():
    network = torus_slices((4, 4), 3, chips_per_host=8, host_bandwidth=25e9)
    assert len(network.endpoints) == 48
    ports = [i for i, name in enumerate(network.nodes) if name.startswith("host")]
    assert len(ports) == 6
    up = np.isin(network.src, ports) & (network.dst == network.n_nodes - 1)
    assert up.sum() == 6
    assert set(network.bandwidth[up]) == {25e9}


def test_chips_that_do_not_divide_among_hosts_are_refused():
    with pytest.raises(InputError, match="chips_per_host must divide the 16 chips of a slice, got 5"):
        torus_slices((4, 4), 2, chips_per_host=5)
