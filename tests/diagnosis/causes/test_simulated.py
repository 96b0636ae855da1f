"""Faults of collectives without a closed form are simulated, and found again from their times."""

import numpy as np
import pytest

from commsim.diagnosis.causes import of_rows
from commsim.diagnosis.causes.answer import diagnose
from commsim.diagnosis.causes.labels import HEALTHY
from commsim.diagnosis.causes.simulated import predict_simulated_faults
from commsim.formats.measurement import Measurement
from commsim.prediction.build import plan_collective
from commsim.prediction.read import scenario_of
from commsim.prediction.solve import solve

SIZES = [2.0**k for k in (10, 14, 18, 22, 26, 30)]
STAR = "star:n_hosts=4,bandwidth=400Gbps,latency=1us"
RING = "ring_all_reduce"


def times_on(network, collective=RING, **options):
    return [result.time for result in solve(scenario_of(collective, network, **options), SIZES).results]


def causes_of(times, network=STAR, collective=RING, noise=0.03):
    scenario = scenario_of(collective, network)
    plan = plan_collective(scenario)
    noisy = np.array(times) * np.exp(np.random.default_rng(1).normal(0, noise, len(times)))
    rows = [Measurement("all_reduce", size, time, 4) for size, time in zip(SIZES, noisy, strict=True)]
    return diagnose(plan, rows, scenario=scenario).causes


@pytest.mark.parametrize(
    ("slower", "label"),
    [
        (STAR.replace("400Gbps", "50Gbps"), "nic_rate_degraded"),
        (STAR.replace("1us", "51us"), "ib_disabled_tcp_sockets"),
    ],
)
def test_what_the_model_reproduces_is_named(slower, label):
    assert causes_of(times_on(slower))[0].label == label


def test_a_constant_time_for_each_call_is_a_late_host_or_a_slow_way_of_each_message():
    found = causes_of([time + 1e-3 for time in times_on(STAR)])
    assert {one.label for one in found[:2]} == {"straggler_host", "ib_disabled_tcp_sockets"}


def test_times_as_predicted_are_healthy():
    assert causes_of([1.05 * time for time in times_on(STAR)])[0].label == HEALTHY


def test_half_of_the_nics_of_rccl_are_among_the_first(monkeypatch):
    network, rccl = "mi300x@star:machines=2", "rccl_all_reduce"
    every = predict_simulated_faults(scenario_of(rccl, network), SIZES)
    assert {"nic_rate_degraded", "half_or_fewer_nics_used", "gpudirect_rdma_off"} <= {one.label for one in every}
    half = next(one for one in every if one.label == "half_or_fewer_nics_used")
    monkeypatch.setattr(of_rows, "predict_simulated_faults", lambda *_: every)  # which are not simulated again
    assert "half_or_fewer_nics_used" in [one.label for one in causes_of(half.times, network, rccl, 0.01)[:3]]


def test_a_plan_without_a_closed_form_has_no_causes_unless_faults_may_be_simulated():
    plan = plan_collective(scenario_of(RING, STAR))
    assert diagnose(plan, [Measurement("all_reduce", 2**20, 1.0, 4)]) is None
