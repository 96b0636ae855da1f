"""Which run tells two causes apart: on two machines whose NVSwitches add, another operation than the all-reduce."""

import numpy as np
import pytest

from commsim.diagnosis.causes.explain import RankedCause, rank_causes
from commsim.diagnosis.causes.ground import Ground, ground_of
from commsim.diagnosis.causes.labels import HEALTHY
from commsim.diagnosis.causes.next_run import run_that_tells
from commsim.diagnosis.causes.rows import Rows
from commsim.diagnosis.errors_of_plan import errors_of_plan
from commsim.nccl.plans.plan_nccl import NcclPlan
from commsim.prediction.build import plan_collective
from commsim.prediction.read import scenario_of


@pytest.fixture(scope="module")
def causes() -> dict[str, RankedCause]:
    """Healthy times of two machines of eight H100, by cause."""
    plan = plan_collective(scenario_of("nccl_all_reduce", "hgx-h100@star:machines=2"))
    assert isinstance(plan, NcclPlan)
    ground = ground_of(plan.launch, 16)
    sizes = np.array([2.0**28, 2.0**30, 2.0**32])
    whole = np.ones(3, np.bool_)
    rows = Rows(sizes, ground.times(sizes.tolist()), whole, ~whole)
    return {one.label: one for one in rank_causes(ground, rows, errors_of_plan(plan))}


def test_half_of_the_nics_of_two_machines_is_seen_in_an_all_to_all(causes: dict[str, RankedCause]) -> None:
    healthy, half = causes[HEALTHY], causes["half_or_fewer_nics_used"]
    assert isinstance(healthy.ground, Ground)
    assert isinstance(half.ground, Ground)
    assert half.times[-1] < 1.5 * healthy.times[-1]  # 4 heads in place of 8: NVLink then limits, not the NICs
    (line,) = run_that_tells(healthy, half)
    assert line.startswith("measure next: all_to_all of 1 GiB: 11.")
    assert line.endswith(" ms (second)")
    first, second = (
        float(part.split()[0]) for part in line.removeprefix("measure next: all_to_all of 1 GiB: ").split(" or ")
    )
    assert second == pytest.approx(2 * first, rel=0.02)


def test_a_cause_beside_itself_needs_no_run(causes: dict[str, RankedCause]) -> None:
    assert run_that_tells(causes[HEALTHY], causes[HEALTHY]) == []
