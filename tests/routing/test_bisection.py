"""The bisection bandwidth where halves by order and by chance are far from the worst."""

import sys

import numpy as np
import pytest

from commsim.core.network import HOST, SWITCH, Network, both_ways
from commsim.prediction.inputs import load_network
from commsim.routing import bisection
from commsim.routing.bisection import bisection_bandwidth

RATE = 12.5e9


def slim_fly(hosts_per_switch=4):
    """Return the Slim Fly of q = 5, a Hoffman-Singleton graph of switches: five pentagons and five pentagrams."""
    index = [(i, j, k) for i in range(5) for j in range(5) for k in range(5)]
    pairs = {(5 * i + j, 25 + 5 * k + (i * k + j) % 5) for i, j, k in index}
    for first, steps in ((0, (1, 4)), (25, (2, 3))):
        rings = [(first + 5 * i + j, first + 5 * i + (j + step) % 5) for i, j, k in index if k == 0 for step in steps]
        pairs |= {(min(pair), max(pair)) for pair in rings}
    a, b = np.array(sorted(pairs)).T
    n = 50 * hosts_per_switch
    src, dst = both_ways(np.r_[np.arange(n), a + n], np.r_[n + np.arange(n) // hosts_per_switch, b + n])
    return Network("slim fly", tuple(f"n{i}" for i in range(n + 50)), [HOST] * n + [SWITCH] * 50, src, dst, RATE, 1e-6)


CASES = {
    "slim fly": (slim_fly(), 65),
    "jellyfish": (load_network("jellyfish:n_switches=50,degree=7,hosts_per_switch=4"), 43),
    "dragonfly": (load_network("dragonfly:p=2,a=4,h=2"), 20),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_at_most_a_known_cut_and_at_least_the_bound_of_the_spectrum(name):
    """Of halves of a graph, the second eigenvalue of its Laplacian times the nodes over 4 edges are cut (Fiedler)."""
    network, cables = CASES[name]
    found = bisection_bandwidth(network)
    assert found <= cables * RATE * (1 + 1e-9)
    between = (network.kind[network.src] == SWITCH) & (network.kind[network.dst] == SWITCH)
    first = int(np.flatnonzero(network.kind == SWITCH)[0])
    n = network.n_nodes - first
    laplacian = np.zeros((n, n))
    np.add.at(laplacian, (network.src[between] - first, network.dst[between] - first), -network.bandwidth[between])
    np.fill_diagonal(laplacian, -laplacian.sum(axis=1))
    assert found >= np.linalg.eigvalsh(laplacian)[1] * n / 4 * (1 - 1e-9)


def test_it_is_never_above_that_of_halves_by_order_and_chance(monkeypatch):
    specs = ("torus:dims=4x4x2", "leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=3", "bcube:n=3,k=1", "star:n_hosts=5",
             "jellyfish:n_switches=9,degree=4,hosts_per_switch=3", "dgx-h100@star:machines=2")  # fmt: skip
    found = [bisection_bandwidth(load_network(spec)) for spec in specs]
    monkeypatch.setattr(bisection, "_partitioned", lambda *_: [])
    plain = [bisection_bandwidth(load_network(spec)) for spec in specs]
    assert all(one <= other for one, other in zip(found, plain, strict=True))
    assert found[4] < plain[4]


def test_without_networkx_the_other_halves_are_left(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    assert bisection_bandwidth(load_network("dragonfly:p=2,a=4,h=2")) == pytest.approx(24 * RATE)
