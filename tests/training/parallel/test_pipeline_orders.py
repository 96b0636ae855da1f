from fractions import Fraction

import pytest

from commsim.core.errors import InputError
from commsim.training.parallel.pipeline import StageCosts, pipeline_graph
from commsim.training.parallel.pipeline_orders import (
    ORDERS,
    PipelineOrder,
    StagePass,
    chimera,
    gems,
    ideal_bubble,
    interleaved,
)
from commsim.training.task_graph import simulate_graph

SIZES = [(d, k * d) for d in (2, 4, 6, 8) for k in (1, 2, 5)]


def played(order, forward, backward):
    """Bubble as an exact fraction: whole numbers of seconds add up without rounding."""
    timeline = simulate_graph(pipeline_graph(order, StageCosts(forward, backward)), lambda _: 0.0)
    computed = sum(timeline.busy(f"gpu{w}.compute") for w in range(order.n_workers))
    assert computed.is_integer()
    assert timeline.iteration_time.is_integer()
    return 1 - Fraction(int(computed), order.n_workers * int(timeline.iteration_time))


@pytest.mark.sample(15, each="name")
@pytest.mark.parametrize(("d", "n"), [*SIZES, (3, 7), (5, 2), (1, 3)])
@pytest.mark.parametrize(("forward", "backward"), [(1, 1), (1, 2), (3, 5)])
@pytest.mark.parametrize("name", ["gpipe", "1f1b", "eager_1f1b"])
def test_gpipe_and_1f1b_have_exactly_the_published_bubble_whatever_a_backward_pass_takes(name, d, n, forward, backward):
    assert played(ORDERS[name](d, n), forward, backward) == ideal_bubble(name, d, n) == Fraction(d - 1, n + d - 1)


@pytest.mark.parametrize(("d", "n"), SIZES)
@pytest.mark.parametrize("n_chunks", [1, 2, 3])
def test_interleaving_divides_the_bubble_time_by_the_chunks(d, n, n_chunks):
    order = interleaved(d, n, n_chunks)
    for forward, backward in ((1, 1), (1, 2), (3, 5)):
        assert played(order, forward, backward) == ideal_bubble("interleaved", d, n, n_chunks)
        assert ideal_bubble("interleaved", d, n, n_chunks) == Fraction(d - 1, n_chunks * n + d - 1)


@pytest.mark.parametrize(("d", "n"), SIZES)
def test_chimera_has_exactly_the_published_bubble_when_both_passes_take_the_same_time(d, n):
    assert played(chimera(d, n), 1, 1) == ideal_bubble("chimera", d, n) == Fraction(d - 2, 2 * n + d - 2)


@pytest.mark.parametrize("d", [2, 4, 6, 8, 16])
def test_a_unit_of_chimera_has_twice_the_bubble_in_backward_times_when_backward_takes_twice_as_long(d):
    bubble = played(chimera(d, d), 1, 2)
    assert bubble == Fraction(d - 2) / (Fraction(3 * d, 2) + d - 2)
    assert bubble < ideal_bubble("1f1b", d, d)


@pytest.mark.parametrize(("d", "n"), [(2, 4), (4, 9), (8, 20)])
def test_each_micro_batch_of_gems_takes_two_stages_and_a_half_per_worker(d, n):
    graph = pipeline_graph(gems(d, n), StageCosts(1, 2))
    assert simulate_graph(graph, lambda _: 0.0).iteration_time == n * (2 * d + 1) + d - 1
    assert float(ideal_bubble("gems", d, n)) == pytest.approx(1 - 3 / (2 * d + 1), rel=1e-12)


@pytest.mark.parametrize(("d", "n"), SIZES)
@pytest.mark.parametrize("name", ORDERS)
def test_every_micro_batch_passes_every_stage_once_each_way_and_forward_comes_first(name, d, n):
    order = ORDERS[name](d, n)
    steps = [step for row in order.steps for step in row]
    assert len(set(steps)) == len(steps) == 2 * n * order.n_stages
    for row in order.steps:
        for step in row:
            if step.backward:
                assert row.index(StagePass(step.micro_batch, step.stage, False, step.replica)) < row.index(step)


@pytest.mark.parametrize(("d", "n"), SIZES)
def test_gpipe_holds_all_activations_1f1b_at_most_one_per_stage_and_chimera_between(d, n):
    assert ORDERS["gpipe"](d, n).peak_activations == (n,) * d
    assert ORDERS["1f1b"](d, n).peak_activations == tuple(range(d, 0, -1))
    assert set(chimera(d, n).peak_activations) == set(range(d // 2 + 1, d + 1))
    assert max(ORDERS["eager_1f1b"](d, n).peak_activations) == min(2 * d - 1, n)
    assert gems(d, n).peak_activations == (1,) * d


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: chimera(3, 4), "even number of workers and of micro-batches, got 3 and 4"),
        (lambda: interleaved(4, 6), "multiple of the 4 workers, got 2 and 6"),
        (lambda: ORDERS["gpipe"](0, 4), "at least 1 worker"),
        (lambda: ORDERS["gpipe"](1000, 1000), "at most 250000 passes"),
        (lambda: ideal_bubble("dapple", 2, 2), "unknown pipeline schedule 'dapple'; known: gpipe, 1f1b"),
        (
            lambda: pipeline_graph(
                PipelineOrder("own", 1, 1, ((StagePass(0, 0, True), StagePass(0, 0, False)),)), StageCosts(1, 1)
            ),
            "own: no worker can go on",
        ),
    ],
)
def test_what_makes_no_pipeline_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
