"""Overheads occupy a message engine of the host, or of a machine's NIC, whatever the number of cables."""

import contextlib
import dataclasses

import numpy as np
import pytest
from message_networks import B, L, O, flow_time, from_others, job_on, mesh, to_others, two_gpus_on_nics

from collectives.dense.all_to_all import direct_all_to_all
from commsim.core.errors import InputError
from commsim.core.network_queries import ports_are_few
from commsim.core.placement import Placement
from commsim.core.program import Program
from commsim.engine.alpha_beta import simulate_alpha_beta
from commsim.engine.flow import simulate_flows
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_paths import FlowPaths
from commsim.engine.flow_plan import plan_flows
from commsim.routing.message_engines import crowded_engines, engine_nodes
from commsim.routing.routing import find_routes
from topologies.torus import torus


@pytest.mark.parametrize("n", [2, 5, 16])
def test_messages_over_cables_of_their_own_pay_one_after_the_other(n):
    network, schedule, size = mesh(n), direct_all_to_all(n), n * 64
    expected = (n - 1) * O + 64 / B + L
    assert flow_time(network, schedule, size) == pytest.approx(expected, rel=1e-9)
    # LogGP has one port as well, which sends the bytes one after the other
    one_port = simulate_alpha_beta(plan_flows(network, [job_on(network, schedule)]), size)[0].time
    assert one_port == pytest.approx((n - 1) * (O + 64 / B) + L, rel=1e-9)


@pytest.mark.parametrize(("engines", "in_turn"), [(1, 12), (2, 6), (3, 4), (12, 1), (20, 1)])
def test_so_many_overheads_are_spent_at_once_as_a_host_has_engines(engines, in_turn):
    network = mesh(13, message_engines=engines)
    assert flow_time(network, to_others(13), 13 * 100) == pytest.approx(in_turn * O + 100 / B + L, rel=1e-9)


@pytest.mark.parametrize("simulate", [simulate_flows, simulate_alpha_beta])
def test_a_receiver_with_many_cables_receives_one_after_the_other(simulate):
    network = mesh(9, overhead=0.0, recv_overhead=O)
    plan = plan_flows(network, [job_on(network, from_others(9))])
    assert simulate(plan, 9 * 64.0)[0].time == pytest.approx(8 * O + L, rel=2e-2)


def test_bytes_do_not_occupy_the_engine():
    network, size = mesh(5), 5 * 2.0**20
    assert flow_time(network, to_others(5), size) == pytest.approx(4 * O + 2**20 / B + L, rel=1e-9)


def test_the_engine_of_a_machine_is_its_nic():
    network = two_gpus_on_nics(1)
    gpus = np.array([[0, 4], [1, 5], [0, 1]])
    routes = find_routes(network, gpus[:, 0], gpus[:, 1])
    assert [network.nodes[e] for e in engine_nodes(network, gpus, routes, 0)] == ["m0.nic0", "m0.nic0", "m0.gpu0"]
    assert [network.nodes[e] for e in engine_nodes(network, gpus, routes, 1)] == ["m1.nic0", "m1.nic0", "m0.gpu1"]
    found = crowded_engines(network, gpus, routes, 0)
    assert found is not None
    assert found.connection.tolist() == [0, 1]
    assert network.nodes[found.node[0]] == "m0.nic0"


@pytest.mark.parametrize("simulate", [simulate_flows, simulate_alpha_beta])
def test_gpus_that_share_a_nic_share_its_engine(simulate):
    network = two_gpus_on_nics(1)
    p = Program(4, n_chunks=1)
    p.copy(0, src=[0, 1], dst=[2, 3])
    time = simulate(plan_flows(network, [FlowJob(p.build(), Placement(network.endpoints))]), 8.0)[0].time
    assert time == pytest.approx(2 * O, rel=5e-2)


@pytest.mark.parametrize("simulate", [simulate_flows, simulate_alpha_beta])
def test_jobs_on_one_host_share_its_engine(simulate):
    network = mesh(4)
    plan = plan_flows(network, [FlowJob(to_others(2), Placement([0, 1])), FlowJob(to_others(2), Placement([0, 2]))])
    assert max(r.time for r in simulate(plan, 16.0)) == pytest.approx(2 * O + L, rel=2e-2)


@pytest.mark.parametrize("method", ["recurrence", "simultaneous", "symmetric", "bottlenecks"])
@pytest.mark.parametrize("schedule", ["direct_all_to_all", "to_others"])
def test_every_way_that_answers_agrees_with_the_event_engine(method, schedule):
    network = dataclasses.replace(torus((4, 4), bandwidth=B, latency=L), overhead=O)
    made = direct_all_to_all(16) if schedule == "direct_all_to_all" else to_others(16)
    paths = FlowPaths(network, job_on(network, made), None, 0)
    expected = paths.simulate(4096.0, method="events").time
    assert expected >= 15 * O
    with contextlib.suppress(InputError):  # where it declines
        assert paths.simulate(4096.0, method=method).time == pytest.approx(expected, rel=1e-9)


def test_a_host_has_at_least_one_engine():
    with pytest.raises(ValueError, match="at least 1 message engine, got 0"):
        mesh(3, message_engines=0)
    assert (mesh(3).message_engines == 1).all()


@pytest.mark.parametrize(("engines", "are_few"), [(1, False), (11, False), (12, True)])
def test_hosts_with_few_ports_are_known_without_a_look_at_messages(engines, are_few):
    network = mesh(13, message_engines=engines)
    nodes = np.array([[0, i] for i in range(1, 13)], np.int32)
    crowded = crowded_engines(network, nodes, find_routes(network, nodes[:, 0], nodes[:, 1]), 0)
    assert (ports_are_few(network), crowded is None) == (are_few, are_few)
    assert not ports_are_few(two_gpus_on_nics(1))  # which share the engine of their NIC
