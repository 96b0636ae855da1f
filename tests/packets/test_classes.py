"""Priorities of jobs as classes of a link: shared by weights, paused one by one."""

import dataclasses

import numpy as np
import pytest
from conserved import listed
from hypothesis import given
from hypothesis import strategies as st
from one_path import Dcqcn, Dctcp, Window, play

from collectives import COLLECTIVES
from commsim.core.errors import InputError
from commsim.core.network import HOST, SWITCH, Network
from commsim.core.placement import Placement
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import plan_flows
from commsim.packets.links.queues import Fabric
from topologies.star import star

RATE = 1.25e9
WIRE = 4178 / 4096
TO_A_SWITCH, FROM_A_HOST = [(0, 3), (1, 3), (2, 3)], [(0, 1), (0, 2), (0, 3)]


def jobs(ends, priorities):
    schedule = COLLECTIVES["binomial_broadcast"].build(2)
    return [FlowJob(schedule, Placement(pair), priority=p) for pair, p in zip(ends, priorities, strict=True)]


def times(network, ends, priorities, sizes, **options):
    run = play(plan_flows(network, jobs(ends, priorities)), sizes, **options)
    return np.array([r.time for r in run.results]), run


def when_shared(sizes, weights):
    """When messages that share one link by weights are over, in bytes of the link."""
    left, now, done = np.array(sizes, float), 0.0, np.zeros(len(sizes))
    while left.any():
        share = np.where(left > 0, weights, 0.0)
        share /= share.sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.nanmin(np.where(left > 0, left / share, np.nan))
        left = np.where(left - step * share < 1e-6 * np.array(sizes), 0.0, left - step * share)
        now += step
        done[(left == 0) & (done == 0)] = now
    return done


@pytest.mark.parametrize("ends", [TO_A_SWITCH, FROM_A_HOST], ids=["a switch's queue", "a host's queue"])
@pytest.mark.parametrize("weights", [(1, 1, 1), (3, 2, 1), (1, 4, 1), (0.5, 0.25, 8.0)])
@pytest.mark.parametrize("transport", [Window(), Dctcp()], ids=lambda t: t.name)
def test_a_link_is_shared_by_the_weights(ends, weights, transport):
    network, sizes = star(4, bandwidth=RATE, latency=1e-6), [4e6, 4e6, 4e6]
    fabric = Fabric(class_weights=weights)
    found, _ = times(network, ends, [0, 1, 2], sizes, transport=transport, fabric=fabric)
    assert found == pytest.approx(when_shared(sizes, weights) * WIRE / RATE, rel=0.02)


@given(
    weights=st.lists(st.floats(0.1, 10), min_size=3, max_size=3),
    sizes=st.lists(st.integers(1, 200_000), min_size=3, max_size=3),
    loss=st.sampled_from([0.0, 0.02]),
    pause_at=st.sampled_from([0.0, 20e3]),
    seed=st.integers(0, 10**6),
)
def test_no_packet_is_lost_or_sent_twice_whatever_the_weights(weights, sizes, loss, pause_at, seed):
    network = star(4, bandwidth=RATE, latency=1e-6)
    fabric = Fabric(class_weights=tuple(weights), loss=loss, pause_at=pause_at, resume_at=pause_at / 2)
    found, run = times(network, TO_A_SWITCH, [5, -1, 2], sizes, transport=Dctcp(), fabric=fabric, seed=seed)
    tables = run.tables.fabric
    assert len(tables.packet) - tables.state["n_free"] == len(listed(tables))
    assert (tables.held >= 0).all()
    if not loss:
        assert run.results[0].counters["retransmissions"] == 0
    again, _ = times(network, TO_A_SWITCH, [5, -1, 2], sizes, transport=Dctcp(), fabric=fabric, seed=seed)
    assert (found == again).all()


def two_switches(slow):
    """Hosts a, b on one switch, c and d on another; the link to d is slow."""
    src, dst = np.array([0, 1, 4, 5, 5]), np.array([4, 4, 5, 2, 3])
    rate = np.array([RATE, RATE, 2 * RATE, RATE, RATE / slow])
    return Network("two", ["a", "b", "c", "d", "s0", "s1"], [HOST] * 4 + [SWITCH] * 2, np.concatenate((src, dst)),
                   np.concatenate((dst, src)), np.tile(rate, 2), 1e-6)  # fmt: skip


@pytest.mark.parametrize("transport", [Window(window=4e6), Dcqcn()], ids=lambda t: t.name)
@pytest.mark.parametrize("priorities", [(0, 1), (1, 0)])
def test_only_the_priority_that_fills_a_switch_is_paused(transport, priorities):
    # a sends to d, whose link is ten times slower; b sends to c over the same link between the switches
    network, ends, sizes = two_switches(10), [(0, 3), (1, 2)], [4e6, 4e6]
    fabric = Fabric(pause_at=100e3, resume_at=50e3)
    options = {"transport": transport, "fabric": fabric}
    (_, alone), _ = times(network, [(1, 0), (1, 2)], [0, 1], [1.0, 4e6], **options)
    (_, same), run = times(network, ends, [0, 0], sizes, **options)
    (_, apart), other = times(network, ends, priorities, sizes, **options)
    assert apart == pytest.approx(alone, rel=0.02)
    if transport.name == "window":  # DCQCN is slowed by marks before pauses
        assert same > 2 * alone  # b waits behind a's packets wherever these are paused
    assert run.results[0].counters["drops_full"] == other.results[0].counters["drops_full"] == 0


def test_a_paused_priority_holds_no_more_than_headroom_allows():
    network, fabric = two_switches(10), Fabric(pause_at=100e3, resume_at=50e3)
    _, run = times(network, [(0, 3), (1, 3)], [0, 1], [4e6, 4e6], transport=Window(window=4e6), fabric=fabric)
    # each class may have 100 kB from the link between the switches, what comes until it stops, and a packet
    until_it_stops = 2 * RATE * 2e-6 + 2 * 4178
    slow = 4
    assert run.tables.fabric.link["peak"][slow] <= 2 * (100e3 + until_it_stops)
    assert run.tables.fabric.link["peak"][slow] > 100e3 + until_it_stops


@pytest.mark.nojit
@pytest.mark.parametrize(
    ("priorities", "fabric", "message"),
    [
        ([0, 1, 2], {"class_weights": (1.0, 2.0)}, "one weight for each priority of the jobs, 0, 1, 2, got 2"),
        ([0, 0, 0], {"class_weights": (1.0, 2.0)}, "one weight for each priority of the jobs, 0, got 2"),
        ([0, 1, 2], {"class_weights": (1.0, 0.0, 1.0)}, "weights of priorities are above 0"),
    ],
)
def test_weights_that_fit_no_priorities_are_refused(priorities, fabric, message):
    with pytest.raises(InputError, match=message):
        times(star(4, bandwidth=RATE), TO_A_SWITCH, priorities, 1e5, fabric=Fabric(**fabric))


@pytest.mark.nojit
def test_pauses_know_eight_priorities():
    ends, network = [(i, 9) for i in range(9)], star(10, bandwidth=RATE)
    with pytest.raises(InputError, match="know 8 priorities, and jobs have 9"):
        times(network, ends, range(9), 1e5, fabric=Fabric(pause_at=1e5, resume_at=5e4))
    times(network, ends, [*range(8), 7], 1e5, fabric=dataclasses.replace(Fabric(), pause_at=1e5, resume_at=5e4))
