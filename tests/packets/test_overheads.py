"""Packets pay overheads in message engines as flows do (`tests/routing/test_message_engines.py`)."""

import pytest
from message_networks import L, O, from_others, job_on, mesh, to_others, two_gpus_on_nics

from collectives.dense.all_to_all import direct_all_to_all
from commsim.core.placement import Placement
from commsim.core.program import Program
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import plan_flows
from commsim.packets.run_packets import simulate_packets


def slowest(network, jobs, size):
    return max(result.time for result in simulate_packets(plan_flows(network, jobs), size))


def test_packets_pay_as_the_flow_engine_does():
    network, schedule = mesh(16), direct_all_to_all(16)
    assert slowest(network, [job_on(network, schedule)], 1024.0) == pytest.approx(15 * O + L, rel=5e-3)
    engines = mesh(16, message_engines=15)
    assert slowest(engines, [job_on(engines, schedule)], 1024.0) == pytest.approx(O + L, rel=2e-2)


def test_a_receiver_with_many_cables_receives_one_after_the_other():
    network = mesh(9, overhead=0.0, recv_overhead=O)
    assert slowest(network, [job_on(network, from_others(9))], 9 * 64.0) == pytest.approx(8 * O + L, rel=2e-2)


def test_gpus_that_share_a_nic_share_its_engine():
    network = two_gpus_on_nics(1)
    p = Program(4, n_chunks=1)
    p.copy(0, src=[0, 1], dst=[2, 3])
    jobs = [FlowJob(p.build(), Placement(network.endpoints))]
    assert slowest(network, jobs, 8.0) == pytest.approx(2 * O, rel=5e-2)


def test_jobs_on_one_host_share_its_engine():
    jobs = [FlowJob(to_others(2), Placement([0, n])) for n in (1, 2)]
    assert slowest(mesh(4), jobs, 16.0) == pytest.approx(2 * O + L, rel=2e-2)
