import dataclasses
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.workload.cost_of import closed_form_costs
from commsim.workload.parallel.pipeline import StageCosts, pipeline_graph
from commsim.workload.parallel.pipeline_orders import gpipe
from commsim.workload.systems.varuna import MorphingJob, morph, shape_time
from commsim.workload.task_graph import play

JOB = MorphingJob(24, 1.0, 2.0, 100.0, 1.0, batch=512, micro_batch=4, bandwidth=50.0, most_blocks=6)


@pytest.mark.parametrize("depth", [4, 6, 8, 12])
@pytest.mark.parametrize("width", [1, 3, 8])
def test_the_estimate_is_what_playing_the_pipeline_gives(depth, width):
    """With stages of equal size: all forward passes, then all backward passes, and the gradients at the end."""
    job = dataclasses.replace(JOB, activation=10.0, block_bytes=0.0)
    blocks, n = 24 // depth, math.ceil(512 / (4 * width))
    costs = StageCosts(blocks * 1.0, blocks * 2.0, activation=10.0)
    timeline = play(pipeline_graph(gpipe(depth, n), costs), closed_form_costs(0.0, 50.0))
    assert shape_time(job, depth, width) == pytest.approx(timeline.iteration_time)


@given(n_gpus=st.integers(4, 60), slow=st.integers(0, 3))
@settings(deadline=None, max_examples=60)
def test_the_shape_is_the_fastest_that_the_gpus_allow_and_more_gpus_are_never_slower(n_gpus, slow):
    shape = morph(JOB, [1.0] * n_gpus + [0.5] * slow)
    every = [shape_time(JOB, p, d) for p in range(4, 25) for d in range(1, n_gpus // p + 1)]
    assert shape.time <= min(every)
    assert shape.depth * shape.width + shape.left_out == n_gpus + slow
    assert shape.depth >= 4
    assert 4 * shape.n_micro_batches * shape.width >= 512


def test_a_straggler_is_left_out_when_the_others_are_faster_without_it():
    assert morph(JOB, [1.0] * 32).left_out == 0
    with_straggler = morph(JOB, [1.0] * 32 + [0.4] * 4)
    assert (with_straggler.time, with_straggler.left_out) == (morph(JOB, [1.0] * 32).time, 4)
    assert morph(JOB, [1.0] * 4 + [0.9] * 28).left_out == 0


def test_the_slower_the_network_the_fewer_bytes_the_best_shape_sends():
    shapes = [morph(dataclasses.replace(JOB, bandwidth=b), [1.0] * 48) for b in (0.05, 0.5, 5.0, 50.0, 5000.0)]
    sent = [2 * (s.depth - 1) * 1.0 + 2 * (s.width - 1) / s.width * math.ceil(24 / s.depth) * 100.0 for s in shapes]
    assert sent == sorted(sent)
    assert len(set(sent)) > 2


def test_a_model_that_does_not_fit_is_refused():
    with pytest.raises(InputError, match="needs 4 GPUs, 6 of its 24 blocks on each, got 3"):
        morph(JOB, [1.0] * 3)
