import dataclasses
import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.papers.systems.elastic import (
    MorphingJob,
    even_stages,
    morph,
    pipelines_of,
    recovery_copies,
    shape_time,
    template_sizes,
)
from commsim.training.cost_by_formula import closed_form_costs
from commsim.training.parallel.pipeline import StageCosts, pipeline_graph
from commsim.training.parallel.pipeline_orders import gpipe
from commsim.training.task_graph import simulate_graph

JOB = MorphingJob(24, 1.0, 2.0, 100.0, 1.0, batch=512, micro_batch=4, bandwidth=50.0, max_blocks=6)


@pytest.mark.parametrize("depth", [4, 6, 8, 12])
@pytest.mark.parametrize("width", [1, 3, 8])
def test_the_estimate_is_what_playing_the_pipeline_gives(depth, width):
    """With stages of equal size: all forward passes, then all backward passes, and the gradients at the end."""
    job = dataclasses.replace(JOB, activation=10.0, block_bytes=0.0)
    blocks, n = 24 // depth, math.ceil(512 / (4 * width))
    costs = StageCosts(blocks * 1.0, blocks * 2.0, activation=10.0)
    timeline = simulate_graph(pipeline_graph(gpipe(depth, n), costs), closed_form_costs(0.0, 50.0))
    assert shape_time(job, depth, width) == pytest.approx(timeline.iteration_time)


@given(n_gpus=st.integers(4, 60), slow=st.integers(0, 3))
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


LAYERS = [10.0 * (i + 1) for i in range(12)]


@pytest.mark.parametrize(("fewest", "n_failures"), [(2, 1), (2, 2), (3, 1), (4, 1), (3, 2)])
def test_after_any_tolerated_failures_templates_use_every_node_that_is_left(fewest, n_failures):
    """Some f + 1 templates or more use all nodes as long as there are (f + 1) n0 of them."""
    for n_nodes in range((n_failures + 1) * fewest, 20):
        sizes = template_sizes(n_nodes, fewest, n_failures)
        for left in range((n_failures + 1) * fewest, n_nodes + 1):
            plans = pipelines_of(left, sizes, n_failures + 1)
            assert plans
            assert all(sum(plan) == left and len(plan) > n_failures for plan in plans)


def held(pipelines):
    return {node: layers for nodes in pipelines for node, layers in even_stages(len(LAYERS), nodes).items()}


@given(failed=st.sets(st.sampled_from("abcdefgh"), min_size=1, max_size=2))
def test_recovery_moves_exactly_the_layers_that_nodes_need_and_do_not_hold(failed):
    """Three pipelines outlive two failures; those that are left form two."""
    before = held(["abc", "def", "gh"])
    left = [node for node in "abcdefgh" if node not in failed]
    after = held([left[:3], left[3:]])
    copies = recovery_copies(before, after, LAYERS)
    for node, layers in after.items():
        got = {copy.layer for copy in copies if copy.dst == node}
        assert got == set(layers) - set(before[node])
    for copy in copies:
        assert copy.src not in failed
        assert copy.layer in before[copy.src]
        assert copy.size == LAYERS[copy.layer]


def test_holders_share_the_sending():
    before = {"a": [0, 1], "b": [0, 1], "c": []}
    copies = recovery_copies(before, {"a": [0, 1], "b": [0, 1], "c": [0, 1]}, [5.0, 5.0])
    assert [(copy.src, copy.layer) for copy in copies] == [("a", 0), ("b", 1)]


def test_stages_are_even():
    sizes = [len(layers) for layers in even_stages(26, "abcdefgh").values()]
    assert sum(sizes) == 26
    assert set(sizes) == {3, 4}
    assert list(itertools.chain(*even_stages(7, "abc").values())) == list(range(7))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: template_sizes(5, 3, 1), "to outlive 1 failures takes 2 pipelines of at least 3 nodes, got 5 nodes"),
        (lambda: even_stages(2, "abc"), "has 1..2 nodes, got 3"),
        (lambda: recovery_copies({"a": [0]}, {"b": [0]}, [1.0]), "layer 0 is lost with all nodes that held it"),
    ],
)
def test_what_cannot_be_recovered_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
