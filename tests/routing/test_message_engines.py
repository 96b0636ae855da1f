"""Overheads occupy a message engine of the host, or of a machine's NIC, whatever the number of cables."""

import contextlib
import dataclasses

import numpy as np
import pytest

from collectives.dense.all_to_all import direct_all_to_all
from commsim.core.errors import InputError
from commsim.core.network import GPU, NIC, SWITCH, Network, both_ways
from commsim.core.placement import Placement
from commsim.core.program import Program
from commsim.engine.alpha_beta import simulate_alpha_beta
from commsim.engine.flow import simulate_flows
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_paths import FlowPaths
from commsim.engine.flow_plan import plan_flows
from commsim.packets.messages import simulate_packets
from commsim.routing.message_engines import crowded_engines, engine_nodes
from commsim.routing.routing import find_routes
from topologies.fully_connected import fully_connected
from topologies.torus import torus

O, B, L = 1e-6, 12.5e9, 500e-9  # noqa: E741


def job_on(network, schedule):
    return FlowJob(schedule, Placement(network.endpoints[: schedule.n_ranks]))


def mesh(n, **costs):
    return dataclasses.replace(fully_connected(n, B, L), **({"overhead": O} | costs))


def flow_time(network, schedule, size):
    return simulate_flows(plan_flows(network, [job_on(network, schedule)]), size)[0].time


def to_others(n):
    """Rank 0 sends a chunk to every other rank, all at once."""
    p = Program(n, n_chunks=n)
    p.copy(np.arange(1, n), src=0, dst=np.arange(1, n))
    return p.build()


def from_others(n):
    p = Program(n, n_chunks=n)
    p.copy(np.arange(1, n), src=np.arange(1, n), dst=0)
    return p.build()


@pytest.mark.parametrize("n", [2, 5, 16])
def test_messages_over_cables_of_their_own_pay_one_after_the_other(n):
    network, schedule, size = mesh(n), direct_all_to_all(n), n * 64
    expected = (n - 1) * O + 64 / B + L
    assert flow_time(network, schedule, size) == pytest.approx(expected, rel=1e-9)
    # LogGP has one port as well, which sends the bytes one after the other
    one_port = simulate_alpha_beta(plan_flows(network, [job_on(network, schedule)]), size)[0].time
    assert one_port == pytest.approx((n - 1) * (O + 64 / B) + L, rel=1e-9)


def test_packets_pay_as_the_flow_engine_does():
    network, schedule = mesh(16), direct_all_to_all(16)
    plan = plan_flows(network, [job_on(network, schedule)])
    assert simulate_packets(plan, 1024.0)[0].time == pytest.approx(15 * O + L, rel=5e-3)
    engines = mesh(16, message_engines=15)
    plan = plan_flows(engines, [job_on(engines, schedule)])
    assert simulate_packets(plan, 1024.0)[0].time == pytest.approx(O + L, rel=2e-2)


@pytest.mark.parametrize(("engines", "in_turn"), [(1, 12), (2, 6), (3, 4), (12, 1), (20, 1)])
def test_so_many_overheads_are_spent_at_once_as_a_host_has_engines(engines, in_turn):
    network = mesh(13, message_engines=engines)
    assert flow_time(network, to_others(13), 13 * 100) == pytest.approx(in_turn * O + 100 / B + L, rel=1e-9)


@pytest.mark.parametrize("simulate", ["flow", "packet", "alpha-beta"])
def test_a_receiver_with_many_cables_receives_one_after_the_other(simulate):
    network = mesh(9, overhead=0.0, recv_overhead=O)
    plan = plan_flows(network, [job_on(network, from_others(9))])
    run = {"flow": simulate_flows, "packet": simulate_packets, "alpha-beta": simulate_alpha_beta}[simulate]
    assert run(plan, 9 * 64.0)[0].time == pytest.approx(8 * O + L, rel=2e-2)


def test_bytes_do_not_occupy_the_engine():
    network, size = mesh(5), 5 * 2.0**20
    assert flow_time(network, to_others(5), size) == pytest.approx(4 * O + 2**20 / B + L, rel=1e-9)


def two_gpus_on_nics(n_nics):
    """Two GPUs and NICs on one PCIe switch, and as many on the other side of a switch of the network."""
    nodes, kind, machine, ends = [], [], [], []
    for m in (0, 1):
        first = len(nodes)
        nodes += [f"m{m}.gpu0", f"m{m}.gpu1", f"m{m}.pcie", *(f"m{m}.nic{i}" for i in range(n_nics))]
        kind += [GPU, GPU, SWITCH] + [NIC] * n_nics
        machine += [m] * (3 + n_nics)
        ends += [(first, first + 2), (first + 1, first + 2)]
        ends += [(first + 2, first + 3 + i) for i in range(n_nics)]
        ends += [(first + 3 + i, 2 * (3 + n_nics)) for i in range(n_nics)]
    src, dst = both_ways(*np.array(ends).T)
    overhead = np.array([0.0 if k == SWITCH else O for k in kind] + [0.0])
    return Network("pair", [*nodes, "leaf"], [*kind, SWITCH], src, dst, B, 0.0, overhead=overhead,
                   machine=[*machine, -1])  # fmt: skip


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


@pytest.mark.parametrize("simulate", [simulate_flows, simulate_alpha_beta, simulate_packets])
def test_gpus_that_share_a_nic_share_its_engine(simulate):
    network = two_gpus_on_nics(1)
    p = Program(4, n_chunks=1)
    p.copy(0, src=[0, 1], dst=[2, 3])
    time = simulate(plan_flows(network, [FlowJob(p.build(), Placement(network.endpoints))]), 8.0)[0].time
    assert time == pytest.approx(2 * O, rel=5e-2)


@pytest.mark.parametrize("simulate", [simulate_flows, simulate_alpha_beta, simulate_packets])
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
