import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.workload.systems.hetpipe import run_waves, stage_seconds, unlike_stages, virtual_workers

NODES = [[4.0] * 4, [3.0] * 4, [2.0] * 4, [1.0] * 4]
LAYERS = [1.0] * 40


@given(
    layers=st.lists(st.integers(0, 9).map(float), min_size=1, max_size=7),
    speeds=st.lists(st.sampled_from([0.5, 1.0, 2.0, 3.0]), min_size=1, max_size=4),
)
@settings(deadline=None, max_examples=100)
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
