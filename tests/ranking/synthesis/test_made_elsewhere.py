"""What is synthesized survives MSCCL's files, and gives the bits of the reference where processes run it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numeric_run import run_reference
from one_run import run_once
from random_networks import networks
from thread_transport import World

from commsim.engine.flow import simulate_flows
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import plan_flows
from commsim.formats.msccl.from_schedule import algorithm_of
from commsim.formats.msccl.to_schedule import schedule_of_algorithm
from commsim.formats.msccl.xml import read_msccl, write_msccl
from commsim.ranking.synthesis.synthesize import synthesize
from commsim.ranking.synthesis.trees.forest import DIRECTIONS

SIZE = 1 << 14
SOME = (networks(max_ranks=4, max_switches=2), st.sampled_from([*DIRECTIONS, "all_to_all"]))


def candidates(operation, network):
    found = synthesize(operation, network, [SIZE], textbook=False, max_messages=200)
    made = {one.method: one for one in found.candidates[SIZE] if one.result is not None}  # others are estimates
    return [one for one in made.values() if one.prepared.schedule.n_transfers <= 400]


@settings(max_examples=4)
@given(*SOME)
def test_processes_get_the_bits_of_the_reference(network, operation):
    for one in candidates(operation, network):
        schedule = one.prepared.schedule
        rng = np.random.default_rng(0)
        inputs = [rng.standard_normal(schedule.n_chunks).astype(np.float32) for _ in range(schedule.n_ranks)]
        world = World(schedule.n_ranks)
        got = world.run(lambda t, s=schedule, i=inputs: run_once(t, s, i[t.rank]))
        for mine, wanted in zip(got, run_reference(schedule, inputs), strict=True):
            np.testing.assert_array_equal(mine.view(np.int32), wanted.view(np.int32))


@settings(max_examples=4)
@given(*SOME)
def test_files_of_msccl_hold_the_same_times(tmp_path_factory, network, operation):
    path = tmp_path_factory.mktemp("msccl") / "x.xml"
    for one in candidates(operation, network):
        before = one.prepared
        algorithm, notes = algorithm_of(before.schedule)
        if any("were cut" in note for note in notes):  # what follows a cut message need not wait for all of it
            continue
        write_msccl(algorithm, path)
        read = schedule_of_algorithm(read_msccl(path)[0])
        job = FlowJob(read, before.placement)
        assert read.operation == before.schedule.operation
        time = simulate_flows(plan_flows(network, [job]), SIZE)[0].time
        assert time == pytest.approx(one.time, rel=1e-9)
