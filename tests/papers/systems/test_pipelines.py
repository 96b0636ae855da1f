import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from commsim.core.errors import InputError
from commsim.papers.systems.pipelines import (
    LayerProfile,
    Stage,
    bottleneck,
    partition,
    run_waves,
    stage_seconds,
    stage_time,
    unlike_stages,
    virtual_workers,
)

profiles = st.integers(1, 5).flatmap(
    lambda n: st.builds(LayerProfile, *(arrays(np.float64, n, elements=st.integers(0, 20).map(float)) for _ in "cwo"))
)


def every_plan(profile, n_machines, bandwidth):
    """All cuts of the layers, with all numbers of replicas that the machines allow."""
    n = len(profile.compute)
    for n_cuts in range(n):
        for cuts in itertools.combinations(range(1, n), n_cuts):
            bounds = list(itertools.pairwise((0, *cuts, n)))
            for replicas in itertools.product(range(1, n_machines + 1), repeat=len(bounds)):
                if sum(replicas) <= n_machines:
                    yield tuple(
                        Stage(a, b - 1, m, stage_time(profile, a, b - 1, m, bandwidth))
                        for (a, b), m in zip(bounds, replicas, strict=True)
                    )


@given(profile=profiles, n_machines=st.integers(1, 5), bandwidth=st.sampled_from([0.5, 3.0, 50.0]))
def test_dynamic_programming_finds_what_trying_everything_finds(profile, n_machines, bandwidth):
    stages = partition(profile, n_machines, bandwidth)
    found = bottleneck(profile, stages, bandwidth)
    assert found == pytest.approx(
        min(bottleneck(profile, p, bandwidth) for p in every_plan(profile, n_machines, bandwidth)), rel=1e-12
    )
    assert sum(stage.replicas for stage in stages) <= n_machines
    assert [a.last + 1 for a in stages[:-1]] == [b.first for b in stages[1:]]


def test_a_model_with_few_weights_is_replicated_whole_as_resnet50_is():
    profile = LayerProfile([10.0] * 8, [0.1] * 8, [5000.0] * 8)
    assert partition(profile, 16, 100.0) == (Stage(0, 7, 16, stage_time(profile, 0, 7, 16, 100.0)),)


def test_a_model_with_heavy_last_layers_replicates_the_others_and_leaves_those_alone_as_vgg16_does():
    profile = LayerProfile([14.0] * 7 + [2.0], [1.0] * 7 + [400.0], [1.0] * 8)
    stages = partition(profile, 16, 100.0)
    assert [(s.first, s.last, s.replicas) for s in stages] == [(0, 6, 15), (7, 7, 1)]


def test_no_machine_and_negative_layers_are_refused():
    with pytest.raises(InputError, match="at least 1 machine"):
        partition(LayerProfile([1.0], [1.0], [1.0]), 0, 1.0)
    with pytest.raises(InputError, match="weights must be 0 or more"):
        LayerProfile([1.0], [-1.0], [1.0])


NODES = [[4.0] * 4, [3.0] * 4, [2.0] * 4, [1.0] * 4]
LAYERS = [1.0] * 40


@given(
    layers=st.lists(st.integers(0, 9).map(float), min_size=1, max_size=7),
    speeds=st.lists(st.sampled_from([0.5, 1.0, 2.0, 3.0]), min_size=1, max_size=4),
)
def test_unlike_gpus_get_the_stages_that_trying_every_cut_finds(layers, speeds):
    ends = unlike_stages(layers, speeds)
    assert ends[-1] == len(layers)
    assert list(ends) == sorted(ends)

    def slowest(cuts):
        bounds = itertools.pairwise((0, *cuts, len(layers)))
        return max(sum(layers[a:b]) / speed for (a, b), speed in zip(bounds, speeds, strict=True))

    every = itertools.combinations_with_replacement(range(len(layers) + 1), len(speeds) - 1)
    assert stage_seconds(layers, speeds) == pytest.approx(min(slowest(cuts) for cuts in every))


def test_one_gpu_of_every_node_makes_equal_workers_and_none_waits():
    workers = virtual_workers(NODES, "equal")
    assert workers == [(4.0, 3.0, 2.0, 1.0)] * 4
    assert stage_seconds(LAYERS, workers[0]) == 4.0
    run = run_waves(LAYERS, workers, 50, bound=0, n_concurrent=4)
    assert run.time == 50 * 4 * 4.0
    assert (run.waited == 0).all()


def test_a_node_each_leaves_the_fast_ones_waiting_for_the_slowest_however_stale_they_may_be():
    workers = virtual_workers(NODES, "node")
    assert [stage_seconds(LAYERS, gpus) for gpus in workers] == [2.5, 10 / 3, 5.0, 10.0]
    for bound in (0, 4):
        run = run_waves(LAYERS, workers, 50, bound=bound, n_concurrent=4)
        assert run.time == pytest.approx(50 * 4 * 10.0)
        assert run.lead.max() == bound
        assert run.waited[0] > 0


def test_unequal_nodes_and_unknown_allocations_are_refused():
    with pytest.raises(InputError, match=r"as many GPUs on every node, got \[1, 2\]"):
        virtual_workers([[1.0], [1.0, 1.0]], "equal")
    with pytest.raises(InputError, match="unknown allocation 'hybrid'; known: node, equal"):
        virtual_workers(NODES, "hybrid")
