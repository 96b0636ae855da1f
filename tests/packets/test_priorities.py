"""Priorities and rate caps of jobs in packets, what goes first and how fast a sender is; headroom of pauses."""

import numpy as np
import pytest
from one_path import Dcqcn, Dctcp, Window, play

from collectives import COLLECTIVES
from commsim.core.network import Network
from commsim.core.placement import Placement
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import plan_flows
from commsim.packets.links.queues import Fabric, usual_queues
from topologies.leaf_spine import leaf_spine
from topologies.star import star

RATE, WIRE = 1.25e9, 4178 / 4096


def one_way(network: Network, ends: list[tuple[int, int]], **shares: list[float]) -> list[FlowJob]:
    """A message for each pair of hosts; each keyword has a value for each."""
    schedule = COLLECTIVES["binomial_broadcast"].build(2)
    each = [dict(zip(shares, values, strict=True)) for values in zip(*shares.values(), strict=True)]
    return [
        FlowJob(schedule, Placement([network.hosts[a], network.hosts[b]]), **more)
        for (a, b), more in zip(ends, each, strict=True)
    ]


def times(network, jobs, size, **options):
    run = play(plan_flows(network, jobs), size, **options)
    return [r.time for r in run.results], run


@pytest.mark.parametrize("ends", [[(0, 3), (1, 3), (2, 3)], [(0, 1), (0, 2), (0, 3)]])  # a switch's queue; a host's
def test_messages_of_three_priorities_share_a_link_one_after_the_other(ends):
    network, size = star(4, bandwidth=RATE, latency=1e-6), 2e6
    found, _ = times(network, one_way(network, ends, priority=[2, 0, 1]), size)
    alone = size * WIRE / RATE
    assert found == pytest.approx([3 * alone, alone, 2 * alone], rel=0.02)


@pytest.mark.parametrize("transport", [Window(), Dctcp(), Dcqcn()])
def test_the_first_priority_is_as_fast_as_alone(transport):
    network = leaf_spine(2, 1, 3, RATE)
    ends = [(0, 3), (1, 4), (2, 5)]
    fabric = Fabric() if transport.name == "window" else usual_queues(transport.name, RATE)
    options = {"transport": transport, "fabric": fabric}
    (first, *_), _ = times(network, one_way(network, ends, priority=[0, 1, 1]), 1e6, **options)
    (alone,), _ = times(network, one_way(network, ends[:1], priority=[0]), 1e6, **options)
    shared, _ = times(network, one_way(network, ends, priority=[1, 1, 1]), 1e6, **options)
    assert first <= 1.1 * alone
    assert shared[0] > 1.8 * alone


def test_equal_priorities_change_nothing():
    network = leaf_spine(2, 1, 2, RATE)
    ends = [(0, 2), (1, 3)]
    with_, _ = times(network, one_way(network, ends, priority=[0, 0]), 1e6)
    without, _ = times(network, one_way(network, ends, weight=[1.0, 1.0]), 1e6)
    assert with_ == without


@pytest.mark.parametrize("transport", [Window(), Dctcp(), Dcqcn()])
def test_a_rate_cap_spaces_packets_at_their_sender(transport):
    network, size = star(3, bandwidth=RATE, latency=1e-6), 4e6
    jobs = one_way(network, [(0, 2), (1, 2)], rate_cap=[RATE / 10, np.inf])
    (capped, free), _ = times(network, jobs, size, transport=transport)
    assert capped == pytest.approx(size * WIRE / (RATE / 10), rel=0.01)
    if transport.name == "window":  # the others have 0.9 of the link, less what marks take
        assert free == pytest.approx(size * WIRE / (0.9 * RATE), rel=0.02)


def test_a_cap_above_the_link_changes_nothing():
    network = star(2, bandwidth=RATE, latency=1e-6)
    found = [times(network, one_way(network, [(0, 1)], rate_cap=[cap]), 1e6)[0] for cap in (2 * RATE, np.inf)]
    assert found[0] == found[1]


def test_pauses_lose_nothing_with_headroom_and_something_without():
    latency, pause, senders = 10e-6, 50e3, 3
    network = star(senders + 1, bandwidth=RATE, latency=latency)
    jobs = one_way(network, [(k, senders) for k in range(senders)], weight=[1.0] * senders)
    headroom = 2 * latency * RATE + 2 * 4178
    for each, lost in ((pause + headroom, False), (pause, True)):
        fabric = Fabric(buffer=senders * each, pause_at=pause, resume_at=pause / 2)
        plan = plan_flows(network, jobs)
        run = play(plan, 2e6, transport=Window(1e9), fabric=fabric)
        assert (run.results[0].counters["drops_full"] > 0) == lost
        if not lost:
            assert run.tables.fabric.link["peak"].max() > senders * pause  # some of the headroom was needed
