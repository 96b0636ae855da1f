import pytest

from commsim.core.errors import InputError
from commsim.sweep.config import read_config
from commsim.sweep.plan import plan_sweep
from commsim.sweep.points import points, structure


def test_points_and_groups_are_counted(small):
    small["sweep"] = {"filters": ["size < '1MiB'"], "repeats": 2}
    plan = plan_sweep(read_config(small))
    assert (plan.n_candidates, plan.n_points) == (48, 32)
    assert plan.n_groups == len({structure(p) for p in points(read_config(small))}) == 16
    assert plan.n_measured >= 16
    assert plan.work == pytest.approx(16 * plan.first + 16 * plan.other)
    assert plan.memory > 2**20
    assert plan.failed == ()


def test_the_estimate_is_the_sum_of_what_points_take(small, monkeypatch):
    clock = [0.0]

    def row(self, seed, parameters):
        clock[0] += 1.0 if self.new else 0.25
        self.new = False

    monkeypatch.setattr("commsim.sweep.plan.time.perf_counter", lambda: clock[0])
    monkeypatch.setattr("commsim.sweep.plan.SECONDS", 1e9)
    monkeypatch.setattr("commsim.sweep.compute.Bench.new", True, raising=False)
    monkeypatch.setattr("commsim.sweep.compute.Bench.row", row)
    monkeypatch.setattr("commsim.sweep.compute.Bench.forget", lambda self: setattr(self, "new", True))
    small["collective"]["size"]["steps"] = 11
    plan = plan_sweep(read_config(small))
    assert (plan.first, plan.other, plan.uncertain) == (1.0, 0.25, 0.0)
    assert plan.work == 8 * 1.0 + 80 * 0.25


def test_a_measured_point_that_fails_is_said(small):
    small["collective"]["ranks"] = [4, 9]
    assert any("got 9" in why for why in plan_sweep(read_config(small)).failed)


def test_nothing_to_measure_is_refused(small):
    small["sweep"] = {"filters": ["ranks > 100"]}
    with pytest.raises(InputError, match="the filters leave no point of 24"):
        plan_sweep(read_config(small))
