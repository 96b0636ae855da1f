"""Slowdowns: 1 for a message by itself, the number of senders in an incast, and never below 1."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.cost import Framing
from commsim.packets.transports.spraying import Spraying
from commsim.traffic.host_messages import plan_messages, run_messages
from commsim.traffic.patterns import HostMessages, incast, permutation
from commsim.traffic.slowdown import alone, busiest_port, cumulative
from topologies.fat_tree import fat_tree
from topologies.leaf_spine import leaf_spine
from topologies.star import star

RATE = 1e10


PACKETS = Framing(4096, 64)


def slowdowns(network, sent, spraying):
    run = run_messages(network, sent, spraying)
    return run.received / alone(run.layout, sent, PACKETS)


def bound(network, sent, framing):
    return busiest_port(plan_messages(network, sent), network, sent, framing)


def one(src, dst, size):
    return HostMessages(np.array([src]), np.array([dst]), np.array([size]), np.zeros(1))


@pytest.mark.parametrize("to", [1, 2, 15])  # the same switch, the same pod, another one
def test_a_message_of_one_packet_is_stored_and_forwarded_at_each_link(to):
    network = fat_tree(4, RATE, latency=1e-6)
    hops = {1: 2, 2: 4, 15: 6}[to]
    spraying = Spraying("nscc", "mixed")
    expected = hops * (1e-6 + (1000 + spraying.header) / RATE)
    run = run_messages(network, one(0, to, 1000), spraying)
    assert alone(run.layout, one(0, to, 1000), PACKETS)[0] == pytest.approx(expected)
    assert run.received[0] == pytest.approx(expected)


@settings(max_examples=settings().max_examples * 2 // 3)
@given(size=st.integers(1, 300_000), transport=st.sampled_from(["nscc", "rccc", "ndp", "dctcp", "window"]))
def test_a_message_by_itself_is_hardly_slowed_down_and_never_faster_than_alone(size, transport):
    network, spraying = leaf_spine(2, 4, 2, RATE, latency=1e-6), Spraying(transport, "oblivious", 16)
    slow = slowdowns(network, one(0, 3, size), spraying)[0]
    assert 1.0 - 1e-9 <= slow < 1.25


def test_an_incast_slows_messages_down_as_many_times_as_it_has_senders():
    network, spraying = star(9, bandwidth=RATE, latency=1e-6), Spraying("ndp", "ecmp", 1)
    sent = incast(9, 4_000_000, senders=8)
    assert slowdowns(network, sent, spraying).max() == pytest.approx(8, rel=0.03)


def test_a_distribution_ends_with_the_slowest_and_rises():
    network, spraying = leaf_spine(4, 4, 4, RATE, latency=1e-6), Spraying("nscc", "mixed")
    sent = permutation(16, 200_000, seed=3)
    found = slowdowns(network, sent, spraying)
    points = cumulative(found)
    assert list(points.values()) == sorted(points.values())
    assert points["1"] == found.max()
    assert (found <= points["0.5"]).mean() >= 0.5
    assert found.min() >= 1.0 - 1e-9


def test_the_busiest_host_is_the_one_that_needs_longest_at_its_own_rate():
    network = star(4, RATE)
    names = [network.link_name(i) for i in range(network.n_links)]
    rate = network.bandwidth.copy()
    rate[names.index("h2:switch0")], rate[names.index("switch0:h3")] = RATE / 2, RATE / 8
    network = dataclasses.replace(network, bandwidth=rate)
    bare = Framing(4096, 0)
    sent = HostMessages(np.array([0, 2, 1]), np.array([1, 1, 0]), np.array([4096, 3 * 4096, 4096]), np.zeros(3))
    assert bound(network, sent, bare) == pytest.approx(6 * 4096 / RATE)  # host 2 sends 3 at half the rate
    assert bound(network, one(0, 3, 4096), bare) == pytest.approx(8 * 4096 / RATE)
    assert bound(network, one(3, 0, 4096), bare) == pytest.approx(4096 / RATE)
