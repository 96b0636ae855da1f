import pytest

from commsim.core.errors import InputError
from commsim.training.cost_by_formula import closed_form_costs
from commsim.training.parallel.pipeline import StageCosts, bubble, pipeline_graph
from commsim.training.parallel.pipeline_orders import ORDERS, chimera, gpipe, interleaved, one_forward_one_backward
from commsim.training.task_graph import simulate_graph


def messages(graph):
    return [task for task in graph.tasks if task.operation == "send"]


@pytest.mark.parametrize("name", ORDERS)
def test_each_micro_batch_crosses_each_boundary_once_each_way(name):
    order = ORDERS[name](4, 8)
    sent = messages(pipeline_graph(order, StageCosts(1.0, 2.0, activation=10.0)))
    assert len(sent) == 2 * 8 * (order.n_stages - 1)
    assert all(abs(task.group[0] - task.group[1]) in (1, 3) and task.size == 10 for task in sent)


def test_messages_of_gpipe_are_paid_once_per_boundary_and_direction():
    graph = pipeline_graph(gpipe(4, 8), StageCosts(1.0, 2.0, activation=100.0))
    timeline = simulate_graph(graph, closed_form_costs(0.0, 1000.0))
    assert timeline.iteration_time == pytest.approx((8 + 3) * 3 + 2 * 3 * 0.1)
    assert timeline.exposed_communication > 0


def test_a_slow_network_is_the_bottleneck_of_the_pipeline():
    timeline = simulate_graph(
        pipeline_graph(gpipe(2, 50), StageCosts(1.0, 1.0, activation=400.0)), closed_form_costs(0.0, 100.0)
    )
    assert timeline.iteration_time == pytest.approx(2 * 50 * 4.0 + 2 * 2.0)


def test_a_longer_warm_up_hides_the_messages_that_1f1b_waits_for():
    """A message takes half a pass: 1F1B waits for two in every turn, the eager one only where the pipeline fills."""
    times = {
        name: simulate_graph(
            pipeline_graph(ORDERS[name](4, 32), StageCosts(2.0, 2.0, activation=1.0)), closed_form_costs(0.0, 1.0)
        ).iteration_time
        for name in ("gpipe", "1f1b", "eager_1f1b")
    }
    assert times["eager_1f1b"] == times["gpipe"] == (32 + 3) * 4 + 2 * 3 * 1
    assert times["1f1b"] > (32 + 3) * 4 + 28 * 1


def test_interleaving_sends_v_times_as_much():
    counts = [len(messages(pipeline_graph(interleaved(4, 8, v), StageCosts(1.0, 2.0, activation=1.0)))) for v in (1, 3)]
    assert counts == [2 * 8 * 3, 2 * 8 * 11]


def test_a_slow_stage_sets_the_pace():
    order = one_forward_one_backward(4, 16)
    timeline = simulate_graph(pipeline_graph(order, StageCosts([1, 1, 3, 1], [2, 2, 6, 2])), lambda _: 0.0)
    assert timeline.iteration_time == 2 * 1 + 16 * 9 + 2 * 2  # the way to the slow stage, its work, and the way back
    assert bubble(timeline, 4) == pytest.approx(1 - (3 * 16 * 3 + 16 * 9) / (4 * 150))


def test_gradients_of_each_stage_are_reduced_among_its_copies():
    costs = StageCosts(1.0, 2.0, weights=50.0, data_parallel=3)
    reduced = [t for t in pipeline_graph(gpipe(4, 4), costs).tasks if t.operation == "all_reduce"]
    assert [task.group for task in reduced] == [(w, w + 4, w + 8) for w in range(4)]
    both = [t for t in pipeline_graph(chimera(4, 4), costs).tasks if t.operation == "all_reduce"]
    assert [task.group for task in both] == [
        (0, 3, 4, 7, 8, 11),
        (1, 2, 5, 6, 9, 10),
        (1, 2, 5, 6, 9, 10),
        (0, 3, 4, 7, 8, 11),
    ]
    assert [t.operation for t in pipeline_graph(chimera(4, 4), StageCosts(1.0, 1.0, weights=5.0)).tasks].count(
        "all_reduce"
    ) == 4


def test_later_stages_reduce_while_earlier_ones_still_compute():
    graph = pipeline_graph(one_forward_one_backward(4, 4), StageCosts(1.0, 2.0, weights=100.0, data_parallel=2))
    timeline = simulate_graph(graph, closed_form_costs(0.0, 50.0))
    assert timeline.iteration_time == pytest.approx((4 + 3) * 3 + 2.0)
    ends = {task.name: end for task, end in zip(graph.tasks, timeline.end, strict=True)}
    assert ends["all-reduce stage 3"] == pytest.approx(15 + 2.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: StageCosts(-1.0, 1.0), "forward must be 0 or more and finite, got -1.0"),
        (lambda: StageCosts(1.0, 1.0, data_parallel=0), "data parallel must be at least 1, got 0"),
        (lambda: pipeline_graph(gpipe(4, 2), StageCosts([1.0, 2.0], 1.0)), "one for each of 4 stages"),
    ],
)
def test_costs_that_make_no_sense_are_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
