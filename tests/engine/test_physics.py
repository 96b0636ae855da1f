"""Times that were tampered with are refused, and the message names the culprit."""

import dataclasses

import numpy as np
import pytest
from flow_networks import star_of

from collectives.dense.ring import ring_all_reduce
from commsim.core.cost import LogGP
from commsim.core.errors import PhysicsError
from commsim.core.placement import place
from commsim.core.program import Program
from commsim.core.schedule import Schedule
from commsim.engine.flow import payload, simulate_plan
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import FlowPlan, plan_flows
from commsim.engine.flow_times import FlowTimes
from commsim.engine.physics import check_physics

LINK = LogGP(L=0.5, o=0.25, B=1.0, gamma=0.125)


def simulated(schedule: Schedule, size: float) -> tuple[FlowPlan, FlowTimes]:
    network = star_of(schedule.n_ranks, LINK)
    plan = plan_flows(network, [FlowJob(schedule, place(network, schedule.n_ranks))])
    return plan, simulate_plan(plan, payload(plan, size))


@pytest.fixture
def ring() -> tuple[FlowPlan, FlowTimes]:
    """Ring of 4 with 4 bytes a message: 24 transfers in 6 rounds."""
    return simulated(ring_all_reduce(4), 16.0)


def tampered(times: FlowTimes, field: str, transfer: int, factor: float) -> FlowTimes:
    values = getattr(times, field).copy()
    values[transfer] *= factor
    return dataclasses.replace(times, **{field: values})


def test_true_times_pass(ring: tuple[FlowPlan, FlowTimes]) -> None:
    check_physics(*ring)


@pytest.mark.parametrize("transfer", [5, 23])
def test_a_transfer_that_is_complete_too_soon_is_named(ring: tuple[FlowPlan, FlowTimes], transfer: int) -> None:
    plan, times = ring
    with pytest.raises(PhysicsError, match=f"transfer {transfer} was complete after .* but takes at least"):
        check_physics(plan, tampered(times, "done", transfer, 0.5))


def test_a_message_sent_faster_than_its_bottleneck_is_named(ring: tuple[FlowPlan, FlowTimes]) -> None:
    plan, times = ring
    with pytest.raises(PhysicsError, match=r"transfer 7 was sent after .* but takes at least 4\.25 s"):
        check_physics(plan, tampered(times, "sent", 7, 0.9))


def test_a_start_before_what_it_waits_for_is_named(ring: tuple[FlowPlan, FlowTimes]) -> None:
    # Transfer 4 of the second round sends on what transfer 3 of the first brings to its rank.
    plan, times = ring
    with pytest.raises(PhysicsError, match="transfer 4 started before transfer 3, which it waits for, ended"):
        check_physics(plan, tampered(times, "start", 4, 0.5))


def test_a_start_before_its_rank_came_is_named(ring: tuple[FlowPlan, FlowTimes]) -> None:
    plan, times = ring
    late = dataclasses.replace(times, ready=times.ready + np.array([0, 0, 1.0, 0]))
    with pytest.raises(PhysicsError, match=r"transfer 2 was started after 0\.0 s, but takes at least 1\.0 s"):
        check_physics(plan, late)


def test_a_link_that_carried_more_than_it_can_is_named(ring: tuple[FlowPlan, FlowTimes]) -> None:
    plan, times = ring
    with pytest.raises(PhysicsError, match=r"link (h1:switch0|switch0:h2) carried .* s of bytes in"):
        check_physics(plan, tampered(times, "bytes_on_wire", 1, 100.0))


def test_two_messages_of_one_connection_at_once_are_refused() -> None:
    p = Program(2, 2)
    p.copy([0, 1], src=0, dst=1)
    plan, times = simulated(p.build(), 2.0)
    with pytest.raises(PhysicsError, match="two transfers of one connection overlap"):
        check_physics(plan, tampered(times, "start", 1, 0.5))


@pytest.mark.parametrize("field", ["bytes_on_wire", "start", "sent", "done"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_no_number_is_refused(ring: tuple[FlowPlan, FlowTimes], field: str, value: float) -> None:
    plan, times = ring
    values = getattr(times, field).copy()
    values[3] = value
    with pytest.raises(PhysicsError, match=f"transfer 3 has {field} = {value}"):
        check_physics(plan, dataclasses.replace(times, **{field: values}))


def test_a_slack_of_rounding_passes(ring: tuple[FlowPlan, FlowTimes]) -> None:
    plan, times = ring
    check_physics(plan, tampered(times, "done", 5, 1 - 1e-12))
