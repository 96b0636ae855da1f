import dataclasses

import numpy as np
import pytest
from flow_cases import cases
from flow_networks import star_of
from hypothesis import given

from collectives.dense.ring import ring_all_reduce
from commsim.core.cost import LogGP
from commsim.core.curves import Curve, Curves
from commsim.core.placement import place
from commsim.core.program import Program
from commsim.core.result import Trace
from commsim.engine.critical_path import critical_path
from commsim.engine.flow import payload, simulate_plan
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import plan_flows


def walked(plan, size):
    """The critical path of a plan, and when everything happened."""
    n_bytes = payload(plan, size)
    times = simulate_plan(plan, n_bytes)
    return critical_path(plan, Trace(times.start, times.sent, times.done), n_bytes), times


def on_star(schedule, size, link):
    network = star_of(schedule.n_participants, link)
    return walked(plan_flows(network, [FlowJob(schedule, place(network, schedule.n_participants))]), size)[0]


@pytest.mark.slow
@given(cases())
def test_the_path_has_no_gap_and_its_terms_add_up_to_the_time(case):
    plan = plan_flows(case.network, case.jobs[:1], routing=case.routing, seed=case.seed)
    path, times = walked(plan, case.sizes[0])
    assert min(path.terms.values()) >= 0
    assert sum(path.terms.values()) == pytest.approx(times.done.max(), rel=1e-9)
    assert times.start[path.transfers[0]] == 0
    assert times.done[path.transfers[-1]] == times.done.max()
    for before, after in zip(path.transfers, path.transfers[1:], strict=False):
        # what has no cost may be followed at once, so that both are the same instant
        assert times.start[after] in (times.sent[before], times.done[before])


def test_a_ring_is_made_of_the_terms_of_its_closed_form():
    link, size, p = LogGP(L=3e-6, o=2e-6, B=1e9, gamma=4e-10), 1e6, 4
    path = on_star(ring_all_reduce(p), size, link)
    assert path.n_messages == path.n_flights == 2 * (p - 1)
    assert path.on_links == pytest.approx(2 * (p - 1) * size / p / link.B)
    assert path.overhead == pytest.approx(2 * (p - 1) * link.o)
    assert path.latency == pytest.approx(2 * (p - 1) * link.L)
    assert path.reduction == pytest.approx((p - 1) * size / p * link.gamma)


def test_messages_on_one_connection_follow_each_other_and_only_the_last_one_flies():
    p = Program(2, 5)
    for chunk in range(5):
        p.copy(chunk, src=0, dst=1)
    path = on_star(p.build(), 5e6, LogGP(L=1.0, B=1e6))
    assert path.transfers == (0, 1, 2, 3, 4)
    assert (path.n_messages, path.n_flights) == (5, 1)
    assert path.terms == pytest.approx({"bandwidth": 5.0, "overhead": 0.0, "latency": 1.0, "reduction": 0.0})


def test_measured_costs_are_split_into_bandwidth_latency_and_reduction():
    """A message takes 2 s at its port and 5 s in all, 7 s where it is added: three in a row, of which one is added."""
    size, at_port = np.array([1e6, 2e6]), np.array([2.0, 4.0])
    curves = Curves((
        Curve("copy", False, False, 0.0, size, at_port + 3, at_port),
        Curve("reduce", False, False, 0.0, size, at_port + 5, at_port),
    ))  # fmt: skip
    p = Program(4, 1)
    p.copy(0, src=0, dst=1)
    p.reduce(0, src=1, dst=2)
    p.copy(0, src=2, dst=3)
    network = dataclasses.replace(star_of(4, LogGP(B=curves.bandwidth)), curves=curves)
    path, times = walked(plan_flows(network, [FlowJob(p.build(), place(network, 4))]), 1e6)
    assert times.done.max() == pytest.approx(17.0)
    assert path.terms == pytest.approx({"bandwidth": 6.0, "overhead": 0.0, "latency": 9.0, "reduction": 2.0})


def test_the_node_that_added_longest_is_named():
    p = Program(3, 1)
    p.reduce(0, src=0, dst=1)
    p.reduce(0, src=1, dst=2)
    network = star_of(3, LogGP(B=1e9))
    network = dataclasses.replace(network, gamma=np.array([0.0, 1e-9, 3e-9, 0.0]))
    path, _ = walked(plan_flows(network, [FlowJob(p.build(), place(network, 3))]), 1e6)
    assert path.adder == 2
    assert path.reduction == pytest.approx(4e-3)


def test_where_nothing_is_sent_the_path_is_empty():
    path = on_star(ring_all_reduce(1), 1e6, LogGP())
    assert (path.transfers, sum(path.terms.values()), path.adder) == ((), 0.0, -1)
