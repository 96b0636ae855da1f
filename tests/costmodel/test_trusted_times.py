"""A closed form stands for the engine only where both are equal to the last bit."""

import pytest

from commsim.costmodel.curve_times import SPREAD, WORST, CurveQuestion, engine_sizes, make_curve
from commsim.costmodel.trusted_times import TrustedTimes
from commsim.nccl.plans.plan_nccl import NcclPlan
from commsim.prediction.plans.dense import Plan
from commsim.prediction.scenario import Wish

HIGH = 2**20
NCCL = "dgx-h100@star:machines=2"
# One uplink for 8 NICs is in the way of large messages, not of small ones: from 305 KB on the engine is slower.
NARROW = "dgx-h100@leaf_spine:machines=2,n_leaves=2,n_spines=1,uplinks_per_spine=1"


def times(engine, closed_form, starts=(1,)):
    found = TrustedTimes(lambda size: (engine(size),), lambda size: (closed_form(size),))
    found.examine(starts, HIGH)
    return found


def question(network, operation, machines, gpus, high):
    return CurveQuestion(network, operation, machines, gpus, "", 0, None, high, 0.01, 20)


def test_where_both_are_equal_the_engine_is_asked_little():
    found = times(float, float)
    assert found.trusted == [(1, HIGH)]
    assert [found(size) for size in range(5000, 6000)] == [(float(size),) for size in range(5000, 6000)]
    assert len(found.asked) < 10


def test_where_they_differ_the_engine_is_asked():
    found = times(float, lambda size: size * (1.0 if size < 70_000 else 1 + 1e-15))
    for size in (2, 5000, 69_999, 70_000, 70_001, 500_000, HIGH):
        assert found(size) == (float(size),)
    (_, last) = max(found.trusted)
    assert 60_000 < last < 70_000


def test_a_stretch_ends_where_the_choice_changes():
    found = times(float, lambda size: float(size) if size < 1000 else -1.0, (1, 1000))
    assert found.trusted == [(1, 999)]
    assert times(float, lambda _: None).trusted == []


@pytest.mark.parametrize(
    ("network", "operation", "machines", "high", "asked"),
    [
        pytest.param(NCCL, "all_reduce", 2, 2**20, 0.2, marks=pytest.mark.deep),
        (NCCL, "all_to_all", 2, 2**22, 0.2),
        (NARROW, "all_gather", 2, 2**19, 0.6),
    ],
)
def test_a_curve_is_that_of_the_engine_alone(monkeypatch, network, operation, machines, high, asked):
    found = make_curve(question(network, operation, machines, 8, high))
    monkeypatch.setattr(NcclPlan, "unhindered", Plan.unhindered)
    alone = make_curve(question(network, operation, machines, 8, high))
    assert found.curve == alone.curve
    assert found.errors == alone.errors
    assert found.n_calls < asked * alone.n_calls
    assert alone.n_engine == len(alone.errors)


def test_the_engine_is_asked_at_few_of_many_random_sizes():
    few, many = (make_curve(question(NCCL, "all_reduce", 2, 8, HIGH)._replace(points=n)) for n in (20, 2000))
    assert len(many.errors) >= 2000
    assert many.n_engine < len(many.errors) / 5
    assert many.n_calls < few.n_calls + 5 * (SPREAD + WORST)


def test_the_engine_is_asked_where_errors_are_largest_and_at_all_orders_of_size():
    asked = engine_sizes([(size % 97 / 1e4, size) for size in range(1, 2001)])
    assert sum(size % 97 == 96 for size in asked) >= WORST
    assert all(any(first <= size < first + 250 for size in asked) for first in range(1, 2001, 250))
    assert len(asked) <= SPREAD + WORST
    assert engine_sizes([(0.0, 5)]) == [5]


def test_trust_that_a_random_size_refutes_is_given_up(monkeypatch):
    """The closed form is wrong between the sizes at which it is compared, and where random sizes are."""
    asked, wish = question("star:n_hosts=4", "all_reduce", 4, 1, 2**24), Wish.of()
    alone = make_curve(asked)

    def wrong(self, size):
        time = self.run(float(size), wish).time
        return (time * (1.1 if 1_000_000 < size < 15_000_000 else 1.0),) * 3

    monkeypatch.setattr(Plan, "unhindered", wrong)
    assert make_curve(asked).curve == alone.curve
