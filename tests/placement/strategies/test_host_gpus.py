"""Jobs with a number of GPUs on each host: every strategy, machines of GPUs, growth, failures, and refusals."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import commsim as cs
from commsim.core.errors import InputError, NoRoomError
from commsim.core.names.nodes_and_links import host_names
from commsim.placement.cluster import read_cluster
from commsim.placement.strategies import Drawing, _checked
from commsim.placement.strategies.free_gpus import FreeGpus

CLUSTER = {
    "topology": {"spec": "leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=4,bandwidth=100Gbps"},
    "hosts": {"gpus": 8, "busy": {"h0": 5, "h5": 6}},
}
MACHINES = {"topology": {"spec": "dgx-h100@star:machines=4"}}


def job(name: str, n: int, k: int | None = None, **more: object) -> dict[str, object]:
    gang = {"gpus_per_host": k} if k else {}
    return {
        "job": name,
        "gpus": n,
        "iter_time_ms": 100,
        "phases": [{"offset_ms": 0, "dur_ms": 9, "rate_Gbps": 9}],
        **gang,
        **more,
    }


def on_hosts(cluster: object, placement: tuple[str, ...]) -> list[int]:
    network = read_cluster(cluster).network
    host = dict(zip(network.nodes, host_names(network), strict=True))
    return sorted(Counter(host[node] for node in placement).values())


BUILT_IN = ("packed", "balanced", "spread", "random", "themis", "tiresias", "muri")


@pytest.mark.parametrize("strategy", BUILT_IN)
@pytest.mark.parametrize("cluster", [CLUSTER, MACHINES], ids=["nodes", "machines"])
def test_every_strategy_gives_each_host_its_number(strategy: str, cluster: dict[str, object]) -> None:
    jobs = [job("free", 5), job("four", 12, 4), job("two", 4, 2)]
    found = list(Drawing(read_cluster(cluster), cs.read_jobs(jobs)).each(strategy, 6, 0))
    assert found
    for placed in found:
        at = {one.name: one.placement or () for one in placed}
        assert on_hosts(cluster, at["four"]) == [4, 4, 4]
        assert on_hosts(cluster, at["two"]) == [2, 2]
        counts = Counter(node for nodes in at.values() for node in nodes)
        known = read_cluster(cluster)
        free = dict(zip(known.network.nodes, known.free.tolist(), strict=True))
        assert all(n <= free[node] for node, n in counts.items())


def test_packed_takes_hosts_of_one_rack() -> None:
    best = cs.place_jobs(CLUSTER, [job("a", 16, 4)], n=1).candidates[0].placement["a"]
    assert best == tuple(f"h{i}" for i in range(8, 12) for _ in range(4))  # racks 0 and 1 have three such hosts


def test_too_few_hosts_are_refused_though_there_are_enough_gpus() -> None:
    sixteen = CLUSTER | {"hosts": {"gpus": 16, "busy": {"h0": 9, "h1": 9}}}
    for wanted, kind in ((15, NoRoomError), (17, InputError)):
        said = f"job a needs 8 GPUs on each of {wanted} hosts, and 14 hosts have as many free"
        with pytest.raises(InputError, match=said) as caught:
            cs.place_jobs(sixteen, [job("a", wanted * 8, 8)])
        assert type(caught.value) is kind
    with pytest.raises(InputError, match="job a needs 9 GPUs on each of 1 host, and no host has as many free"):
        cs.place_jobs(CLUSTER, [job("a", 9, 9)])
    with pytest.raises(InputError, match="gpus_per_host must be a whole number that divides gpus, which is 9, got 2"):
        cs.place_jobs(CLUSTER, [job("a", 9, 2)])
    with pytest.raises(InputError, match="job a has 1 GPU on h2, and its gpus_per_host is 2"):
        cs.place_jobs(CLUSTER, [job("a", 4, 2, placement=["h1x2", "h2", "h3"])])
    with pytest.raises(InputError, match="own: job a has 1 GPU on h2, and its gpus_per_host is 2"):
        cs.rank_placements(CLUSTER, {"own": [job("a", 4, 2, placement=["h1x2", "h2", "h3"])]})


@given(st.lists(st.integers(0, 4), min_size=4, max_size=8), st.integers(1, 4), st.integers(1, 8), st.integers(0, 9))
def test_one_job_is_placed_exactly_where_enough_hosts_have_room(free: list[int], k: int, n: int, seed: int) -> None:
    """Against counting: a job of n hosts fits if and only if n hosts have k free GPUs, under every strategy."""
    spec = f"leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf={(len(free) + 1) // 2}"
    busy = {f"h{i}": 4 - f for i, f in enumerate(free)}
    cluster = read_cluster({"topology": {"spec": spec}, "hosts": {"gpus": 4, "busy": busy}})
    fits = sum(f >= k for f in cluster.free.tolist()) >= n
    for strategy in BUILT_IN[:5]:
        try:
            found = list(Drawing(cluster, cs.read_jobs([job("a", n * k, k)])).each(strategy, 2, seed))
        except InputError:
            assert not fits
        else:
            assert fits
            assert all(Counter(Counter(one[0].placement).values()) == {k: n} for one in found)


def test_of_a_job_that_grows_hosts_are_filled_first_and_full_ones_get_no_more() -> None:
    for seed in range(3):
        grown = cs.read_jobs([job("a", 16, 4, placed=["h1"] * 4 + ["h2"])])
        for (placed,) in Drawing(read_cluster(CLUSTER), grown).each("random", 4, seed):
            assert placed.placement[:5] == ("h1",) * 4 + ("h2",)
            assert on_hosts(CLUSTER, placed.placement) == [4, 4, 4, 4]
    with pytest.raises(NoRoomError, match="job a lacks 3 GPUs beside h5, and 1 are free there"):
        cs.place_jobs(CLUSTER, [job("a", 16, 4, placed=["h5"])])
    with pytest.raises(InputError, match="job a is placed on zz, which has no GPUs"):
        cs.place_jobs(CLUSTER, [job("a", 16, 4, placed=["zz"])])
    with pytest.raises(InputError, match="job a has 5 GPUs on h1, and its gpus_per_host is 4"):
        cs.place_jobs(CLUSTER, [job("a", 16, 4, placed=["h1x5"])])


def test_a_job_whose_host_fails_or_is_drained_gets_a_whole_host() -> None:
    runs = [job("a", 12, 4, placement=["h1x4", "h2x4", "h3x4"])]
    for how in ({"fail": ["host:h2"]}, {"drain": ["h2"]}):
        placed = cs.place_jobs(CLUSTER, runs, **how).candidates[0].placement["a"]
        assert (placed[:4], placed[8:]) == (("h1",) * 4, ("h3",) * 4)
        assert len(set(placed[4:8])) == 1
        assert placed[4] not in ("h1", "h2", "h3")
    machines = [job("a", 8, 4, placement=["m0.gpu0-3", "m1.gpu0-3"])]
    placed = cs.place_jobs(MACHINES, machines, fail=["host:m1"]).candidates[0].placement["a"]
    assert placed[:4] == tuple(f"m0.gpu{i}" for i in range(4))
    assert on_hosts(MACHINES, placed) == [4, 4]


def test_jobs_on_hosts_of_their_number_come_before_those_that_fit_anywhere() -> None:
    """Each host has two GPUs: the large job would take one of each where it may have any."""
    pair = {"topology": {"spec": "star:n_hosts=4"}, "hosts": {"gpus": 2}}
    found = cs.place_jobs(pair, [job("any", 4), job("two", 4, 2)], generators=("spread",), n=1).candidates[0]
    assert on_hosts(pair, found.placement["two"]) == [2, 2]


def test_a_strategy_of_ones_own_that_takes_a_number_of_gpus_is_refused_for_such_jobs() -> None:
    def own(free: FreeGpus, jobs, rng):
        return {i: free.take_near(one.n_gpus, rng) for i, one in enumerate(jobs)}

    assert _checked_plan(own, [job("a", 8)])
    with pytest.raises(InputError, match="own: job a must get 4 GPUs on each host"):
        _checked_plan(own, [job("a", 8, 4)])


def _checked_plan(own, rows):
    jobs = cs.read_jobs(rows)
    free = FreeGpus(read_cluster(CLUSTER), jobs)
    return _checked(free, jobs, own(free, jobs, None), "own")
