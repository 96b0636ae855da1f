"""Slots that jobs share: what finds none goes to a server, of which each job has its own."""

from dataclasses import replace

import numpy as np
import pytest

import commsim as cs
from commsim.packets.aggregated.aggregation_jobs import aggregation_job
from commsim.packets.run_packets import simulate_aggregation
from commsim.prediction.inputs import load_network
from switch_model.systems import SYSTEMS
from switch_model.systems.atp import hashed_slots

STAR = "star:n_hosts=9,bandwidth=100Gbps,latency=1us"
N = 250_000  # elements


def through_server(pool_size, **changes):
    network = load_network(STAR)
    system = replace(SYSTEMS["atp"].build(pool_size=pool_size), **changes)
    job = aggregation_job(system, network, network.endpoints[:8].tolist(), N)
    result = simulate_aggregation(network, [job]).results[0]
    assert result.counters["exact"]
    return result.counters["server_bytes"] / (-(-N // system.elements) * system.message_bytes), result.time


def test_a_window_of_more_fragments_than_slots_sends_the_others_to_the_server():
    """With s slots for w fragments under way of p workers the server gets (s + (w - s) p) / w copies of the tensor."""
    pools = (100, 50, 10, 1)
    copies, times = np.array([through_server(pool) for pool in pools]).T
    expected = [(s + (100 - s) * 8) / 100 for s in pools]
    assert copies == pytest.approx(expected, rel=0.03)
    assert copies[0] == 1
    assert (np.diff(times) > 0).all()
    assert times[-1] == pytest.approx(copies[-1] * 1.34 * 4 * N / 12.5e9, rel=0.01)  # 332 bytes for 248 of values


def test_the_hash_of_atp_gives_each_fragment_under_way_a_slot_of_its_own():
    assert hashed_slots(0, 4, 20_000).tolist() == [443, 16588, 4661, 16450]
    for job in range(3):
        assert len({*hashed_slots(job, 100, 100).tolist()}) == 100
    assert sorted(hashed_slots(2, 6, 3).tolist()) == [0, 0, 1, 1, 2, 2]


def test_fragments_that_a_system_gives_one_slot_meet_in_it():
    """The server gets those that find it taken, until it has given them slots of their own."""
    (hashed, _), (crowded, _) = (
        through_server(100, shared_slots=slots)
        for slots in (hashed_slots, lambda _, window, __: np.zeros(window, np.int32))
    )
    assert hashed == 1 < crowded - 0.1


@pytest.mark.parametrize("pool_size", [10, 50])
def test_the_flow_engine_sends_as_many_past_the_switch(pool_size):
    times = [cs.predict(f"atp:pool_size={pool_size}", STAR, 4.0 * N, engine=e).time for e in ("flow", "packet")]
    assert times[0] == pytest.approx(times[1], rel=0.03)


def test_jobs_on_their_own_hosts_and_slots_take_the_time_of_one(commsim):
    words = ("switch", "simulate", "--system", "atp", "--workers", "4", "--size", "1MB", "--no-values")
    (alone,) = commsim.results(*words)["results"]
    for row in commsim.results(*words, "--jobs", "3")["results"]:
        assert row["time_s"] == pytest.approx(alone["time_s"], rel=1e-9)
