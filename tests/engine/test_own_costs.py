"""Jobs that share a network and see it with costs of their own: each by itself takes what it takes on its network."""

import dataclasses

import numpy as np
import pytest

from collectives import COLLECTIVES
from commsim.core.placement import Placement
from commsim.engine.flow import simulate_flows
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import plan_flows
from commsim.prediction.inputs import load_network

PLAIN = load_network("star:n_hosts=8,bandwidth=100Gbps,latency=1us")
STAR = dataclasses.replace(PLAIN, overhead=np.full(PLAIN.n_nodes, 2e-6))
SIZE = 1e6


def seen(**changes):
    """Return the star with other costs."""
    return dataclasses.replace(STAR, **changes)


def on(ranks, network=None, **job):
    schedule = COLLECTIVES["ring_all_reduce"].build(len(ranks))
    return FlowJob(schedule, Placement(ranks), network=network, **job)


def times(*jobs, network=STAR):
    return [result.time for result in simulate_flows(plan_flows(network, jobs), SIZE)]


SLOWER = seen(bandwidth=STAR.bandwidth * 0.5, latency=STAR.latency * 3, overhead=np.zeros(STAR.n_nodes))


def test_a_job_that_shares_no_link_takes_what_it_takes_on_its_own_network():
    left, right = [0, 1, 2, 3], [4, 5, 6, 7]
    (by_itself,) = times(on(left), network=SLOWER)
    (plain,) = times(on(right))
    assert by_itself != pytest.approx(plain, rel=0.1)
    assert times(on(left, SLOWER), on(right)) == pytest.approx([by_itself, plain], rel=1e-12)
    assert times(on(right), on(left, SLOWER)) == pytest.approx([plain, by_itself], rel=1e-12)


@pytest.mark.parametrize(("part", "alone", "shared"), [(0.5, 2.0, 2.0), (0.75, 4 / 3, 2.0), (0.25, 4.0, 4.0)])
def test_the_part_of_a_link_that_a_job_reaches_is_no_other_jobs(part, alone, shared):
    none = np.zeros(STAR.n_links), np.zeros(STAR.n_nodes)
    link = seen(latency=none[0], overhead=none[1])
    reached = dataclasses.replace(link, bandwidth=link.bandwidth * part)
    message = COLLECTIVES["binomial_broadcast"].build(2)
    jobs = [FlowJob(message, Placement([0, k]), network=reached) for k in (1, 2)]
    seconds = SIZE / STAR.bandwidth[0]
    assert times(jobs[0], network=link) == pytest.approx([alone * seconds], rel=1e-12)
    assert times(*jobs, network=link) == pytest.approx([shared * seconds] * 2, rel=1e-12)


def test_what_the_others_leave_over_is_taken_up_to_a_jobs_own_part():
    link = seen(latency=np.zeros(STAR.n_links), overhead=np.zeros(STAR.n_nodes))
    message = COLLECTIVES["binomial_broadcast"].build(2)
    slow = FlowJob(message, Placement([0, 1]), network=dataclasses.replace(link, bandwidth=link.bandwidth * 0.25))
    seconds = SIZE / STAR.bandwidth[0]
    found = times(slow, FlowJob(message, Placement([0, 2])), network=link)
    assert found == pytest.approx([4 * seconds, 4 / 3 * seconds], rel=1e-12)  # a quarter, and three quarters
