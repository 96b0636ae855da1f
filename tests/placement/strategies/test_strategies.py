"""Candidates: every job gets its GPUs, none is given twice, and each strategy does what its scheduler does."""

import dataclasses
import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.core.names.nodes_and_links import find_link
from commsim.core.network import HOST, Network, both_ways
from commsim.core.network_queries import locality_levels
from commsim.core.placement import STRATEGIES, place
from commsim.core.spec import OwnFile
from commsim.placement.cluster import Cluster, read_cluster
from commsim.placement.strategies import Drawing, gpu_groups
from commsim.placement.strategies.fabric_groups import nearness, poor_groups
from commsim.placement.strategies.free_gpus import FreeGpus
from commsim.training.sharing.periodic import JobPhase, PeriodicJob, parse_jobs
from topologies.fat_tree import fat_tree
from topologies.leaf_spine import leaf_spine
from topologies.three_tier import three_tier

NETWORK = leaf_spine(4, 2, 4)
CLUSTER = Cluster(NETWORK, np.where(NETWORK.kind == 0, 4, 0))


def candidates(cluster, jobs, strategy="packed", n=10, seed=0) -> list[tuple[PeriodicJob, ...]]:
    """All placements of a strategy."""
    return list(Drawing(cluster, jobs).each(strategy, n, seed))


def job(name: str, n_gpus: int, *, busy: float = 0.04, placement: tuple[str, ...] | None = None) -> PeriodicJob:
    return PeriodicJob(name, n_gpus, 0.1, (JobPhase(0.0, busy, 1e9),), placement)


def racks(placement: tuple[str, ...] | None) -> set[int]:
    return {int(name[1:]) // 4 for name in placement or ()}


def order_ranks(network: Network, nodes: list[str]) -> list[str]:
    free = FreeGpus(Cluster(network, network.kind == 0), ())
    return list(free.names(free.in_order(np.array([network.nodes.index(name) for name in nodes]))))


def crossings(network: Network, nodes: list[str], level: int = 1) -> int:
    """How many edges of the ring leave a group: machines are level 0, racks 1, pods 2."""
    levels = locality_levels(network)
    group = dict(zip(network.endpoints, levels[min(level, len(levels) - 1)].group, strict=True))
    at = np.array([group[network.nodes.index(name)] for name in nodes])
    return int(np.count_nonzero(at != np.roll(at, -1)))


@pytest.mark.slow
@given(
    st.sampled_from(list(STRATEGIES)),
    st.lists(st.integers(1, 12), min_size=1, max_size=5),
    st.integers(0, 3),
    st.integers(1, 6),
)
def test_every_job_gets_its_gpus_and_no_gpu_has_two(strategy: str, sizes: list[int], seed: int, n: int) -> None:
    jobs = [job(f"j{i}", size) for i, size in enumerate(sizes)] + [job("fixed", 2, placement=("h3", "h1"))]
    found = candidates(CLUSTER, jobs, strategy, n, seed)
    assert 1 <= len(found) <= n
    assert len({tuple(one.placement for one in placed) for placed in found}) == len(found)
    for placed in found:
        assert [(a.name, a.n_gpus, a.period, a.phases) for a in placed] == [
            (b.name, b.n_gpus, b.period, b.phases) for b in jobs
        ]
        assert placed[-1].placement == ("h3", "h1")  # stays, in its own order
        used = Counter(name for one in placed for name in one.placement or ())
        assert all(count <= 4 for count in used.values())
        assert all(list(one.placement or ()) == order_ranks(NETWORK, list(one.placement or ())) for one in placed[:-1])
    assert found == candidates(CLUSTER, jobs, strategy, n, seed)


def test_packed_uses_the_smallest_group_that_has_room() -> None:
    taken = job("taken", 3, placement=("h5", "h5", "h5"))
    placed = candidates(CLUSTER, [job("one", 1), job("host", 4), job("rack", 16), taken], "packed", 1)[0]
    assert placed[0].placement == ("h5",)  # the host with the least room
    assert len(set(placed[1].placement or ())) == 1
    assert len(racks(placed[2].placement)) == 1


def test_a_job_that_no_rack_can_hold_leaves_as_few_racks_as_possible() -> None:
    placed = candidates(CLUSTER, [job("large", 20)], "packed", 1)[0]
    assert len(racks(placed[0].placement)) == 2
    assert crossings(NETWORK, list(placed[0].placement or ())) == 2


def test_spread_goes_round_the_racks_and_their_hosts() -> None:
    placed = candidates(CLUSTER, [job("eight", 8)], "spread", 1)[0]
    assert Counter(int(name[1:]) // 4 for name in placed[0].placement or ()) == {0: 2, 1: 2, 2: 2, 3: 2}
    assert set(Counter(placed[0].placement).values()) == {1}


def test_themis_candidates_are_all_as_close_together_as_when_packed() -> None:
    jobs = [job("a", 6), job("b", 20), job("c", 3), job("d", 8)]
    free = FreeGpus(CLUSTER, jobs)
    index = {name: i for i, name in enumerate(NETWORK.nodes)}

    def levels(placed: tuple[PeriodicJob, ...]) -> list[int]:
        return [free.level(np.array([index[name] for name in one.placement or ()])) for one in placed]

    found = candidates(CLUSTER, jobs, "themis", 10)
    assert len(found) == 10
    assert {tuple(levels(placed)) for placed in found} == {tuple(levels(found[0]))}
    assert found[0] == candidates(CLUSTER, jobs, "packed", 1)[0]


def test_tiresias_consolidates_skewed_jobs_and_lets_others_take_leftovers() -> None:
    taken = [job(f"t{i}", 3, placement=(f"h{4 * i}",) * 3) for i in range(4)]  # one GPU is left in each rack's first
    even = PeriodicJob("even", 4, 0.1, tuple(JobPhase(offset, 0.02, 1e9) for offset in (0.0, 0.03, 0.06)))
    placed = candidates(CLUSTER, [job("skewed", 4), even, *taken], "tiresias", 1)[0]
    assert len(set(placed[0].placement or ())) == 1
    assert placed[1].placement == ("h0", "h4", "h8", "h12")


def test_muri_makes_neighbours_of_jobs_that_complement_each_other() -> None:
    jobs = [job("a", 8, busy=0.08), job("x", 8, busy=0.5e-2), job("b", 8, busy=0.02), job("y", 8, busy=0.99e-1)]
    placed = candidates(CLUSTER, jobs, "muri", 1)[0]
    by_rack = {one.name: racks(one.placement) for one in placed}
    assert by_rack["a"] == by_rack["b"] != by_rack["x"] == by_rack["y"]


def test_jobs_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="need 65 GPUs, and 64 are free"):
        candidates(CLUSTER, [job("a", 65)])
    with pytest.raises(InputError, match="job b asks 5 GPUs of h0, which has 4, 4 of them free"):
        candidates(CLUSTER, [job("b", 5, placement=("h0",) * 5)])
    with pytest.raises(InputError, match="placed on leaf0, which has no GPUs"):
        candidates(CLUSTER, [job("b", 1, placement=("leaf0",))])
    with pytest.raises(InputError, match="unknown placement strategy 'pack'; did you mean packed"):
        candidates(CLUSTER, [job("a", 1)], "pack")
    for n in (0, 2**31):
        with pytest.raises(InputError, match=f"number of candidates is 1 to 10000, got {n}"):
            candidates(CLUSTER, [job("a", 1)], n=n)


def test_when_all_jobs_are_placed_there_is_one_candidate() -> None:
    assert len(candidates(CLUSTER, [job("a", 1, placement=("h0",))], "random", 10)) == 1


def test_the_ranks_of_a_collective_are_one_job_on_an_idle_network() -> None:
    for strategy in STRATEGIES:
        nodes = place(NETWORK, 10, strategy).nodes
        assert len(set(nodes.tolist())) == 10
        assert set(nodes) <= set(NETWORK.endpoints)
    assert place(NETWORK, 10, "themis") == place(NETWORK, 10, "packed")


OWN = """
import numpy as np
from commsim.placement.strategies import placement_strategy
from commsim.placement.strategies.fabric_groups import nearness, poor_groups
from commsim.placement.strategies.free_gpus import FreeGpus

@placement_strategy
def backwards(free: FreeGpus, jobs: list, rng: object) -> dict:
    nodes = np.repeat(np.arange(len(free.free)), free.free)[::-1]
    return {0: nodes[: NUMBER]}
"""


def test_a_file_of_the_user_places_ranks(tmp_path, forgets) -> None:
    forgets(STRATEGIES)
    own = tmp_path / "own.py"
    own.write_text(OWN.replace("NUMBER", "jobs[0].n_gpus"))
    assert place(NETWORK, 2, OwnFile(own)).nodes.tolist() == [15, 14]
    with pytest.raises(InputError, match="takes no arguments"):
        place(NETWORK, 2, OwnFile(f"{own}:a=1"))
    for taken, message in (
        ("nodes[:1]", "job ranks must get 2 nodes"),
        ("['h0', 'zz']", r"job ranks must get 2 nodes of .* by name or number, got \['h0', 'zz'\]"),
        ("[0.5, 1]", "job ranks must get 2 nodes of .* by name or number"),
        ("[[0], [1, 2]]", "job ranks must get 2 nodes of"),
        ("None", "job ranks must get 2 nodes of .* by name or number, got None"),
        ("['h3', 'h3']", "takes more GPUs of h3 than the 1 that are free"),
        ("nodes[:2]} and None #", "the strategy: must return a dict of nodes by job, got None"),
        ("np.full(2, 3)", "takes more GPUs of h3 than the 1 that are free"),
    ):
        own.write_text(OWN.replace("nodes[: NUMBER]", taken))
        with pytest.raises(InputError, match=message):
            place(NETWORK, 2, OwnFile(own))
    own.write_text(OWN.replace("jobs: list", "jobs"))
    with pytest.raises(InputError, match=r"parameter jobs needs an annotation, such as jobs: Sequence\[PeriodicJob\]"):
        place(NETWORK, 2, OwnFile(own))


def test_a_file_of_the_user_names_the_hosts(tmp_path, forgets) -> None:
    forgets(STRATEGIES)
    own = tmp_path / "own.py"
    own.write_text(OWN.replace("nodes[: NUMBER]", "free.nodes()[::-1][: jobs[0].n_gpus]"))
    assert place(NETWORK, 3, OwnFile(own)).nodes.tolist() == [15, 14, 13]
    tables = {"topology": {"spec": "star:n_hosts=4"}, "hosts": {"gpus": 2, "busy": {"h3": 1}}}
    jobs = parse_jobs([{"job": "a", "gpus": 4, "iter_time_ms": 9, "phases": []},
                       {"job": "b", "gpus": 1, "iter_time_ms": 9, "phases": [], "placement": ["h1"]}])  # fmt: skip
    ((a, _),) = Drawing(read_cluster(tables), jobs).each("backwards", 1, 0)
    assert a.placement == ("h3", "h2", "h2", "h1")


RACKS = leaf_spine(3, 2, 4)


def test_ten_pods_on_racks_of_four_are_numbered_rack_by_rack() -> None:
    mixed = [f"h{i}" for i in (8, 0, 4, 1, 5, 9, 2, 6, 3, 7)]
    assert order_ranks(RACKS, mixed) == [f"h{i}" for i in range(10)]


@pytest.mark.slow
@settings(max_examples=settings().max_examples // 2)  # each looks at up to 720 orders
@given(st.lists(st.sampled_from(RACKS.nodes[:12]), min_size=2, max_size=6))
def test_no_order_crosses_racks_less_often(nodes: list[str]) -> None:
    least = min(crossings(RACKS, order) for order in itertools.permutations(nodes))
    assert crossings(RACKS, order_ranks(RACKS, nodes)) == least


@pytest.mark.parametrize("level", [0, 1, 2])
def test_hosts_racks_and_pods_are_kept_together(level: int) -> None:
    network = fat_tree(4)
    nodes = [network.nodes[i] for i in (0, 15, 1, 8, 9, 2, 4, 0, 12, 3)]
    groups = {0: 9, 1: 6, 2: 4}
    assert crossings(network, order_ranks(network, nodes), level) == groups[level]


def test_a_job_in_one_rack_crosses_nothing() -> None:
    assert crossings(RACKS, ["h0", "h1", "h2"]) == 0


def test_balanced_takes_equal_parts_of_as_few_racks_as_have_room() -> None:
    """16 GPUs on racks of 16, 15 and 8 and more: in one rack if there is one with room, else 8 and 8, not 15 and 1."""
    (placed,) = candidates(CLUSTER, [job("whole", 16)], "balanced", 1)
    assert len(racks(placed[0].placement)) == 1
    one_busy = Cluster(NETWORK, CLUSTER.gpus, np.where(np.isin(np.arange(NETWORK.n_nodes), [0, 4, 8, 12]), 1, 0))
    (placed,) = candidates(one_busy, [job("split", 16)], "balanced", 1)  # 15 free in each rack
    counts = Counter(int(name[1:]) // 4 for name in placed[0].placement or ())
    assert sorted(counts.values()) == [8, 8]


PODS = three_tier(2, 4, 4, 2, 2, oversubscription=2.0)
RUNNING = tuple(
    job(f"r{i}", 4, placement=tuple(f"h{h}" for h in (8 * i, 8 * i + 1, 8 * i + 4, 8 * i + 5))) for i in range(3)
)


@pytest.mark.parametrize("seed", range(3))
def test_a_job_is_packed_into_an_empty_rack_of_whichever_pod(seed) -> None:
    """The fullest pod came first: a job was spread over its racks while a rack of another one was empty."""
    cluster = Cluster(PODS, (PODS.kind == 0).astype(int))
    for placed in candidates(cluster, (*RUNNING, job("new", 4)), "packed", 5, seed):
        assert len(racks(placed[-1].placement)) == 1
    left = candidates(cluster, (*RUNNING, job("new", 6)), "packed", 1)[0][-1]
    assert racks(left.placement) == {6, 4}  # the empty rack whole, and the rest in the same pod


@pytest.mark.parametrize("strategy", ["packed", "balanced"])
def test_racks_with_fewer_or_slower_uplinks_are_the_last_that_a_job_is_split_over(strategy) -> None:
    slow = scaled(NETWORK, {"leaf0:spine0": 0.5})
    cluster = Cluster(slow, np.where(slow.kind == 0, 4, 0))
    assert candidates(cluster, [job("a", 20)], strategy, 1)[0][0].placement
    assert 0 not in racks(candidates(cluster, [job("a", 20)], strategy, 1)[0][0].placement)
    assert 0 in racks(candidates(cluster, [job("a", 64)], strategy, 1)[0][0].placement)
    assert racks(candidates(cluster, [job("a", 16)], strategy, 1)[0][0].placement) == {0}  # there no uplink is used


def test_a_host_with_a_slow_link_is_the_last_of_its_rack() -> None:
    slow = scaled(NETWORK, {"h1:leaf0": 0.5})
    cluster = Cluster(slow, np.where(slow.kind == 0, 1, 0))
    assert candidates(cluster, [job("a", 3)], "packed", 1)[0][0].placement == ("h0", "h2", "h3")


def scaled(network: Network, factors: dict[str, float]) -> Network:
    bandwidth = network.bandwidth.copy()
    for name, factor in factors.items():
        bandwidth[find_link(network, name)] *= factor
    return dataclasses.replace(network, bandwidth=bandwidth)


@pytest.mark.parametrize(
    "network", [NETWORK, PODS, fat_tree(4), leaf_spine(3, 1, 5, oversubscription=2.5)], ids=lambda one: one.name[:12]
)
def test_no_group_of_a_regular_network_has_less_bandwidth_than_others(network) -> None:
    assert not poor_groups(network, nearness(network)).any()


def two_fabrics() -> Cluster:
    """Two leaves with 2 and 3 hosts of 4 GPUs, which nothing joins."""
    names = [f"a{i}" for i in range(2)] + [f"b{i}" for i in range(3)] + ["s0", "s1"]
    above = [5, 5, 6, 6, 6]
    src, dst = both_ways(np.arange(5), np.array(above))
    network = Network("forest", names, [0] * 5 + [1] * 2, src, dst, 1e10, 1e-6)
    return Cluster(network, np.array([4] * 5 + [0] * 2))


@pytest.mark.parametrize("strategy", list(STRATEGIES))
def test_a_job_is_placed_inside_of_one_fabric(strategy: str) -> None:
    jobs = (PeriodicJob("big", 10, 1.0, ()), PeriodicJob("small", 6, 1.0, ()))
    for placed in candidates(two_fabrics(), jobs, strategy, n=3):
        assert [len({node[0] for node in job.placement or ()}) for job in placed] == [1, 1]


def test_a_job_that_no_fabric_has_room_for_is_refused_in_one_line() -> None:
    with pytest.raises(InputError, match="2 fabrics that no path joins, and none has 13 GPUs free for one job"):
        candidates(two_fabrics(), (PeriodicJob("big", 13, 1.0, ()),))


@pytest.mark.parametrize("n", [1, 5, 17, 60, 200])
def test_of_very_many_gpus_only_those_that_racks_give_in_turn_are_laid_out(monkeypatch, n):
    network = leaf_spine(4, 1, 5)
    gpus = np.where(network.kind == HOST, np.arange(network.n_nodes) * 7 % 23 + 1, 0)
    cluster = Cluster(network, gpus)
    whole = FreeGpus(cluster, ()).take_far(n)
    monkeypatch.setattr(gpu_groups, "_MANY", 0)
    free = FreeGpus(cluster, ())
    assert len(free._seats(n, free.path[:, 0])[0]) <= max(4 * n + 40, 40)
    assert free.take_far(n).tolist() == whole.tolist()


def test_a_job_of_a_large_cluster_of_large_hosts_is_placed_without_a_row_for_each_gpu():
    network = leaf_spine(40, 1, 30)
    free = FreeGpus(Cluster(network, np.where(network.kind == HOST, 1024, 0)), ())
    rng = np.random.default_rng(0)
    for taken in (free.take_far(64, rng), free.take_any(64, rng), free.take_leftovers(64, rng)):
        assert len(taken) == 64
    assert len(free._seats(64, free.path[:, 1])[0]) <= 1200
