"""The flow engine against the slow oracle, on random networks with random jobs."""

import numpy as np
from flow_cases import Case, cases
from hypothesis import given, settings
from slow_flow import simulate

from commsim.engine.flow import payload, simulate_plan
from commsim.engine.flow_plan import FlowTimes, plan_flows


def simulated(case: Case) -> FlowTimes:
    plan = plan_flows(case.network, case.jobs, routing=case.routing, seed=case.seed)
    return simulate_plan(plan, payload(plan, case.sizes), starts=case.starts)


@settings(max_examples=150)
@given(case=cases())
def test_every_transfer_starts_and_ends_when_the_oracle_says(case: Case) -> None:
    ours = simulated(case)
    theirs = np.array(
        simulate(case.network, case.jobs, case.sizes, case.starts, routing=case.routing, seed=case.seed)
    ).reshape(-1, 3)
    for got, expected in zip((ours.start, ours.sent, ours.done), theirs.T, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12 * theirs.max())
