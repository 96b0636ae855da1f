"""Phases of a step: they hold all bytes that leave a machine over the busiest link, in the time of the step."""

import dataclasses

import pytest

import commsim as cs
from commsim.core.errors import InputError
from commsim.training.steps.step_phases import step_phases

FABRIC = "dgx-h100@star:machines=8"


def step_of(batch=32, network=FABRIC, **layout):
    return cs.training_step(
        "llama3-8b", "h100", network, global_batch=batch, factor=1.0, **({"overhead": "0us"} | layout)
    )


def n_bytes(phases, pattern=None, length=None):
    """Bytes of phases, of those with a pattern, or whose groups have so many ranks."""
    return sum(
        phase.n_bytes for phase in phases
        if pattern in (None, phase.pattern) and length in (None, len(phase.groups[0]) if phase.groups else 0)
    )  # fmt: skip


@pytest.mark.parametrize("vp", [1, 2])
def test_stages_on_their_own_machines_send_activations_parameters_and_gradients(vp):
    step = step_of(tp=8, pp=4, vp=vp)
    phases, period, link = step_phases(step)
    costs, m = step.costs, step.setting.micro_batches
    assert link == "m2.nic0:switch0"  # the first machine of the second stage
    assert n_bytes(phases, "send") == pytest.approx(m * costs.message.size * 2 * vp)  # both ways
    around = [one for part in range(1, 4 * vp, 4) for after in (False, True) for one in costs.around(part, after=after)]
    assert n_bytes(phases, "ring", 2) == pytest.approx(sum(one.size / 2 for one in around), rel=1e-6)
    inside = [
        one for part in range(1, 4 * vp, 4) for back in (False, True) for one in costs.in_pass(part, backward=back)
    ]
    sent = m * sum(one.size * one.times * 7 / 8 for one in inside)
    assert n_bytes(phases, "ring", 8) == pytest.approx(sent, rel=1e-6)
    assert period < step.time


def test_tensor_parallel_ranks_of_two_machines_send_in_the_passes():
    step = step_of(tp=16, pp=1, batch=4, network="dgx-h100@star:machines=2")
    phases, period, _ = step_phases(step)
    costs = step.costs
    sizes = [one.size * one.times for part in range(costs.n_parts) for back in (False, True)
             for one in costs.in_pass(part, backward=back)]  # fmt: skip
    rings = 4 * sum(sizes) * 15 / 16  # of four micro-batches: each rank sends each array but its own part on
    assert n_bytes(phases) == pytest.approx(rings, rel=0.1)
    assert 0 < step.time - period <= sum(step.exposed.values())  # latencies stay in the iteration


def test_phases_of_more_micro_batches_than_are_simulated_one_by_one_hold_their_bytes():
    few, many = step_of(tp=8, pp=4, vp=2, batch=32), step_of(tp=8, pp=4, vp=2, batch=64)
    (a, *_), (b, *_) = step_phases(few), step_phases(many)
    messages = 16 * few.costs.message.size * 4
    assert n_bytes(b, "send") - n_bytes(a, "send") == pytest.approx(messages, rel=1e-6)


def test_gradients_of_replicas_come_last():
    step = step_of(tp=8, pp=1, batch=32, replicas=2)
    phases, *_ = step_phases(step)
    (last,) = step.costs.of_replicas()
    assert phases[-1].groups == step.setting.layout.groups("replica")
    assert phases[-1].n_bytes == pytest.approx(last.size, rel=1e-6)  # an all-reduce of two sends the array once


def test_messages_that_nothing_hides_are_in_the_passes():
    hidden, exposed = (step_of(tp=8, pp=8, overlap=kinds) for kinds in (("pipeline",), ()))
    sent = [n_bytes(step_phases(step)[0], "send") for step in (hidden, exposed)]
    assert sent[0] == pytest.approx(sent[1], rel=1e-6)
    assert sent[0] > 0


def test_a_job_of_a_step_is_placed_with_all_its_gpus_and_takes_the_step():
    step = step_of(tp=8, pp=4)
    job = step.job("big", gap="1ms")
    assert (job.name, job.n_gpus, job.is_demand) == ("big", 64, True)
    assert n_bytes(job.phases) == pytest.approx(n_bytes(step.job().phases))
    assert len(job.phases) < len(step_of(tp=8, pp=4, vp=2).job().phases)
    cluster = {"topology": {"spec": FABRIC}, "hosts": {}}
    (best,) = cs.place_jobs(cluster, [job], n=1).candidates
    assert len(best.placement["big"]) == 64
    placed = dataclasses.replace(job, placement=tuple(f"m{m}.gpu{i}" for m in range(8) for i in range(8)))
    found = cs.rank_placements(cluster, {"own": [placed]}).candidates[0]
    assert found.alone["big"] == pytest.approx(step.time, rel=1e-9)


def test_a_step_inside_a_machine_has_no_link_and_one_put_together_no_phases():
    inside = step_of(tp=8, network="dgx-h100", batch=8)
    phases, _, link = step_phases(inside)
    assert link is None
    assert {len(phase.groups[0]) if phase.groups else 8 for phase in phases} == {8}
    with pytest.raises(InputError, match="only where it was predicted"):
        dataclasses.replace(inside, costs=None).job()
    with pytest.raises(InputError, match="at most 200000 passes"):
        step_of(tp=8, batch=8 * 100_000).job()
