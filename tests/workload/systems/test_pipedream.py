import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from commsim.core.errors import InputError
from commsim.workload.systems.pipedream import LayerProfile, Stage, bottleneck, partition, stage_time

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
@settings(deadline=None, max_examples=60)
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
