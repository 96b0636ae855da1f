import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.training.backward_trace import BackwardTrace
from commsim.training.cost_by_formula import closed_form_costs
from commsim.training.data_parallel import train
from commsim.training.data_parallel_setting import TrainingSetting
from commsim.training.policies import TRAINING_POLICIES

TRACE = BackwardTrace(np.array([4e6, 40e6, 8e6]), np.array([1.0, 2.0, 3.0]), np.ones(3))
SETTING = TrainingSetting(TRACE, 4, closed_form_costs(1e-3, 20e6))


@pytest.mark.parametrize("policy", list(TRAINING_POLICIES))
def test_every_policy_computes_all_of_an_iteration_and_is_no_faster_than_its_link(policy):
    training = train(policy, SETTING)
    assert training.alone == pytest.approx(6)
    assert training.iteration_time >= 6
    assert training.iteration_time >= training.timeline.busy("worker.network")
    assert training.exposed_communication == pytest.approx(training.iteration_time - 6)
    assert training.scaling == pytest.approx(6 / training.iteration_time)
    whole = {"fsdp": 3, "zero3": 3}.get(policy, 2) * 52e6
    moved = sum(
        task.size * (2 if task.operation == "all_reduce" else 1)
        for task in training.timeline.graph.tasks
        if task.operation
    )
    assert moved == pytest.approx(whole)


UPDATED = BackwardTrace(TRACE.n_bytes, TRACE.ready, TRACE.forward, update=np.array([0.5, 1.0, 1.5]))


@pytest.mark.parametrize("policy", list(TRAINING_POLICIES))
def test_every_policy_runs_the_optimiser_after_the_exchange_and_before_the_parameters_are_used(policy):
    """Workers update all parameters, or, where these are split, their own part of them."""
    shares = {"zero1": 4, "zero2": 4, "zero3": 4, "fsdp": 4}
    training = train(policy, TrainingSetting(UPDATED, 4, SETTING.time_of))
    assert training.alone == pytest.approx(6 + 3 / shares.get(policy, 1))
    timeline, plain = training.timeline, train(policy, SETTING)
    assert plain.iteration_time < training.iteration_time <= plain.iteration_time + 3 / shares.get(policy, 1) + 1e-9
    tasks = timeline.graph.tasks
    updates = [i for i, task in enumerate(tasks) if task.name.startswith(("optimiser", "update "))]
    assert updates
    for i in updates:
        assert any(tasks[j].operation for j in tasks[i].after) or policy in ("bytescheduler", "out_of_order", "p3")


def test_a_barrier_waits_for_all_and_then_updates_all():
    """Without overlap nothing is hidden: backward pass, exchange, optimiser and forward pass, one after the other."""
    exchange = sum(SETTING.time_of(SETTING.exchange("x", "all_reduce", n, ())) for n in TRACE.n_bytes)
    training = train("wfbp:overlap=false", TrainingSetting(UPDATED, 4, SETTING.time_of))
    assert training.iteration_time == pytest.approx(3 + exchange + 3 + 3)


@pytest.mark.parametrize("policy", list(TRAINING_POLICIES))
def test_one_worker_has_nothing_to_exchange(policy):
    training = train(policy, TrainingSetting(TRACE, 1, SETTING.time_of))
    waits = 0.0 if policy != "horovod" else 1e-3  # of a cycle
    assert training.exposed_communication == pytest.approx(waits, abs=1e-3)


def test_all_wait_for_the_straggler():
    training = train("ddp", SETTING, slowdowns=[1.0, 1.5])
    alone = train("ddp", TrainingSetting(TRACE.slowed(1.5), 4, SETTING.time_of))
    assert training.iteration_time == alone.iteration_time
    assert training.alone == pytest.approx(6)
    assert training.scaling == pytest.approx(6 / alone.iteration_time)


def test_jitter_is_drawn_for_every_worker_and_iteration_and_costs_more_with_more_workers():
    several = [
        train("ddp", TrainingSetting(TRACE, n, closed_form_costs(0.0, 1e9)), jitter=0.1, iterations=200, seed=3).times
        for n in (2, 64)
    ]
    assert len(set(several[0].tolist())) == 200
    # the expected largest of 2 and of 64 normal variables is 0.56 and 2.36 standard deviations above the mean
    assert several[0].mean() / 6 == pytest.approx(1 + 0.056, abs=0.03)
    assert several[1].mean() / 6 == pytest.approx(np.exp(0.236), abs=0.03)
    again = train(
        "ddp", TrainingSetting(TRACE, 2, closed_form_costs(0.0, 1e9)), jitter=0.1, iterations=200, seed=3
    ).times
    assert np.array_equal(again, several[0])


def test_what_makes_no_sense_is_refused():
    for slowdowns in ([0.0], [float("nan")], [1.0] * 5):
        with pytest.raises(InputError, match="slow-downs are positive and of at most 4 workers"):
            train("ddp", SETTING, slowdowns=slowdowns)
    with pytest.raises(InputError, match="jitter 0 to 10"):
        train("ddp", SETTING, jitter=-1.0)
