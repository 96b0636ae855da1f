"""Simulated time depends on what is sent, never on the order in which it was written down; and it repeats exactly."""

import dataclasses
import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
from flow_cases import Case, cases
from flow_networks import cabled, finish_times, message, table
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from commsim.core.schedule import Schedule
from commsim.engine.flow import payload, simulate_plan
from commsim.engine.flow_plan import plan_flows


def simulated(case: Case) -> list[NDArray[np.float64]]:
    """Times of each job's transfers."""
    plan = plan_flows(case.network, case.jobs, routing=case.routing, seed=case.seed)
    times = table(simulate_plan(plan, payload(plan, case.sizes), starts=case.starts))
    return [times[mine] for mine in plan.transfers_of]


def shuffled(schedule: Schedule, rng: np.random.Generator) -> tuple[Schedule, NDArray[np.intp]]:
    """Permute the transfers inside every hop; those of one connection stay in order, which is part of their meaning."""
    blocks, orders, offset = [], [], 0
    for block in schedule.blocks:
        key = rng.random(len(block.body))
        for same in np.unique(block.body[["hop", "src", "dst", "channel"]]):
            rows = block.body[["hop", "src", "dst", "channel"]] == same
            key[rows] = np.sort(key[rows])
        order = np.lexsort((key, block.body["hop"]))
        blocks.append(dataclasses.replace(block, body=block.body[order]))
        orders.append(order + offset)
        offset += len(order)
    return dataclasses.replace(schedule, blocks=tuple(blocks)), np.concatenate(orders)


@settings(max_examples=150)
@given(case=cases(plain=True, routings=("shortest", "ecmp")), seed=st.integers(0, 999))
def test_the_order_of_transfers_inside_hops_changes_no_bit(case: Case, seed: int) -> None:
    rng = np.random.default_rng(seed)
    schedules, orders = zip(*(shuffled(job.schedule, rng) for job in case.jobs), strict=True)
    jobs = tuple(dataclasses.replace(job, schedule=s) for job, s in zip(case.jobs, schedules, strict=True))
    again = simulated(dataclasses.replace(case, jobs=jobs))
    for before, after, order in zip(simulated(case), again, orders, strict=True):
        assert (before[order] == after).all()


@settings(max_examples=150)
@given(case=cases(plain=True, routings=("shortest",)), seed=st.integers(0, 999))  # ECMP hashes the number of the job
def test_the_order_of_jobs_changes_no_bit(case: Case, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(case.jobs))
    starts = np.split(np.array(case.starts), np.cumsum([j.schedule.n_participants for j in case.jobs])[:-1])
    moved = dataclasses.replace(
        case,
        jobs=tuple(case.jobs[k] for k in order),
        sizes=tuple(case.sizes[k] for k in order),
        starts=tuple(np.concatenate([starts[k] for k in order])),
    )
    times, again = simulated(case), simulated(moved)
    assert all((times[k] == again[place]).all() for place, k in enumerate(order))


@pytest.mark.nojit
def test_what_slow_flows_leave_over_does_not_depend_on_their_order() -> None:
    # 1 - 0.1 - 0.2 - 0.3 and 1 - 0.3 - 0.2 - 0.1 differ in their last bits: the fourth job once did as well.
    access = {"h0-s0": 0.1, "h1-s0": 0.2, "h2-s0": 0.3, "h3-s0": 5.0}
    network = cabled(access | {"s0-s1": 1.0} | {f"h{i}-s1": 9.0 for i in range(4, 8)})
    seen = set()
    for order in itertools.permutations(range(4)):
        jobs = [message(network, f"h{i}>h{i + 4}") for i in order]
        starts = [0.25 if i == 3 else 0.0 for i in order]
        sent = finish_times(network, jobs, [1.0] * 4, starts, routing="shortest")
        seen.add(tuple(sent[np.argsort(order)]))
    assert len(seen) == 1


@settings(max_examples=50)
@given(case=cases())
def test_the_same_inputs_give_the_same_bits_twice(case: Case) -> None:
    assert all((a == b).all() for a, b in zip(simulated(case), simulated(case), strict=True))


PROGRAM = """
import numpy as np
from collectives.dense.ring import ring_all_reduce
from commsim.core.placement import place
from commsim.engine.flow import payload, simulate_plan
from commsim.engine.flow_plan import Job, plan_flows
from topologies.fat_tree import fat_tree
network = fat_tree(4)
plan = plan_flows(network, [Job(ring_all_reduce(16), place(network, 16, "random", 1), weight=w) for w in (0.3, 0.7)])
times = simulate_plan(plan, payload(plan, 1e6), starts=np.random.default_rng(0).uniform(0, 1e-4, 32))
print(times.done.tobytes().hex())
"""


def test_two_processes_give_the_same_bits() -> None:
    outputs = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True,
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert len(outputs[0]) > 1000
    assert outputs[0] == outputs[1]
