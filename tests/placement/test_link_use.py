"""Rings over hosts, and the links that they pass."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.core.network import NIC
from commsim.core.placement import Placement
from commsim.placement.cluster import Cluster, read_cluster
from commsim.placement.evaluation import evaluate
from commsim.placement.link_use import MOST_KEPT, KeptPaths, link_uses, ring_edges
from commsim.prediction.build import prepare
from commsim.training.sharing.periodic import JobPhase, PeriodicJob
from commsim.training.sharing.shared_links import simulate_jobs
from topologies.leaf_spine import leaf_spine

NETWORK = leaf_spine(2, 2, 2)
CLUSTER = Cluster(NETWORK, np.where(NETWORK.kind == 0, 4, 0))
HOSTS = st.sampled_from(NETWORK.nodes[:4])


def link_use(cluster: Cluster, placement: tuple[str, ...], seed: int = 0) -> np.ndarray:
    return link_uses(cluster, [placement], seed)[0]


def used(use: np.ndarray) -> dict[str, float]:
    return {NETWORK.link_name(int(i)): float(use[i]) for i in np.flatnonzero(use)}


@pytest.mark.parametrize(
    ("placement", "edges"),
    [
        ("", []),
        ("aaaa", []),
        ("aabb", ["ab", "ba"]),
        ("abc", ["ab", "bc", "ca"]),
        ("aabbaa", ["ab", "ba"]),
        ("abac", ["ab", "ba", "ac", "ca"]),
    ],
)
def test_consecutive_ranks_of_one_host_are_one_stop_of_the_ring(placement: str, edges: list[str]) -> None:
    assert ring_edges(tuple(placement)) == [tuple(edge) for edge in edges]


@given(st.lists(HOSTS, max_size=12))
def test_every_stop_sends_once_and_receives_once(placement: list[str]) -> None:
    edges = ring_edges(placement)
    assert sorted(a for a, _ in edges) == sorted(b for _, b in edges)
    assert all(a != b for a, b in edges)
    assert {a for a, _ in edges} == (set(placement) if len(set(placement)) > 1 else set())


def test_in_a_rack_a_ring_uses_the_hosts_own_links_once() -> None:
    assert used(link_use(CLUSTER, ("h0", "h0", "h1"))) == dict.fromkeys(
        ("h0:leaf0", "h1:leaf0", "leaf0:h0", "leaf0:h1"), 1.0
    )


def test_a_ring_that_jumps_between_racks_uses_the_uplinks_as_often_as_it_crosses() -> None:
    up = np.isin(NETWORK.src, [4, 5]) & np.isin(NETWORK.dst, [6, 7])
    assert link_use(CLUSTER, ("h0", "h1", "h2", "h3"))[up].sum() == 2
    assert link_use(CLUSTER, ("h0", "h2", "h1", "h3"))[up].sum() == 4


def test_spraying_spreads_the_rate_over_the_spines() -> None:
    sprayed = Cluster(dataclasses.replace(NETWORK, routing="spray"), CLUSTER.gpus)
    found = used(link_use(sprayed, ("h0", "h2")))
    assert found["leaf0:spine0"] == found["leaf0:spine1"] == 0.5
    assert found["h0:leaf0"] == 1.0


@given(st.lists(st.lists(HOSTS, max_size=8), min_size=1, max_size=4), st.integers(0, 5))
def test_many_placements_together_use_what_each_uses_alone(placements: list[list[str]], seed: int) -> None:
    together = link_uses(CLUSTER, placements, seed)
    assert all(np.array_equal(row, link_use(CLUSTER, one, seed)) for row, one in zip(together, placements, strict=True))


@pytest.mark.parametrize("routing", ["ecmp", "spray"])
@pytest.mark.parametrize("most", [0, MOST_KEPT])
def test_paths_that_are_kept_are_those_that_are_sought(
    routing: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("commsim.placement.link_use.MOST_KEPT", most)
    cluster, kept = Cluster(dataclasses.replace(NETWORK, routing=routing), CLUSTER.gpus), KeptPaths()
    for placements in ([("h0", "h2"), ("h1",)], [("h0", "h3", "h1")], [("h0", "h2", "h3"), ("h3", "h0")]):
        np.testing.assert_array_equal(link_uses(cluster, placements, 3, kept), link_uses(cluster, placements, 3))


def test_a_node_that_does_not_exist_is_named() -> None:
    with pytest.raises(InputError, match="placed on 'h7', which is not a node of"):
        link_use(CLUSTER, ("h0", "h7"))


def machines(spec: str, routing: str = "ecmp") -> Cluster:
    cluster = read_cluster({"topology": {"spec": spec}, "hosts": {}})
    return dataclasses.replace(cluster, network=dataclasses.replace(cluster.network, routing=routing))


def of_rings(cluster: Cluster, placement: tuple[str, ...]) -> np.ndarray:
    """Bytes by link of an all-reduce by rings, as parts of what the busiest NIC sends."""
    network = cluster.network
    nodes = Placement(np.array([network.nodes.index(name) for name in placement], np.int32))
    sent = prepare("multi_ring_all_reduce", network, placement=nodes).predict(2**30).link_bytes
    return sent / sent[leaving_machines(network)].max()


def leaving_machines(network) -> np.ndarray:
    return (network.machine[network.src] >= 0) & (network.machine[network.src] != network.machine[network.dst])


@pytest.mark.parametrize("counts", [(8, 8), (4, 4), (2, 2), (8, 8, 8, 8), (5, 5)])
@pytest.mark.parametrize(
    "spec", ["dgx-h100@leaf_spine:n_leaves=4,n_spines=2,machines=4", "rail_optimized:n_hosts=4,hosts_per_group=2"]
)
def test_rings_between_machines_leave_by_each_nic_of_a_job(spec: str, counts: tuple[int, ...]) -> None:
    cluster = machines(spec)
    placement = tuple(f"m{m}.gpu{g}" for m, n in enumerate(counts) for g in range(n))
    out = leaving_machines(cluster.network)
    assert (cluster.network.kind[cluster.network.src[out]] == NIC).all()
    use = link_use(cluster, placement)
    assert use[out].sum() == min(counts) * len(counts)
    np.testing.assert_allclose(use[out], of_rings(cluster, placement)[out], atol=1e-6)


@pytest.mark.parametrize("oversubscription", [1, 2, 4, 8])
def test_a_job_of_eight_nics_loses_what_its_rings_do_on_thin_uplinks(oversubscription: int) -> None:
    cluster = machines(
        f"dgx-h100@leaf_spine:n_leaves=2,n_spines=2,machines=4,oversubscription={oversubscription}", "spray"
    )
    placement = tuple(f"m{m}.gpu{g}" for m in (0, 2) for g in range(8))
    job = PeriodicJob("one", 16, 0.2, (JobPhase(0.1, 0.1, 40e9),), placement)
    run = simulate_jobs(cluster.network, [job], [of_rings(cluster, placement)], iterations=4)
    assert evaluate(cluster, [job]).predicted["one"] == pytest.approx(run.iteration_times[0].mean(), rel=1e-3)
