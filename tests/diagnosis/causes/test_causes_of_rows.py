"""A fault that is injected into the model is found again from its noisy times; healthy ones are called healthy."""

import functools

import numpy as np
import pytest

from commsim.diagnosis.causes.all_faults import fault_times
from commsim.diagnosis.causes.explain import rank_causes
from commsim.diagnosis.causes.ground import ground_of
from commsim.diagnosis.causes.labels import CAUSES, HEALTHY
from commsim.diagnosis.causes.of_rows import explain_rows
from commsim.diagnosis.causes.rows import Rows
from commsim.diagnosis.errors_of_plan import errors_of_plan
from commsim.formats.measurement import Measurement
from commsim.prediction.build import plan_collective
from commsim.prediction.read import scenario_of

H100, NODE, ALPS = "hgx-h100@star:machines=2", "hgx-h100", "alps@star:machines=2"
SIZES = [2.0**k for k in range(12, 34)]
NOISE = 0.07


@functools.cache
def plan_on(topology):
    return plan_collective(scenario_of("nccl_all_reduce", topology))


@functools.cache
def ground_on(topology):
    plan = plan_on(topology)
    return ground_of(plan.launch, plan.schedule.n_ranks)


@functools.cache
def faults_on(topology):
    ground = ground_on(topology)
    return fault_times(ground, SIZES, ground.times(SIZES))


def noisy(times, seed=0, noise=NOISE):
    return times * np.exp(np.random.default_rng(seed).normal(0, noise, len(times)))


def ranked(topology, times, healthy=None, evidence=None):
    n = len(SIZES)
    sizes, both, slow = SIZES, times, np.ones(n, bool)
    if healthy is not None:
        sizes, both = SIZES * 2, np.append(healthy, times)
        slow = np.repeat([False, True], n)
    rows = Rows(np.array(sizes), np.array(both), slow, np.zeros(len(slow), bool))
    order = np.argsort(rows.sizes, kind="stable")
    return rank_causes(ground_on(topology), rows.at(order), errors_of_plan(plan_on(topology)), evidence=evidence)


def first_of(label, topology, start=""):
    return next(one for one in faults_on(topology) if one.label == label and one.text.startswith(start))


@pytest.mark.parametrize(
    ("topology", "label", "start"),
    [
        ("hgx-h100@star:machines=4", "half_or_fewer_nics_used", "half"),  # with two, NVLink is in the way first
        (H100, "too_few_channels_or_qps", "2 channels"),
        (H100, "ib_disabled_tcp_sockets", ""),
        (H100, "wrong_algorithm_or_protocol_forced", "NCCL takes LL at"),
        (NODE, "nvls_off_or_unavailable", ""),
        (ALPS, "straggler_host", "one host comes 300 us"),
    ],
)
def test_an_injected_fault_is_found_from_its_times_with_noise(topology, label, start):
    assert ranked(topology, noisy(first_of(label, topology, start).times))[0].label == label


@pytest.mark.parametrize("topology", [H100, NODE, ALPS])
def test_times_as_predicted_but_for_one_small_factor_are_healthy(topology):
    causes = ranked(topology, noisy(1.06 * ground_on(topology).times(SIZES)))
    assert causes[0].label == HEALTHY
    assert causes[0].likelihood > 0.8


def test_a_healthy_log_calibrates_so_that_a_machine_unlike_the_model_is_no_cause():
    whole = ground_on(H100).times(SIZES)
    unlike = 1.5 * whole  # what the model does not know of these machines
    half = first_of("half_or_fewer_nics_used", H100, "half").times / whole
    alone = ranked(H100, noisy(unlike))
    beside = ranked(H100, noisy(unlike, 1), healthy=noisy(unlike, 2))
    assert alone[0].label != HEALTHY
    assert beside[0].label == HEALTHY
    assert (
        ranked(H100, noisy(half * unlike, 3, 0.02), healthy=noisy(unlike, 2, 0.02))[0].label
        == "half_or_fewer_nics_used"
    )


def test_what_else_is_known_decides_between_causes_that_the_times_leave_alike():
    times = noisy(first_of("gpudirect_rdma_off", H100).times)
    shown = ranked(H100, times, evidence={"numa_or_affinity": 50.0, "gpudirect_rdma_off": 0.02})
    assert ranked(H100, times)[0].label != "numa_or_affinity"
    assert shown[0].label == "numa_or_affinity"


def test_every_fault_has_a_label_of_the_list_and_makes_calls_slower():
    whole = ground_on(H100).times(SIZES)
    assert {one.label for one in faults_on(H100)} <= CAUSES.keys()
    assert all(np.log(one.times / whole).mean() > 0 for one in faults_on(H100))


def test_one_number_lists_what_is_able_to_give_it():
    plan = plan_on(H100)
    half = first_of("half_or_fewer_nics_used", H100, "half").times[-1]
    rate = SIZES[-1] * 2 * 15 / 16 / half
    causes = explain_rows(plan, [], numbers=([rate], []))
    assert "half_or_fewer_nics_used" in {one.label for one in causes if one.likelihood > 0.02}
    healthy = explain_rows(plan, [Measurement("all_reduce", SIZES[-1], ground_on(H100).times(SIZES[-1:])[0], 16)])
    assert healthy[0].label == HEALTHY


def test_of_a_collective_without_a_closed_form_no_cause_is_known():
    plan = plan_collective(scenario_of("ring_all_reduce", "star:n_hosts=4"))
    assert explain_rows(plan, [Measurement("all_reduce", 2**20, 1.0, 4)]) == ()
