"""The systems' facts against published numbers, and what is refused."""

import inspect

import pytest

from commsim.core.errors import InputError
from commsim.papers.measures import simulated_rate
from switch_model.system import System
from switch_model.systems import SYSTEMS
from switch_model.systems.sharp import LOW_LATENCY, STREAMING

GBPS = 1e9 / 8


@pytest.mark.parametrize("name", list(SYSTEMS))
def test_every_system_can_be_built_and_says_what_it_is(name: str) -> None:
    entry = SYSTEMS[name]
    system = entry.build()
    assert isinstance(system, System)
    assert system.name.startswith(name)
    document = inspect.getdoc(entry.build) or ""
    assert all(section in document for section in ("Parameters", "Returns", "References"))
    assert all(f"{parameter} :" in document for parameter in entry.parameters)
    assert system.max_fan_in >= 2


@pytest.mark.parametrize(
    ("system", "bandwidth", "million"),
    [
        (("switchml_udp", {"elements_per_packet": 64}), 10, 241.0),
        (("switchml_udp", {"elements_per_packet": 64}), 100, 2409.6),
        (("switchml_udp", {}), 10, 290.9),
        (("switchml_udp", {}), 100, 2909.1),
        (("switchml_rdma", {"packets_per_message": 1}), 100, 2841.9),
        (("switchml_rdma", {}), 100, 2880.3),
        (("switchml_rdma", {"packets_per_message": 16}), 100, 2890.0),
        (("switchml_rdma", {"elements_per_packet": 64}), 100, 2332.4),
        (("atp", {}), 100, 2334.3),
        (("atp", {}), 10, 233.4),
    ],
)
def test_line_rates_are_those_of_the_reference(
    system: tuple[str, dict[str, int]], bandwidth: int, million: float
) -> None:
    name, parameters = system
    rate = SYSTEMS[name].build(**parameters).line_rate(bandwidth * GBPS)
    assert rate / 1e6 == pytest.approx(million, abs=0.05)


def test_a_packet_of_atp_is_308_bytes_and_24_between_frames() -> None:
    atp = SYSTEMS["atp"].build()
    assert (atp.elements, atp.packet_bytes(0) - 24) == (62, 308)
    assert (atp.shared, atp.server, atp.ecn_window, atp.pool_size) == (True, True, True, 20_000)
    assert (atp.arithmetic, atp.quantizer) == ("saturate", "fixed")


def sharp_time(n_bytes: int, bandwidth: float = 100 * GBPS, link_latency: float = 0.1e-6) -> float:
    """On two levels of switches: the first segment passes every unit, the others queue behind it at one."""
    system = SYSTEMS["sharp"].build(mode="low_latency")
    n_segments = -(-n_bytes // system.payload)
    links = 4 * (link_latency + (min(n_bytes, system.payload) + system.header) / bandwidth)
    return system.host_latency + links + 2 * system.segment_time + (n_segments - 1) * system.segment_time


@pytest.mark.parametrize(("n_bytes", "microseconds"), [(8, 2.83), (4096, 14.48)])
def test_the_constants_of_sharp_give_the_two_points_that_they_were_fitted_to(n_bytes: int, microseconds: float) -> None:
    assert sharp_time(n_bytes) * 1e6 == pytest.approx(microseconds, rel=0.01)


def test_sharp_streams_at_the_published_share_of_the_links_from_16_kib_on_and_has_no_other_mode() -> None:
    stream, small = (SYSTEMS["sharp"].build(mode=mode) for mode in (STREAMING, LOW_LATENCY))
    assert (SYSTEMS["sharp"].build(n_bytes=16383), SYSTEMS["sharp"].build(n_bytes=16384)) == (small, stream)
    assert stream.line_rate(1.0) * stream.element_bytes == pytest.approx(0.95, abs=0.001)
    assert (stream.segment_time, small.payload) == (0.0, 256)
    with pytest.raises(InputError, match="low_latency, streaming, by_size, got 'fast'"):
        SYSTEMS["sharp"].build(mode="fast")


@pytest.mark.parametrize("name", ["sharp", "nvls", "flare"])
def test_what_adds_floats_of_four_bytes_adds_those_of_two(name: str) -> None:
    four, two = SYSTEMS[name].build(), SYSTEMS[name].build(element_bytes=2)
    assert four.lossless == (name != "flare")
    assert four.arithmetic == "float"
    assert (two.elements, two.payload) == (2 * four.elements, four.payload)
    with pytest.raises(InputError, match="2 or 4 bytes, got 8"):
        SYSTEMS[name].build(element_bytes=8)


def test_panama_spreads_a_job_over_several_trees_and_heeds_marks() -> None:
    panama = SYSTEMS["panama"].build()
    assert panama.n_trees > 1
    assert (panama.ecn_window, panama.shared, panama.server, panama.arithmetic) == (True, False, False, "float")


@pytest.mark.parametrize("pool_size", [1, 5, 7, 10, 63])
def test_slots_that_trees_cannot_share_evenly_are_refused(pool_size: int) -> None:
    """Chunks that use a slot in turn would meet on different trees, and sums go wrong without any loss."""
    with pytest.raises(InputError, match="pool_size is a multiple of its 4 trees"):
        SYSTEMS["panama"].build(pool_size=pool_size)


def steady_rate(system: System, n_workers: int, gbps: float) -> float:
    """Elements a second, without start and end."""
    return simulated_rate(system, gbps * GBPS, n_workers)


@pytest.mark.parametrize(("n_workers", "gbps"), [(4, 10), (8, 10), (4, 100)])
def test_adders_of_iswitch_keep_up_with_four_ports_of_10_gbps_and_limit_more_or_faster_ones(
    n_workers: int, gbps: float
) -> None:
    system = SYSTEMS["iswitch"].build()
    adders = 200e6 * 8 / n_workers  # eight numbers in each cycle, of which every worker's are one share
    links = system.line_rate(gbps * GBPS)
    assert (adders < links) == (n_workers * gbps > 40)
    assert steady_rate(system, n_workers, gbps) == pytest.approx(min(adders, links), rel=1e-3)


def test_the_switch_of_flare_is_as_fast_as_its_cores_together() -> None:
    many, few = (SYSTEMS["flare"].build(cores=cores) for cores in (512, 32))
    assert steady_rate(many, 8, 100) == pytest.approx(many.line_rate(100 * GBPS), rel=1e-3)
    assert steady_rate(few, 8, 100) == pytest.approx(32 * 1e9 / 4 / 8, rel=1e-3)  # 4 cycles for each of 8 numbers
    # a sum leaves when the last packet's handler has run, which takes as long whatever the number of cores
    alone = few.unit_time(1) + few.switch_latency
    assert alone == pytest.approx(many.unit_time(1) + many.switch_latency) == pytest.approx(4 * 256 / 1e9)
    with pytest.raises(InputError, match="flare: cores must be above 0, got 0"):
        SYSTEMS["flare"].build(cores=0)
    with pytest.raises(InputError, match="flare: adding_time must be 0 to 1 s, got 2"):
        SYSTEMS["flare"].build(clock=1.0)


def test_messages_of_netreduce_are_rdma_writes_whose_first_packet_says_more_and_credit_bounds_them() -> None:
    system = SYSTEMS["netreduce"].build()
    rdma = SYSTEMS["switchml_rdma"].build(packets_per_message=system.packets_per_message)
    every = range(system.packets_per_message)
    more = [system.packet_bytes(i) - rdma.packet_bytes(i) for i in every]
    assert more[0] > 0
    assert not any(more[1:])
    with pytest.raises(InputError, match="netreduce: messages must be at least 1, got 0"):
        SYSTEMS["netreduce"].build(messages=0)
    one = SYSTEMS["netreduce"].build(messages=1)
    message = one.packets_per_message * one.elements
    # packets follow each other up and down: only the last one's way down comes after the message
    there_and_back = (one.message_bytes + one.packet_bytes(one.packets_per_message - 1)) / (100 * GBPS) + 2e-6
    assert steady_rate(one, 8, 100) == pytest.approx(message / there_and_back, rel=1e-3)
    assert steady_rate(system, 8, 100) == pytest.approx(system.line_rate(100 * GBPS), rel=1e-3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"elements": 0}, "elements must be at least 1"),
        ({"packets_per_message": 3}, "power of two"),
        ({"versions": 3}, "1 or 2 versions"),
        ({"window": 9, "pool_size": 8}, "needs as many slots"),
        ({"window": 6, "pool_size": 8, "packets_per_message": 4}, "whole messages"),
        ({"rto": 0.0}, "an rto of at least 1 ps"),
        ({"rto": 9e-13}, "an rto of at least 1 ps"),
        ({"rto": 1e300}, "rto must be 0 to 1000 s, got 1e.300"),
        ({"adding_time": -1e-9}, "adding_time must be 0 to 1 s"),
        ({"arithmetic": "decimal"}, "unknown arithmetic"),
        ({"quantizer": "some"}, "unknown quantizer"),
    ],
)
def test_facts_that_contradict_each_other_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        System(**({"name": "odd", "elements": 4, "pool_size": 8, "window": 8} | change))  # type: ignore[arg-type]
