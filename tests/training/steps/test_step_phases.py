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


def n_bytes(phases):
    return sum(phase.n_bytes for phase in phases)


def around(costs, parts):
    """Bytes that each of two data parallel ranks sends of the parameters and gradients of some parts of the model."""
    return sum(one.size / 2 for part in parts for after in (False, True) for one in costs.around(part, after=after))


@pytest.mark.parametrize("vp", [1, 2])
def test_stages_on_their_own_machines_send_activations_parameters_and_gradients(vp):
    step = step_of(tp=8, pp=4, vp=vp)
    phases, link = step_phases(step)
    costs, m = step.costs, step.setting.micro_batches
    messages = m * costs.message.size * 2 * vp  # of stages that have one before and one after them: both ways
    assert link == "m2.nic0:switch0"  # the first machine of the second stage
    assert n_bytes(phases) == pytest.approx(messages + around(costs, range(1, 4 * vp, 4)), rel=1e-6)
    assert max(phase.rate for phase in phases) <= cs.load_network(FABRIC).bandwidth.max()
    assert phases[-1].offset + phases[-1].duration <= step.time


def test_tensor_parallel_ranks_of_two_machines_send_in_the_passes():
    """Only the passes send: half of each gathered or scattered array crosses from one machine to the other."""
    step = step_of(tp=16, pp=1, batch=4, network="dgx-h100@star:machines=2")
    phases, _ = step_phases(step)
    costs = step.costs
    sizes = [one.size * one.times for part in range(costs.n_parts) for back in (False, True)
             for one in costs.in_pass(part, backward=back)]  # fmt: skip
    rings = 4 * sum(sizes) * 15 / 16  # each rank but one in 16 sends each array on: over 1 of the 8 NICs of a machine
    assert rings / 16 < n_bytes(phases) < rings
    assert sum(phase.duration for phase in phases) == pytest.approx(step.time, rel=0.1)


def test_phases_of_more_micro_batches_than_are_simulated_one_by_one_end_with_the_step():
    few, many = step_of(tp=8, pp=4, vp=2, batch=32), step_of(tp=8, pp=4, vp=2, batch=64)
    (a, _), (b, _) = step_phases(few), step_phases(many)
    messages = 16 * few.costs.message.size * 4
    assert n_bytes(b) - n_bytes(a) == pytest.approx(messages, rel=1e-6)
    ends = [step.time - phases[-1].offset - phases[-1].duration for step, phases in ((few, a), (many, b))]
    assert ends[0] == pytest.approx(ends[1], rel=1e-6)


def test_gradients_of_replicas_come_last():
    step = step_of(tp=8, pp=1, batch=32, replicas=2)
    phases, _ = step_phases(step)
    (last,) = step.costs.of_replicas()
    assert phases[-1].n_bytes == pytest.approx(last.size, rel=1e-6)  # an all-reduce of two sends the array once
    assert phases[-1].offset + phases[-1].duration == pytest.approx(step.time)


def test_messages_that_nothing_hides_are_in_the_passes():
    hidden, exposed = (step_of(tp=8, pp=8, overlap=kinds) for kinds in (("pipeline",), ()))
    sent = [n_bytes(step_phases(step)[0]) for step in (hidden, exposed)]
    assert sent[0] == pytest.approx(sent[1], rel=1e-6)
    assert sent[0] > 0


def test_a_job_of_a_step_is_placed_with_all_its_gpus():
    step = step_of(tp=8, pp=4)
    job = step.job("big", gap="1ms")
    assert (job.name, job.n_gpus, job.period) == ("big", 64, step.time)
    assert n_bytes(job.phases) == pytest.approx(n_bytes(step.job().phases))
    assert len(job.phases) < len(step_of(tp=8, pp=4, vp=2).job().phases)
    cluster = {"topology": {"spec": FABRIC}, "hosts": {}}
    (best,) = cs.place_jobs(cluster, [job], n=1).candidates
    assert len(best.placement["big"]) == 64


def test_a_step_inside_a_machine_or_put_together_has_no_link():
    inside = step_of(tp=8, network="dgx-h100", batch=8)
    assert step_phases(inside) == ((), None)
    with pytest.raises(InputError, match="only where it was predicted"):
        dataclasses.replace(inside, costs=None).job()
    with pytest.raises(InputError, match="at most 200000 passes"):
        step_of(tp=8, batch=8 * 100_000).job()
