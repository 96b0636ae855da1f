import itertools

import pytest

from commsim import predict
from commsim.jobs.job_entries import Composition, JobEntry
from commsim.jobs.several_jobs import prepare_jobs
from commsim.prediction.inputs import load_network
from commsim.prediction.read import with_default_overhead
from commsim.training.cost_by_simulation import network_costs
from commsim.training.exchanges import ExchangesOnLinks
from commsim.training.task_graph import Task, TaskGraph, simulate_graph

NETWORK = "star:n_hosts=8,bandwidth=10Gbps"
ALL = tuple(range(8))


def exchange(name, operation, size, group=ALL, after=(), duration=0.0):
    return Task(name, (f"w.{name}",), duration, operation, group, size, after=after)


def run(*tasks, network=NETWORK):
    costs = network_costs(network)
    links = ExchangesOnLinks(costs)
    return simulate_graph(TaskGraph(tasks), costs, links), links


def test_exchanges_that_overlap_are_the_jobs_of_a_file_with_their_starts():
    found, links = run(
        exchange("a", "all_reduce", 1e8), Task("compute", ("w.compute",), 0.05),
        exchange("b", "all_gather", 1e8, after=(1,)), exchange("c", "all_to_all", 4e7, ALL[:4], after=(0,)),
    )  # fmt: skip
    entries = [
        JobEntry("a", "ring_all_reduce", ALL, 1e8), JobEntry("b", "ring_all_gather", ALL, 1e8, start=0.05),
        JobEntry("c", "pairwise_all_to_all", ALL[:4], 4e7, start=float(found.start[3])),
    ]  # fmt: skip
    network = with_default_overhead(load_network(NETWORK))
    jobs = prepare_jobs(Composition(tuple(entries), ()), network).predict()[0]
    assert found.end[[0, 2, 3]] == pytest.approx([e.start + r.time for e, r in zip(entries, jobs, strict=True)], 1e-12)
    assert found.end[0] > predict("ring_all_reduce", NETWORK, 1e8, n_ranks=8).time * 1.4
    assert links.n_shared == 2 + (found.start[3] < found.end[2])


def test_what_shares_no_link_or_no_time_takes_what_it_takes_alone():
    alone = predict("ring_all_reduce", NETWORK, 1e7, n_ranks=4).time
    halves, links = run(exchange("a", "all_reduce", 1e7, ALL[:4]), exchange("b", "all_reduce", 1e7, ALL[4:]))
    assert halves.end == pytest.approx([alone, alone], 1e-9)
    in_turn, links = run(exchange("a", "all_reduce", 1e7, ALL[:4], duration=1e-3),
                         exchange("b", "all_reduce", 1e7, ALL[:4], after=(0,)))  # fmt: skip
    assert in_turn.end == pytest.approx([alone + 1e-3, 2 * alone + 1e-3], 1e-9)
    assert links.n_shared == 0


def test_the_order_in_which_tasks_are_listed_changes_no_time():
    tasks = [
        exchange("a", "all_reduce", 3e7),
        exchange("b", "all_gather", 2e7, ALL[2:6]),
        exchange("c", "send", 5e6, (1, 2)),
    ]
    ends = set()
    for order in itertools.permutations(range(3)):
        found, _ = run(*(tasks[i] for i in order))
        ends.add(tuple(round(float(found.end[order.index(i)]), 12) for i in range(3)))
    assert len(ends) == 1
