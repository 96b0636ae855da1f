"""What receivers do with messages in packet runs: their port's overhead, and adding what they get to what they have."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from one_path import Dcqcn, Dctcp, Window, play

from collectives import COLLECTIVES
from commsim.core.placement import place
from commsim.core.program import Program
from commsim.engine.flow import simulate_flows
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import plan_flows
from commsim.packets.links.queues import Fabric
from commsim.packets.packet_rows import COMPLETE
from topologies.star import star

RATE = 12.5e9


def planned(collective, n_ranks, **costs):
    network = dataclasses.replace(star(n_ranks, RATE, 1e-6), **costs)
    return plan_flows(network, [FlowJob(COLLECTIVES[collective].build(n_ranks), place(network, n_ranks))])


def to_one(n_senders, op, **costs):
    """Every other rank sends a chunk of its own to rank 0; each waits for no other."""
    network = dataclasses.replace(star(n_senders + 1, RATE, 1e-6), **costs)
    p = Program(n_senders + 1, n_senders)
    for src in range(1, n_senders + 1):
        getattr(p, op)(src - 1, src=src, dst=0)
    return plan_flows(network, [FlowJob(p.build(), place(network, n_senders + 1))])


@pytest.mark.nojit
def test_a_message_is_complete_when_it_has_been_added():
    plain, costly = (play(to_one(1, "reduce", gamma=g), 1e5).times.done for g in (0.0, 1e-9))
    assert costly - plain == pytest.approx(1e5 * 1e-9, abs=1e-12)


@pytest.mark.nojit
def test_a_copy_is_not_added():
    plain, costly = (play(to_one(2, "copy", gamma=g), 2e5).times.done for g in (0.0, 1e-9))
    np.testing.assert_array_equal(plain, costly)


@pytest.mark.nojit
@pytest.mark.parametrize("n_senders", [2, 5])
def test_a_node_adds_one_message_at_a_time(n_senders):
    # Adding takes 100 us, and the link some 8: messages wait for the adder and not for the link.
    size = 1e5 * n_senders
    run = play(to_one(n_senders, "reduce", gamma=1e-9), size)
    first = play(to_one(n_senders, "reduce"), size).times.done.min()
    np.testing.assert_allclose(np.sort(run.times.done), first + 1e-4 * np.arange(1, n_senders + 1), rtol=1e-9)


def test_messages_to_one_port_wait_for_its_overhead_one_after_the_other():
    base, late = (play(to_one(4, "copy", recv_overhead=o), 4 * 4096).times.done.max() for o in (0.0, 1e-4))
    assert late - base == pytest.approx(4e-4, abs=1e-12)


@pytest.mark.sample(8)
@pytest.mark.parametrize("collective", ["ring_all_reduce", "halving_doubling_all_reduce", "binomial_reduce"])
@pytest.mark.parametrize("costs", [{"gamma": 2e-10}, {"recv_overhead": 20e-6}, {"gamma": 1e-10, "recv_overhead": 5e-6}])
@pytest.mark.parametrize("transport", [Window(), Dcqcn()], ids=lambda t: t.name)
def test_a_collective_costs_as_much_more_as_in_the_flow_engine(collective, costs, transport):
    costly, plain = planned(collective, 4, **costs), planned(collective, 4)
    in_flows = simulate_flows(costly, 3.2e7)[0].time - simulate_flows(plain, 3.2e7)[0].time
    runs = [play(plan, 3.2e7, transport=transport).results[0].time for plan in (costly, plain)]
    assert runs[0] - runs[1] == pytest.approx(in_flows, rel=1e-3)


@settings(max_examples=settings().max_examples * 2 // 3)
@given(
    transport=st.sampled_from([Dctcp(), Dcqcn()]),
    loss=st.sampled_from([0.0, 0.03]),
    gamma=st.sampled_from([1e-11, 1e-9, 3e-8]),
    recv_overhead=st.sampled_from([0.0, 1e-6]),
    seed=st.integers(0, 10**9),
    collective=st.sampled_from(["ring_all_reduce", "double_tree_all_reduce", "ring_reduce_scatter"]),
)
def test_whatever_is_lost_each_node_adds_everything_once_and_in_order(
    transport, loss, gamma, recv_overhead, seed, collective
):
    plan = planned(collective, 4, gamma=gamma, recv_overhead=recv_overhead)
    run = play(plan, 4e5, transport=transport, fabric=Fabric(loss=loss), seed=seed)
    flows = run.tables.fabric
    done = flows.times[COMPLETE]
    for f, receiver in enumerate(flows.receiver):
        of_flow = done[flows.queue[slice(receiver["end"] - (plan.connection_of == f).sum(), receiver["end"])]]
        assert (np.diff(of_flow) >= 0).all()
        assert receiver["message"] == receiver["end"]
    for node in np.unique(flows.receiver["node"]):
        here = np.flatnonzero((flows.receiver["node"][plan.connection_of] == node) & (flows.adding > 0))
        here = here[np.argsort(done[here], kind="stable")]
        assert (np.diff(done[here]) >= flows.adding[here[1:]]).all()
