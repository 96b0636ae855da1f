"""The reference's computed tables, and what the bounds have to do with each other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from switch_model.bounds import (
    limits,
    line_rate,
    loss_estimate,
    ring_disadvantage,
    ring_rate,
    server_rate,
    slots_for,
    throughput,
)
from switch_model.quantize import error_bound
from switch_model.system import System
from switch_model.systems import SYSTEMS

GBPS = 1e9 / 8
EARLY = System("early format", 32, header=180 - 128 + 24)


def udp(k: int) -> System:
    return SYSTEMS["switchml_udp"].build(elements_per_packet=k)


def rdma(k: int, packets: int) -> System:
    return SYSTEMS["switchml_rdma"].build(elements_per_packet=k, packets_per_message=packets)


@pytest.mark.parametrize(
    ("system", "wire", "rates", "without_gaps"),
    [
        (EARLY, 204, {10: 196.1, 25: 490.2, 100: 1960.8}, {10: 222.2, 100: 2222.2}),
        (udp(64), 332, {10: 241.0, 25: 602.4, 100: 2409.6}, {10: 259.7, 100: 2597.4}),
        (udp(256), 1100, {10: 290.9, 25: 727.3, 100: 2909.1}, {10: 297.4, 100: 2974.0}),
        (rdma(256, 1), 1126, {100: 2841.9}, {}),
        (rdma(256, 4), 1111, {100: 2880.3}, {}),
        (rdma(256, 16), 1107.25, {100: 2890.0}, {}),
        (rdma(64, 1), 358, {100: 2234.6}, {}),
        (rdma(64, 4), 343, {100: 2332.4}, {}),
        (rdma(64, 16), 339.25, {100: 2358.1}, {}),
    ],
)
def test_line_rates_are_the_reference_s_in_every_row(
    system: System, wire: float, rates: dict[int, float], without_gaps: dict[int, float]
) -> None:
    assert system.message_bytes / system.packets_per_message == wire
    for gbps, million in rates.items():
        assert round(line_rate(system, gbps * GBPS) / 1e6, 1) == million
    for gbps, million in without_gaps.items():
        assert round(line_rate(system, gbps * GBPS, between_frames=False) / 1e6, 1) == million


@pytest.mark.parametrize(("n", "million"), [(2, 3125.0), (4, 2083.3), (8, 1785.7), (16, 1666.7)])
def test_the_bound_of_the_ring_and_of_servers_that_are_workers(n: int, million: float) -> None:
    assert round(ring_rate(100 * GBPS, n) / 1e6, 1) == million


@given(n=st.integers(2, 1000), efficiency=st.floats(0.01, 1.0))
def test_a_switch_is_faster_than_a_ring_by_almost_two_and_never_slower(n: int, efficiency: float) -> None:
    factor = ring_disadvantage(n)
    assert 1 <= factor < 2
    whole = 100 * GBPS * efficiency / 4  # a link full of such payload, which a switch can use
    assert whole / ring_rate(100 * GBPS, n, efficiency) == pytest.approx(factor)


@given(n=st.integers(2, 1000), m=st.integers(1, 1000))
def test_dedicated_servers_are_limited_by_their_own_links_until_there_is_one_for_each_worker(n: int, m: int) -> None:
    rate = server_rate(100 * GBPS, n, m)
    assert rate == pytest.approx(3125e6 * min(m, n) / n)
    assert server_rate(100 * GBPS, n, n) >= ring_rate(100 * GBPS, n)


@given(gbps=st.sampled_from([10, 25, 100, 400]), microseconds=st.floats(0.5, 500))
def test_the_slots_of_the_rule_reach_line_rate_and_a_quarter_of_them_does_not(gbps: int, microseconds: float) -> None:
    system, bandwidth, round_trip = udp(64), gbps * GBPS, microseconds * 1e-6
    slots = slots_for(system, bandwidth, round_trip)
    assert slots & (slots - 1) == 0
    assert slots * 332 / bandwidth >= round_trip * (1 - 1e-12)
    assert throughput(system, bandwidth, round_trip, slots) == pytest.approx(line_rate(system, bandwidth))
    if slots >= 4:
        few = throughput(system, bandwidth, round_trip, slots // 4)
        assert few == pytest.approx(slots // 4 * 64 / round_trip)
        assert few < line_rate(system, bandwidth) / 1.99


@pytest.mark.parametrize(("exponent", "n"), [(0, 8), (-3, 16), (5, 2)])
def test_a_worker_s_rounding_error_is_half_a_step_and_the_sum_s_n_times_that(exponent: int, n: int) -> None:
    one = n * 2.0**exponent / (2 * (2**31 - 1))
    assert error_bound([exponent], n)[0] == pytest.approx(n * one, rel=1e-12)


def test_losses_cost_timeouts_of_the_unluckiest_slot() -> None:
    system = SYSTEMS["switchml_udp"].build(elements_per_packet=64, pool_size=128)
    found = loss_estimate(system, 64 * 128 * 50, 8, 10 * GBPS, 20e-6, 0.001)
    assert found.timeout_chance == pytest.approx(1 - 0.999**16)
    assert found.rounds == 50
    assert found.timeouts == pytest.approx(50 * (1 - 0.999**16))
    assert found.timeouts < found.worst_timeouts < 50
    lossless = loss_estimate(system, 64 * 128 * 50, 8, 10 * GBPS, 20e-6, 0.0)
    assert lossless.time == pytest.approx(64 * 128 * 50 / line_rate(system, 10 * GBPS))
    assert found.time == pytest.approx(lossless.time + found.worst_timeouts * 1e-3)


def test_the_largest_of_several_binomial_numbers_is_what_drawing_them_gives() -> None:
    import numpy as np

    system = SYSTEMS["switchml_udp"].build(elements_per_packet=64, pool_size=64)
    found = loss_estimate(system, 64 * 64 * 200, 4, 10 * GBPS, 20e-6, 0.01)
    drawn = np.random.default_rng(0).binomial(200, found.timeout_chance, (20_000, 64)).max(axis=1)
    assert found.worst_timeouts == pytest.approx(drawn.mean(), abs=5 * drawn.std() / 20_000**0.5)


def test_a_slot_that_always_waits_waits_once_a_round() -> None:
    system = SYSTEMS["switchml_udp"].build(pool_size=4, window=4)
    found = loss_estimate(system, 256 * 4 * 3, 32, 10 * GBPS, 20e-6, 1 - 1e-16)
    assert (found.timeout_chance, found.worst_timeouts) == (1.0, 3.0)


@pytest.mark.parametrize("name", ["atp", "sharp", "switchml_rdma"])
def test_the_estimate_knows_its_limits(name: str) -> None:
    with pytest.raises(InputError, match="single packets that clock themselves"):
        loss_estimate(SYSTEMS[name].build(), 1000, 8, GBPS, 1e-5, 0.01)


def test_what_has_no_bound_is_refused() -> None:
    for refused in (
        lambda: ring_rate(GBPS, 1),
        lambda: ring_rate(0.0, 4),
        lambda: ring_rate(GBPS, 4, 1.5),
        lambda: server_rate(GBPS, 4, 0),
        lambda: slots_for(EARLY, GBPS, 0.0),
        lambda: throughput(EARLY, float("inf"), 1e-6),
        lambda: loss_estimate(udp(64), 0, 8, GBPS, 1e-5, 0.01),
        lambda: loss_estimate(udp(64), 10, 8, GBPS, 1e-5, 1.0),
    ):
        with pytest.raises(InputError):
            refused()


def test_each_limit_has_a_name_and_the_least_of_them_is_the_throughput():
    udp, iswitch = SYSTEMS["switchml_udp"].build(pool_size=64), SYSTEMS["iswitch"].build()
    found = limits(udp, 12.5e9, 5e-6, 8)
    assert found == {"link": udp.line_rate(12.5e9), "pool": 64 * udp.elements / 5e-6}
    assert min(found.values()) == throughput(udp, 12.5e9, 5e-6)
    assert set(limits(SYSTEMS["switchml_udp"].build(pool_size=64, window=32), 12.5e9, 5e-6, 8)) == {"link", "window"}
    assert limits(iswitch, 12.5e9, 5e-6, 8)["adders"] == iswitch.elements / iswitch.unit_time(8)
