"""Cables of a testbed that are cut for a while: what is refused, and what a collective really loses."""

import dataclasses

import numpy as np
import pytest

import commsim as cs
from commsim.prediction.build import prepare
from commsim.real.testbed.flaps import LEAST_RTO, FlappedRun, kernel_rto, measure_flaps
from commsim.real.testbed.forwarding import next_hops
from commsim.real.testbed.launch import Ranks
from commsim.real.testbed.layout import lay_out
from commsim.real.testbed.measure import ProcessorLoad
from commsim.real.testbed.own_testbed import temporary_testbed
from commsim.routing.flaps import read_flaps
from commsim.routing.pinned import turned_away

CLOS = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2,bandwidth=100Mbps,latency=0s"
NETWORK = dataclasses.replace(cs.load_network(CLOS), routing="dmodk")


def test_routers_send_nothing_over_a_cable_that_they_avoid():
    flaps = read_flaps(["link:leaf0:spine0@1s+1s"], NETWORK, detection=0.25)
    assert flaps is not None
    for now, avoids in ((1.1, False), (1.3, True), (2.1, True), (2.3, False)):
        avoided = flaps.avoided(NETWORK, now)
        hops = next_hops(turned_away(NETWORK, avoided), NETWORK.routing)
        ends = set(NETWORK.endpoints.tolist())
        used = {link for (_, to), links in hops.items() for link in links if to in ends}
        assert avoided.any() == avoids
        assert bool(used & set(flaps.flaps[0].links)) == (not avoids)


def test_tcp_stands_still_for_its_timeout_a_round_trip_and_the_window_that_goes_again():
    rate = NETWORK.bandwidth.min()
    assert kernel_rto(lay_out(NETWORK)) == pytest.approx(LEAST_RTO + 2 * 131250 / rate)


def test_what_is_lost_is_the_difference_of_the_medians():
    times = np.array([1.0, 2.0, 9.0])
    one = FlappedRun("x", 1.0, times, times + 4, 2.0, 3.0, 0.0, ProcessorLoad(1.0, 0.0, 0.0, 2))
    assert (one.lost, one.error) == (4.0, -0.25)


@pytest.mark.deep
@pytest.mark.slow
@pytest.mark.needs_kernel("testbed")
def test_a_cut_cable_costs_at_least_a_timeout_and_the_sums_are_right():
    flaps = read_flaps(["link:leaf0:spine0@100ms+100ms"], NETWORK, detection=0.5)
    assert flaps is not None
    with temporary_testbed(NETWORK) as (place, layout):
        flaps = dataclasses.replace(flaps, rto=kernel_rto(layout))
        prepared = prepare("ring_all_reduce", NETWORK, placement="spread")
        with Ranks(place, layout, prepared.placement.nodes.tolist()) as ranks:
            found = measure_flaps(ranks, prepared, 4_000_000, flaps, iterations=3)
    assert found.wrong == 0
    assert found.predicted_lost == pytest.approx(flaps.rto)
    # A run that other processes slow down has slack, which a pause uses up first, and may end earlier than the slower
    # ones without a pause. How often TCP pauses depends on the load, so that nothing is an upper bound.
    if not found.load.disturbed:
        assert found.lost > LEAST_RTO
