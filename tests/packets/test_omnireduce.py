"""OmniReduce with loss recovery: right sums whatever is lost, and no bytes but those of blocks that somebody has."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.result import Result
from commsim.packets.aggregated.aggregation_jobs import aggregation_job, job_workers, spare_hosts, with_loss
from commsim.packets.aggregated.packet_job import AggregationJob
from commsim.packets.aggregated.tree_times import simulate_recurrence
from commsim.packets.links.queues import Fabric
from commsim.packets.run_packets import simulate_aggregation
from commsim.prediction.inputs import load_network
from commsim.routing.aggregation_tree import host_tree
from commsim.sparse.generate import PATTERNS, drawn_gradients, drawn_occupancy
from commsim.sparse.occupancy import Occupancy
from switch_model.payload import given_payload
from switch_model.system import System
from switch_model.systems import SYSTEMS

LOSSES = (0.0, 1e-3, 0.01, 0.1, 0.3)
RACKS = "leaf_spine:n_leaves=3,n_spines=2,hosts_per_leaf=4,bandwidth=100Gbps,latency=1us"


def star(n: int) -> Network:
    return load_network(f"star:n_hosts={n},bandwidth=100Gbps,latency=1us")


def omnireduce(**parameters: Any) -> System:
    return SYSTEMS["omnireduce"].build(**parameters)


def job_on(
    network: Network, system: System, n_workers: int, n: int, *, density: float | None = 0.1, **options: Any
) -> AggregationJob:
    draw = {key: options.pop(key) for key in ("pattern", "seed") if key in options}
    if density is not None:
        options["occupancy"] = drawn_occupancy(n_workers, n, density=density, block=system.elements, **draw)
    return aggregation_job(system, network, network.endpoints[:n_workers].tolist(), n, **options)


def run(network: Network, system: System, n_workers: int, n: int, **options: Any) -> Result:
    return simulate_aggregation(network, [job_on(network, system, n_workers, n, **options)]).results[0]


@pytest.mark.slow
@pytest.mark.parametrize("where", ["star:n_hosts=12,bandwidth=100Gbps,latency=1us", RACKS])
@given(
    loss_up=st.sampled_from(LOSSES),
    loss_down=st.sampled_from(LOSSES),
    n_workers=st.integers(2, 7),
    n_aggregators=st.integers(1, 5),
    colocated=st.booleans(),
    shape=st.tuples(st.integers(1, 3), st.integers(1, 9)),
    n=st.integers(32, 6000),
    density=st.sampled_from((0.03, 0.2, 0.5, 1.0)),
    pattern=st.sampled_from([p for p in PATTERNS if p != "disjoint"]),
    seed=st.integers(0, 2**31),
    burst=st.sampled_from((1.0, 3.0)),
)
def test_every_element_is_summed_exactly_once_whatever_is_lost(
    where: str, loss_up: float, loss_down: float, n_workers: int, n_aggregators: int, colocated: bool,
    shape: tuple[int, int], n: int, density: float, pattern: str, seed: int, burst: float,
) -> None:  # fmt: skip
    n_aggregators = min(n_aggregators, n_workers) if colocated else n_aggregators
    system = omnireduce(
        block=16, n_aggregators=n_aggregators, colocated=colocated, cores=shape[0], slots=shape[1], rto=2e-5
    )
    network = with_loss(load_network(where), loss_up, loss_down)
    density = max(density, 16 / n)
    job = job_on(network, system, n_workers, n, density=density, pattern=pattern, seed=seed)
    result = simulate_aggregation(network, [job], fabric=Fabric(loss_burst=burst), seed=seed).results[0]
    assert result.counters["exact"]
    assert result.counters["missing_elements"] == 0
    if not loss_up and not loss_down:
        assert result.counters["drops"] == 0


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("colocated", [False, True])
def test_without_loss_a_worker_sends_its_blocks_and_empty_packets_and_receives_the_union(
    pattern: str, colocated: bool
) -> None:
    system = omnireduce(n_aggregators=4, colocated=colocated, cores=2, slots=16)
    network, n_blocks, density = star(8), 1000, 0.1
    job = job_on(network, system, 4, n_blocks * 256, density=density, pattern=pattern)
    result = simulate_aggregation(network, [job]).results[0]
    assert result.counters["exact"]
    assert job.rounds is not None
    has = job.rounds.occupancy.bitmap
    has[:, np.isin(np.arange(n_blocks) % 500, range(16))] = True  # the first burst: 16 slots of two halves
    n_rounds = int(has.any(axis=0).sum())
    full = 256 * 4 + 14 + 20 + 8 + 11 + 24
    for i, host in enumerate(job.workers):
        up, down = (result.link_bytes[end == host].sum() for end in (network.src, network.dst))
        mine = int(has[i].sum())
        sent, received = mine * full + (n_rounds - mine) * 84, n_rounds * full
        if not colocated:
            assert (up, down) == (sent, received)
            assert job.rounds.sent(i) == (mine, n_rounds - mine)
            continue
        # host i also aggregates every 4th slot, for the three others; its own share of both does not leave it
        slot = np.arange(n_blocks) % 500 % 16 % 4
        own = slot == i
        rounds_here = int(has[:, own].any(axis=0).sum())
        others = [int(has[k, own].sum()) for k in range(4) if k != i]
        kept = int(has[i, own].sum()) * full + (rounds_here - int(has[i, own].sum())) * 84
        assert up == sent - kept + 3 * rounds_here * full
        assert down == received - rounds_here * full + sum(k * full + (rounds_here - k) * 84 for k in others)


@pytest.mark.slow
def test_sending_every_block_takes_as_long_as_a_dense_job_and_as_the_line_rate_says() -> None:
    network, system, n = star(16), omnireduce(), 1 << 21
    sparse, dense = (run(network, system, 8, n, density=d) for d in (1.0, None))
    assert sparse.time == dense.time
    assert np.array_equal(sparse.link_bytes, dense.link_bytes)
    assert dense.counters["exact"]
    assert dense.counters["elements_per_s"] == pytest.approx(system.line_rate(12.5e9), rel=0.02)


def test_dense_time_does_not_depend_on_the_number_of_workers_with_as_many_aggregators() -> None:
    times = [run(star(2 * n), omnireduce(n_aggregators=n), n, 1 << 20, density=None).time for n in (2, 4, 8)]
    assert times == pytest.approx([times[0]] * 3, rel=0.01)


def test_a_dense_run_on_one_host_takes_the_time_of_all_workers_blocks_on_its_link() -> None:
    system, n = omnireduce(n_aggregators=1), 1 << 19
    result = run(star(5), system, 4, n, density=None)
    assert result.time == pytest.approx(4 * n / system.line_rate(12.5e9), rel=0.03)


def test_time_falls_with_density_to_that_of_the_union_on_the_way_back() -> None:
    system, network, n = omnireduce(), star(16), 1 << 22
    times = []
    for density in (1.0, 0.5, 0.25, 0.1, 0.02):
        job = job_on(network, system, 8, n, density=density, pattern="overlapping")
        result = simulate_aggregation(network, [job], values=False).results[0]
        assert job.rounds is not None
        wire = len(job.rounds.block) * system.packet_bytes(0) / 12.5e9
        assert wire < result.time
        times.append((result.time, wire))
    found, bound = zip(*times, strict=True)
    assert list(found) == sorted(found, reverse=True)
    assert found[0] == pytest.approx(bound[0], rel=0.02)
    assert found[-1] < 0.1 * found[0]


def test_lost_packets_are_repeated_and_cost_time() -> None:
    system = omnireduce(rto=1e-4)
    clean, lossy = run(star(16), system, 8, 1 << 20), run(with_loss(star(16), 0.01, 0.01), system, 8, 1 << 20)
    assert clean.counters["retransmissions"] == 0
    assert lossy.counters["retransmissions"] > 0
    assert lossy.time > clean.time


def test_without_the_check_of_seen_bits_the_sum_is_wrong() -> None:
    system, network = omnireduce(slots=4, n_aggregators=2, rto=2e-5), with_loss(star(6), 0.05, 0.05)
    assert run(network, system, 4, 300 * 256).counters["exact"]
    assert not run(network, system, 4, 300 * 256, without={"seen_check"}).counters["exact"]


def test_a_block_that_is_skipped_although_a_worker_has_it_is_found_out() -> None:
    system, network, n = omnireduce(slots=1, n_aggregators=2), star(6), 40 * 256
    told = np.zeros((4, 40), bool)
    told[:, 7] = True
    real = told.copy()
    real[2, 31] = True  # nobody says so, and it is in no first burst
    job = aggregation_job(
        system, network, network.endpoints[:4].tolist(), n, occupancy=Occupancy.from_bitmap(told, n, 256)
    )
    tensors = drawn_gradients(Occupancy.from_bitmap(real, n, 256), dtype=np.int32)
    result = simulate_aggregation(network, [job], payload=given_payload([[tensors]], system)).results[0]
    assert not result.counters["exact"]
    assert result.counters["wrong_elements"] == 4 * 256
    tensors[2, 31 * 256 : 32 * 256] = 0
    result = simulate_aggregation(network, [job], payload=given_payload([[tensors]], system)).results[0]
    assert result.counters["exact"]


def test_jobs_that_share_aggregators_stay_exact() -> None:
    system, network = omnireduce(n_aggregators=2, rto=1e-4), with_loss(star(8), 0.02, 0.02)
    drawn = [drawn_occupancy(3, 100_000, density=d, block=256) for d in (0.1, 0.5)]
    workers = job_workers(network, 2, 3, spare_hosts(system))
    jobs = [aggregation_job(system, network, w, 100_000, occupancy=o) for w, o in zip(workers, drawn, strict=True)]
    assert jobs[0].trees[0].nodes == jobs[1].trees[0].nodes
    assert [r.counters["exact"] for r in simulate_aggregation(network, jobs).results] == [1.0, 1.0]
    jobs[1] = aggregation_job(system, network, workers[1], 100_000)
    assert [r.counters["exact"] for r in simulate_aggregation(network, jobs).results] == [1.0, 1.0]


@pytest.mark.nojit
@pytest.mark.parametrize(
    ("build", "hosts", "message"),
    [
        ({"n_aggregators": 5}, 8, "5 aggregators need as many hosts without worker"),
        ({"n_aggregators": 5, "colocated": True}, 8, "5 aggregators need as many hosts of workers"),
        ({"n_aggregators": 0}, 8, "n_trees must be at least 1"),
        ({"slots": 0}, 8, "slots must be at least 1"),
        ({"block": 128}, 8, "for blocks of 128 elements, got rounds"),
    ],
)
def test_what_does_not_fit_is_refused(build: dict[str, Any], hosts: int, message: str) -> None:
    network, drawn = star(hosts), drawn_occupancy(4, 10_000, density=0.5, block=256)
    with pytest.raises(InputError, match=message):
        system = omnireduce(**{"n_aggregators": 2} | build)
        aggregation_job(system, network, network.endpoints[:4].tolist(), 10_000, occupancy=drawn)


@pytest.mark.nojit
@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("switchml_udp", {}, "only omnireduce"),
        ("omnireduce", {"n_elements": [5000, 5000]}, "need an occupancy of them"),
        ("omnireduce", {"without": {"continued_slots"}}, "only omnireduce, with two versions"),
    ],
)
def test_systems_that_cannot_skip_blocks_are_refused(name: str, options: dict[str, Any], message: str) -> None:
    network, drawn = star(14), drawn_occupancy(4, 10_000, density=0.5, block=256)
    given_ = {"n_elements": 10_000, "occupancy": drawn} | options
    with pytest.raises(InputError, match=message):
        aggregation_job(SYSTEMS[name].build(), network, network.endpoints[:4].tolist(), **given_)  # type: ignore[arg-type]


@pytest.mark.nojit
def test_only_a_host_aggregates_alone() -> None:
    network = star(3)
    switch = int(np.setdiff1d(np.arange(network.n_nodes), network.endpoints)[0])
    with pytest.raises(InputError, match="this aggregator must be a host, got node"):
        host_tree(network, tuple(network.endpoints.tolist()), switch)
    tree = host_tree(network, tuple(network.endpoints.tolist()), int(network.endpoints[1]))
    assert (tree.nodes, tree.fan_in) == ((network.endpoints[1],), (3,))
    assert [len(links) for links in tree.worker_up] == [2, 0, 2]


@pytest.mark.nojit
def test_there_is_no_recurrence_of_aggregators_on_hosts() -> None:
    network = star(14)
    with pytest.raises(InputError, match="aggregates on hosts"):
        simulate_recurrence(network, job_on(network, omnireduce(), 4, 10_000))
