"""In-network aggregation packet by packet: right sums whatever is lost, at the speed that the bounds allow."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import commsim as cs
from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.result import Result
from commsim.packets.aggregated import traffic_state
from commsim.packets.aggregated.aggregation_jobs import aggregation_job, job_workers, with_loss
from commsim.packets.aggregated.packet_job import AggregationJob
from commsim.packets.finished_run import PacketRun
from commsim.packets.links.queues import Fabric
from commsim.packets.run_packets import simulate_aggregation
from commsim.prediction.inputs import load_network
from switch_model.system import System
from switch_model.systems import SYSTEMS
from topologies.leaf_spine import leaf_spine

LOSSES = (0.0, 1e-4, 1e-3, 0.01, 0.1, 0.3)
RACKS = "leaf_spine:n_leaves=3,n_spines=2,hosts_per_leaf=3,bandwidth=100Gbps,latency=1us"


def star(n: int, latency: str = "1us") -> Network:
    return load_network(f"star:n_hosts={n},bandwidth=100Gbps,latency={latency}")


def run(system: System, network: Network, n_workers: int, n: int | tuple[int, ...], **options: object) -> Result:
    seed = int(options.pop("seed", 0))  # type: ignore[call-overload]
    job = aggregation_job(system, network, network.endpoints[:n_workers].tolist(), n, **options)  # type: ignore[arg-type]
    return simulate_aggregation(network, [job], seed=seed).results[0]


@pytest.mark.parametrize("n_workers", [4, 8, 16])
def test_switchml_rdma_runs_at_the_line_rate_of_its_messages_whatever_the_number_of_workers(n_workers: int) -> None:
    system = SYSTEMS["switchml_rdma"].build()
    result = run(system, star(n_workers), n_workers, 1 << 22)
    assert result.counters["elements_per_s"] == pytest.approx(system.line_rate(12.5e9), rel=0.02)
    assert system.line_rate(12.5e9) == pytest.approx(2880.3e6, abs=0.05e6)
    assert result.counters["exact"]


@pytest.mark.parametrize("pool", [1, 4, 16])
def test_a_pool_below_the_bandwidth_delay_product_gives_a_window_per_round_trip(pool: int) -> None:
    system = SYSTEMS["switchml_udp"].build(pool_size=pool)
    result = run(system, star(4), 4, 1 << 19)
    serial = system.message_bytes / 12.5e9
    round_trip = 2 * serial + 2e-6
    assert pool * serial < round_trip
    assert result.counters["elements_per_s"] == pytest.approx(pool * system.elements / round_trip, rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["switchml_udp", "switchml_rdma", "atp", "panama"])
@pytest.mark.parametrize("where", ["star:n_hosts=9,bandwidth=100Gbps,latency=1us", RACKS])
@settings(max_examples=settings().max_examples // 2)
@given(
    loss_up=st.sampled_from(LOSSES),
    loss_down=st.sampled_from(LOSSES),
    n_workers=st.integers(1, 8),
    n=st.lists(st.integers(1, 6000), min_size=1, max_size=3),
    seed=st.integers(0, 2**31),
    burst=st.sampled_from((1.0, 3.0)),
)
def test_every_element_is_summed_exactly_once_whatever_is_lost(
    name: str,
    where: str,
    loss_up: float,
    loss_down: float,
    n_workers: int,
    n: list[int],
    seed: int,
    burst: float,
) -> None:
    small = {"pool_size": 8, "window": 8} if name != "atp" else {"pool_size": 12, "window": 8}
    system = dataclasses.replace(SYSTEMS[name].build(**small), rto=2e-5)
    network = with_loss(load_network(where), loss_up, loss_down)
    job = aggregation_job(system, network, network.endpoints[:n_workers].tolist(), n)
    result = simulate_aggregation(network, [job], fabric=Fabric(loss_burst=burst), seed=seed).results[0]
    assert result.counters["exact"]
    assert result.counters["missing_elements"] == 0
    if not loss_up and not loss_down:
        assert result.counters["drops"] == 0


@pytest.mark.parametrize("rule", ["seen_check", "continued_slots"])
def test_without_one_of_its_rules_the_sum_is_wrong(rule: str) -> None:
    system = SYSTEMS["switchml_udp"].build(pool_size=16, rto=2e-5)
    network = with_loss(star(4), 0.05, 0.05)
    sizes = (300 * 256, 20 * 256 + 1)
    assert run(system, network, 4, sizes).counters["exact"]
    assert not run(system, network, 4, sizes, without={rule}).counters["exact"]


def test_with_one_version_of_a_slot_the_sum_is_wrong() -> None:
    system = SYSTEMS["switchml_udp"].build(pool_size=16, rto=2e-5)
    network = with_loss(star(4), 0.05, 0.05)
    assert run(system, network, 4, 300 * 256).counters["exact"]
    assert not run(dataclasses.replace(system, versions=1), network, 4, 300 * 256).counters["exact"]


@pytest.mark.parametrize("n_chunks", [3, 16, 100])
def test_floats_send_one_window_more_than_integers(n_chunks: int) -> None:
    system, network = SYSTEMS["switchml_udp"].build(pool_size=16), star(3)
    integers = run(system, network, 3, n_chunks * 256)
    floats = run(system, network, 3, n_chunks * 256, floats=True)
    up = np.flatnonzero(network.src == network.endpoints[0])
    packets = floats.link_bytes[up] / system.message_bytes, integers.link_bytes[up] / system.message_bytes
    assert packets == (n_chunks + min(16, n_chunks), n_chunks)
    assert floats.counters["exact"]


@pytest.mark.parametrize("names", [("switchml_udp",), ("atp", "panama"), ("sharp",)])
def test_sums_are_the_same_however_often_the_log_is_full(monkeypatch: pytest.MonkeyPatch, names: tuple[str]) -> None:
    """The whole log of `nvls` at 256000KiB took 425 MB."""
    network = with_loss(load_network(RACKS), 0.02, 0.02) if names != ("sharp",) else load_network(RACKS)
    jobs = []
    for name, workers in zip(names, job_workers(network, len(names), 4, 1), strict=True):
        system = dataclasses.replace(SYSTEMS[name].build(), rto=2e-5)
        server = int(network.endpoints[-1]) if system.server else None
        jobs.append(aggregation_job(system, network, workers, 40_000, server=server))
    whole = simulate_aggregation(network, jobs)
    monkeypatch.setattr(traffic_state, "LOG_RECORDS", 64)
    pieces = simulate_aggregation(network, jobs)
    assert len(pieces.tables.jobs.log) == 64
    for once, often in zip(whole.results, pieces.results, strict=True):
        assert once.time == often.time
        for name in ("exact", "wrong_elements", "missing_elements", "elements_added"):
            assert once.counters[name] == often.counters[name]
        assert once.counters["exact"]


def test_between_racks_one_stream_goes_up_whatever_the_number_of_workers() -> None:
    system, network = SYSTEMS["switchml_udp"].build(), load_network(RACKS)
    result = run(system, network, 9, 256 * 1000)
    between = (network.kind[network.src] == 1) & (network.kind[network.dst] == 1) & (result.link_bytes > 0)
    assert set(result.link_bytes[between]) == {1000.0 * system.message_bytes}
    assert result.counters["exact"]


def two_jobs(system: System, network: Network, n: int) -> PacketRun:
    server = int(network.endpoints[-1]) if system.server else None
    jobs = [aggregation_job(system, network, w, n, server=server) for w in job_workers(network, 2, 3, 1)]
    return simulate_aggregation(network, jobs)


def test_two_jobs_with_reserved_slots_do_not_slow_each_other_on_links_of_their_own() -> None:
    network, system = star(7), SYSTEMS["switchml_udp"].build()
    alone = run(system, network, 3, 1 << 18).time
    assert [r.time for r in two_jobs(system, network, 1 << 18).results] == [alone, alone]


def test_atp_jobs_that_share_too_few_slots_fall_back_to_the_server_and_stay_exact() -> None:
    network = star(8)
    server = np.flatnonzero(network.dst == network.endpoints[-1])
    alone = run(SYSTEMS["atp"].build(), network, 3, 62 * 2000)
    tight = two_jobs(SYSTEMS["atp"].build(pool_size=110), network, 62 * 2000)
    assert all(r.counters["exact"] for r in (alone, *tight.results))
    assert alone.counters["collisions"] == 0
    assert tight.results[0].counters["collisions"] > 0
    # a fragment that is aggregated reaches the server once, not once for each of the three workers
    per_fragment = tight.tables.jobs.job[0]["bytes_first"]
    assert alone.link_bytes[network.dst == network.endpoints[3]] == 2000 * per_fragment
    of_both = sum(result.link_bytes[server] for result in tight.results)
    assert 2 * 2000 * per_fragment < of_both < 6 * 2000 * per_fragment


def test_atp_names_the_workers_of_a_job_beyond_64() -> None:
    """Workers 64 to 139 count like others: whole sums reach the server, and repeated values are counted once."""
    network, system, n = leaf_spine(5, 2, 31), SYSTEMS["atp"].build(rto=1e-3), 62 * 20
    workers = [host for host in network.endpoints.tolist() if host % 31 < 28]
    job = aggregation_job(system, network, workers, n)
    calm = simulate_aggregation(network, [job]).results[0]
    assert calm.counters["exact"]
    assert calm.counters["server_bytes"] == 20 * system.packet_bytes(0)
    lossy = with_loss(network, 0.002, 0.002)
    result = simulate_aggregation(lossy, [aggregation_job(system, lossy, workers, n)], seed=3).results[0]
    assert result.counters["retransmissions"] > 0
    assert result.counters["exact"]
    assert result.counters["missing_elements"] == 0


def test_same_seed_same_run_and_another_seed_another_run() -> None:
    system, network = SYSTEMS["switchml_rdma"].build(rto=1e-4), with_loss(star(4), 0.01, 0.01)
    first, again, other = (run(system, network, 4, 1 << 18, seed=s) for s in (1, 1, 2))
    drop = {"cpu_s", "values_cpu_s"}
    same = [{k: v for k, v in r.counters.items() if k not in drop} for r in (first, again)]
    assert same[0] == same[1]
    assert first.time == again.time
    assert first.time != other.time


def test_a_single_worker_gets_its_own_values_back() -> None:
    result = run(SYSTEMS["switchml_udp"].build(), star(2), 1, 1000)
    assert result.counters["exact"]
    assert result.counters["elements_added"] == 1000


def test_series_and_taps_are_recorded_when_asked_for() -> None:
    system, network = SYSTEMS["switchml_udp"].build(pool_size=64), star(4)
    late = (0.0, 0.0, 0.0, 5e-6)  # else all come at the same picosecond, and no slot is ever seen half full
    job = aggregation_job(system, network, network.endpoints.tolist(), 1 << 16, starts=late)
    up = np.flatnonzero(network.src == network.endpoints[0])
    plain = simulate_aggregation(network, [job], sample_every=1e-6, tapped=up.tolist())
    assert len(plain.taps) == 256
    assert (np.diff(plain.taps["time"]) > 0).all()
    assert 0 < plain.series["busy_slots"].max() <= 64
    assert (np.diff(plain.series["time"] // 1_000_000) > 0).all()  # one in each interval, at the first event


def test_lossless_systems_refuse_networks_that_lose_packets() -> None:
    with pytest.raises(InputError, match="needs links without loss"):
        run(SYSTEMS["sharp"].build(), with_loss(star(4), 0.1, 0.0), 4, 1000)


@pytest.mark.parametrize("name", ["sharp", "nvls"])
def test_lossless_systems_refuse_losses_that_are_asked_for(name: str) -> None:
    """A job that waits for a packet which nobody repeats would be called a deadlock."""
    with pytest.raises(InputError, match="needs links without loss"):
        cs.predict(name, "star:n_hosts=4", "64KiB", engine="packet", packets={"loss": 0.1})
    assert cs.predict(name, "star:n_hosts=4", "64KiB", engine="packet", packets={"loss": 0.0}).time > 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_elements": ()}, "at least 1 element"),
        ({"starts": (0.0,)}, "one time of 0 s or more per worker"),
        ({"without": frozenset({"gravity"})}, "unknown rules"),
        ({"server_links": (0,)}, "has no parameter server"),
    ],
)
@pytest.mark.nojit
def test_a_job_that_makes_no_sense_is_refused(changes: dict[str, object], message: str) -> None:
    network = star(4)
    job = aggregation_job(SYSTEMS["switchml_udp"].build(), network, network.endpoints.tolist(), 1000)
    with pytest.raises(InputError, match=message):
        dataclasses.replace(job, **changes)  # type: ignore[arg-type]


@pytest.mark.nojit
def test_more_children_than_a_switch_aggregates_are_refused() -> None:
    network = star(40)
    with pytest.raises(InputError, match=r"a switch aggregates at most 32 children, got 33; a network of several"):
        aggregation_job(SYSTEMS["switchml_udp"].build(), network, network.endpoints[:33].tolist(), 1000)
    racks = leaf_spine(33, 1, 1)
    with pytest.raises(InputError, match="at most 32 children, got 33"):
        aggregation_job(SYSTEMS["switchml_udp"].build(), racks, racks.endpoints.tolist(), 1000)


@pytest.mark.nojit
def test_more_workers_than_all_switches_aggregate_are_refused_before_a_tree_is_sought(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr("commsim.packets.aggregated.aggregation_jobs.place_aggregators")
    network = star(40)
    with pytest.raises(InputError, match=r"a switch aggregates at most 32 children, got 40; a network of several"):
        aggregation_job(SYSTEMS["switchml_udp"].build(), network, network.endpoints.tolist(), 1000)


def test_jobs_are_values() -> None:
    network = star(4)
    job = aggregation_job(SYSTEMS["switchml_udp"].build(), network, network.endpoints.tolist(), [1000, 5])
    assert isinstance(job, AggregationJob)
    assert job.chunks().tolist() == [4, 1]
    assert job.messages().tolist() == [4, 1]


@pytest.mark.parametrize("name", list(SYSTEMS))
def test_every_system_as_it_comes_sums_every_element_once_over_several_rounds(name: str) -> None:
    system = SYSTEMS[name].build()
    result = run(system, star(16), 4, 3 * system.window * system.elements)
    assert result.counters["exact"]


# SHARP against its published points, on a tree of 128 hosts; its unit and host times are fitted, see `sharp`.
TREE = "leaf_spine:n_leaves=8,n_spines=1,hosts_per_leaf=16,bandwidth=100Gbps,latency=0.1us"


def seconds(n_bytes: int, mode: str = "low_latency") -> float:
    network = load_network(TREE)
    job = aggregation_job(SYSTEMS["sharp"].build(mode=mode), network, network.endpoints.tolist(), n_bytes // 4)
    result = simulate_aggregation(network, [job]).results[0]
    assert result.counters["exact"]
    return result.time


@pytest.mark.parametrize(("n_bytes", "published"), [(8, 2.83e-6), (4096, 14.48e-6)])
def test_small_operations_meet_the_two_published_points(n_bytes: int, published: float) -> None:
    assert seconds(n_bytes) == pytest.approx(published, rel=0.05)


def test_segments_follow_each_other_at_the_pace_of_the_unit() -> None:
    pace = (14.48e-6 - 2.83e-6) / 15
    assert seconds(16 * 256) - seconds(8 * 256) == pytest.approx(8 * pace, rel=0.01)


@pytest.mark.slow
def test_streams_reach_the_published_share_of_the_links() -> None:
    n_bytes = 1 << 24
    assert n_bytes / seconds(n_bytes, "streaming") == pytest.approx(0.95 * 12.5e9, rel=0.01)


@pytest.mark.parametrize("rto", [1e-3, 1e-2])
def test_a_repeated_packet_gets_no_sum_that_the_aggregation_unit_has_not_finished(rto: float) -> None:
    """The unit of iSwitch needs 3.66 us for each of 684 packets of 16 workers: a full window waits longer than 1 ms."""
    system = dataclasses.replace(SYSTEMS["iswitch"].build(), rto=rto)
    result = run(system, star(16), 16, 684 * system.elements)
    assert result.time >= 684 * system.unit_time(16)
    assert (result.counters["retransmissions"] > 0) == (rto < 2e-3)
    assert result.counters["exact"]


def test_jobs_of_one_run_have_their_own_bytes() -> None:
    """Hosts of other jobs see none of a job's packets, and a job by itself has the same bytes."""
    network, system = star(8), SYSTEMS["switchml_rdma"].build()
    both = two_jobs(system, network, 100_000)
    of_hosts = [np.isin(network.dst, network.endpoints[first : first + 3]) for first in (0, 3)]
    for result, mine, others in zip(both.results, of_hosts, of_hosts[::-1], strict=True):
        assert (result.link_bytes[mine] > 0).all()
        assert not result.link_bytes[others].any()
