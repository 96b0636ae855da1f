import random

import pytest

from commsim.core.errors import InputError
from commsim.sweep.compute import Bench
from commsim.sweep.config import read_config
from commsim.sweep.plan import STRATA, GroupTime, _uncertain, plan_sweep
from commsim.sweep.points import points, structure


class Clock:
    """Stands still but for what points are said to take."""

    def __init__(self, monkeypatch, seconds):
        self.now, self.new = 0.0, True
        monkeypatch.setattr("commsim.sweep.plan.import_all", lambda: None)
        monkeypatch.setattr(Bench, "forget", lambda _: setattr(self, "new", True))
        monkeypatch.setattr(Bench, "row", lambda _, __, given: self._row(seconds, given))

    def _row(self, seconds, given):
        self.now += seconds(given, self.new)
        self.new = False

    def __call__(self):
        return self.now


def truth(tree, *ways):
    """Processor time of a whole sweep, added up point by point, for each way to say what one takes."""
    totals, last = [0.0] * len(ways), None
    for point in points(read_config(tree)):
        shared = structure(point)
        totals = [total + way(point.parameters, shared != last) for total, way in zip(totals, ways, strict=True)]
        last = shared
    return totals


@pytest.fixture
def many(small):
    """300 groups of 8 points."""
    small["collective"]["ranks"] = {"from": 8, "to": 200, "steps": 25}
    small["collective"]["size"]["steps"] = 8
    small["topology"]["bandwidth"] = [f"{rate}Gbps" for rate in (10, 25, 40, 100, 200, 400)]
    small["topology"]["n_hosts"] = 200
    return small


def test_points_and_groups_are_counted(small):
    small["sweep"] = {"filters": ["size < '1MiB'"], "repeats": 2}
    plan = plan_sweep(read_config(small))
    assert (plan.n_candidates, plan.n_points, plan.n_walked) == (48, 32, 32)
    assert plan.n_groups == len({structure(p) for p in points(read_config(small))}) == 16
    assert plan.n_measured == 32
    assert plan.work == pytest.approx(16 * plan.first + 16 * plan.other)
    assert plan.memory > 2**20
    assert plan.failed == ()


def test_where_all_points_of_a_kind_take_the_same_nothing_is_uncertain(many, monkeypatch):
    clock = Clock(monkeypatch, lambda _, new: 0.001 if new else 0.00025)
    plan = plan_sweep(read_config(many), clock=clock)
    assert (plan.first, plan.other, plan.uncertain) == pytest.approx((0.001, 0.00025, 0.0), abs=1e-9)
    assert plan.work == pytest.approx(300 * 0.001 + 300 * 7 * 0.00025)
    assert plan.n_measured == 2 * STRATA * 4


def uneven(noise):
    """What points take here depends on all that it may depend on, and on chance that only the point decides."""

    def took(given, new):
        ring = given["collective.name"] == "ring_all_reduce"
        told = [noise, *map(str, given.values())]
        chance = random.Random(" ".join(map(str, told))).lognormvariate(0.0, 0.8)
        base = (1e-6 if ring else 2e-5) * given["collective.ranks"] * chance
        return base * (5 if new else 1) * (1.0 + given["collective.size"] / 2**20)

    return took


@pytest.mark.deep
@pytest.mark.slow
def test_the_interval_holds_what_the_sweep_takes_95_times_in_100(many, monkeypatch):
    monkeypatch.setattr("commsim.sweep.plan.STRATA", 24)
    ways = [uneven(trial) for trial in range(40)]
    config, held, widths = read_config(many), 0, []
    for seed, (seconds, wanted) in enumerate(zip(ways, truth(many, *ways), strict=True)):
        with monkeypatch.context() as patch:
            plan = plan_sweep(config, clock=Clock(patch, seconds), seed=seed)
        held += abs(plan.work - wanted) <= plan.uncertain
        widths.append(plan.uncertain / wanted)
    assert held >= 34  # of 40 with 95 %: fewer come 3 times in 1000
    assert sum(widths) / len(widths) < 0.3


@pytest.mark.parametrize("slow", [1e-3, 1.0, 30.0])
def test_what_is_slow_is_measured_less(many, monkeypatch, slow):
    clock = Clock(monkeypatch, lambda given, _: slow * given["collective.ranks"] / 200)
    plan = plan_sweep(read_config(many), clock=clock)
    assert clock.now <= 2 * 3.0 + 15 * slow
    assert abs(plan.work - truth(many, lambda given, _: slow * given["collective.ranks"] / 200)[0]) <= plan.uncertain


def test_what_is_done_once_is_no_part_of_what_points_take(small, monkeypatch):
    loaded = set()

    def took(given, _):
        first_time = given["collective.name"] not in loaded
        loaded.add(given["collective.name"])
        return 4.01 if first_time else 0.01

    clock = Clock(monkeypatch, took)
    plan = plan_sweep(read_config(small), clock=clock)
    assert plan.start == pytest.approx(8.0)
    assert plan.work == pytest.approx(24 * 0.01)


def test_one_group_is_a_sweep_too(small, monkeypatch):
    small["collective"] = {"name": "ring_all_reduce", "ranks": 4, "size": ["1KiB", "1MiB"]}
    small["topology"]["bandwidth"] = "100Gbps"
    plan = plan_sweep(read_config(small), clock=Clock(monkeypatch, lambda _, new: 2.0 if new else 1.0))
    assert (plan.n_groups, plan.work, plan.uncertain) == (1, 3.0, 0.0)


def test_a_measured_point_that_fails_is_said(small):
    small["collective"]["ranks"] = [4, 9]
    assert any("got 9" in why for why in plan_sweep(read_config(small)).failed)


def test_nothing_to_measure_is_refused(small):
    small["sweep"] = {"filters": ["ranks > 100"]}
    with pytest.raises(InputError, match="the filters leave none of 24 points"):
        plan_sweep(read_config(small))


def test_time_is_that_beside_what_else_runs(small, monkeypatch):
    """48 s were predicted, of processor time on idle cores, and 235 taken."""
    monkeypatch.setattr("commsim.sweep.plan.os.getloadavg", lambda: (6.0, 0.0, 0.0))
    busy = plan_sweep(read_config(small), clock=Clock(monkeypatch, lambda _, new: 2.0 if new else 1.0))
    monkeypatch.setattr("commsim.sweep.plan.os.getloadavg", lambda: (0.5, 0.0, 0.0))
    quiet = plan_sweep(read_config(small), clock=Clock(monkeypatch, lambda _, new: 2.0 if new else 1.0))
    assert busy.work == quiet.work  # which is processor time
    assert quiet.time(1, 2) == quiet.start + quiet.work
    assert busy.time(1, 2) == pytest.approx((7 / 2) * quiet.time(1, 2))
    assert busy.time(2, 2) == pytest.approx((8 / 2) * (busy.start + busy.work / 2))
    assert quiet.time(2, 2) == pytest.approx((2.5 / 2) * (quiet.start + quiet.work / 2))


@pytest.mark.parametrize("others", [(), (2.0,)])
def test_a_group_with_less_than_two_other_points_says_nothing_of_how_they_differ(others):
    spread = GroupTime(9, 1.0, (1.0, 2.0))
    assert _uncertain([1, 1], [[spread], [GroupTime(len(others), 1.0, others)]]) == _uncertain([1], [[spread]])
