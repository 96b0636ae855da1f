"""Cells, costs and jobs as values: what is made of numbers that have been measured."""

import dataclasses

import numpy as np
import pytest

from commsim.prediction.build import prepare
from commsim.prediction.inputs import load_network
from commsim.real.testbed.cable_shape import FRAME
from commsim.real.testbed.calibration import SeatCosts
from commsim.real.testbed.measure import FOREIGN, WAITING, LinkCounters, ProcessorLoad, as_cell
from commsim.real.testbed.share import ShiftedRun

QUIET = ProcessorLoad(wall=1.0, busy=0.6, ours=0.5, cores=2)
SIZE = 1 << 20


@pytest.fixture(scope="module")
def ready():
    return prepare("ring_all_reduce", load_network("star:n_hosts=4,bandwidth=200Mbps,latency=0s"))


def cell(ready, *, load=QUIET, waiting=1.0, wrong=0.0, scale=1.0, samples=(0.1, 0.2, 0.3)):
    link_bytes = ready.predict(float(SIZE), framing=FRAME.framing).link_bytes
    packets = np.full(len(link_bytes), 1000.0)
    counts = LinkCounters(2 * scale * link_bytes, packets, waiting * packets, 0 * packets)
    found = {"samples": list(samples), "size": float(SIZE), "wrong": wrong}
    return as_cell(ready, found, counts, load, 2)


def test_a_cell_has_the_median_and_the_bytes_of_one_run(ready):
    one = cell(ready)
    assert one.result.time == pytest.approx(0.2)
    assert one.spread == pytest.approx((0.11, 0.29))
    assert one.bytes_error == pytest.approx(0, abs=1e-12)
    assert one.error == pytest.approx(one.predicted.time / 0.2 - 1)
    assert one.invalid == ""


@pytest.mark.parametrize("scale", [0.98, 1.03])
def test_bytes_that_were_not_predicted_are_seen_both_ways(ready, scale):
    assert cell(ready, scale=scale).bytes_error == pytest.approx(abs(scale - 1))


def test_one_wrong_link_is_enough(ready):
    one = cell(ready)
    link_bytes = one.result.link_bytes.copy()
    link_bytes[3] *= 1.2
    one = dataclasses.replace(one, result=dataclasses.replace(one.result, link_bytes=link_bytes))
    assert one.bytes_error == pytest.approx(0.2)


def test_a_wrong_sum_says_nothing_about_the_network(ready):
    assert cell(ready, wrong=1.0).invalid == "the result was wrong"


def test_foreign_work_makes_a_run_invalid(ready):
    edge = 0.5 + 2 * FOREIGN
    assert cell(ready, load=ProcessorLoad(1.0, edge - 0.01, 0.5, 2)).invalid == ""
    assert cell(ready, load=ProcessorLoad(1.0, edge + 0.02, 0.5, 2)).invalid == "others used 26% of the processors"


def test_a_link_that_did_not_set_the_pace_makes_a_run_invalid(ready):
    assert cell(ready, waiting=WAITING + 0.01).invalid == ""
    assert "the processors set the pace: only 70% of the packets" in cell(ready, waiting=0.7).invalid


def test_links_that_are_idle_for_the_most_time_need_not_wait():
    slow = load_network("star:n_hosts=4,bandwidth=200Mbps,latency=1s")
    assert cell(prepare("ring_all_reduce", slow), waiting=0.0).invalid == ""


def test_load_is_told_apart_into_ours_theirs_and_nobodys():
    load = ProcessorLoad(wall=10.0, busy=12.0, ours=8.0, cores=2)
    assert load.foreign == pytest.approx(0.2)
    assert load.idle == pytest.approx(0.4)
    assert ProcessorLoad(10.0, 8.0, 9.0, 2).foreign == 0


def test_costs_are_put_on_seats_and_their_links_alone():
    network = load_network("star:n_hosts=2,bandwidth=200Mbps,latency=1ms")
    switch = network.nodes.index("sw0") if "sw0" in network.nodes else 2
    changed = SeatCosts(L=5e-4, o=1e-4, efficiency=0.98).on(network)
    np.testing.assert_allclose(changed.bandwidth, 0.98 * network.bandwidth)
    np.testing.assert_allclose(changed.latency, np.where(network.src == switch, 1e-3, 1.5e-3))
    np.testing.assert_allclose(changed.overhead, [1e-4, 1e-4, 0])


def test_two_jobs_are_judged_by_their_medians():
    times = np.array([[1.0, 2.0, 9.0], [2.0, 2.5, 3.0]])
    both = ShiftedRun(0.1, times, np.array([1.0, 1.0]), np.array([2.2, 2.0]), QUIET)
    np.testing.assert_allclose(both.measured, [2.0, 2.5])
    np.testing.assert_allclose(both.error, [0.1, -0.2])
