from collections import Counter

import pytest

from commsim.core.errors import InputError
from commsim.workload.cost_of import closed_form_costs
from commsim.workload.parallel.layer_parallel import TransformerLayer, tensor_parallel_graph
from commsim.workload.task_graph import simulate_graph

LAYER = TransformerLayer(attention=1.0, mlp=2.0, activation=1000.0)


def test_a_layer_has_two_all_reduces_forward_and_two_backward():
    graph = tensor_parallel_graph(LAYER, 3, 8)
    assert Counter(task.operation for task in graph.tasks) == {"": 12, "all_reduce": 12}
    timeline = simulate_graph(graph, closed_form_costs(0.0, 100.0))
    assert timeline.iteration_time == pytest.approx(3 * (9.0 + 4 * 2 * 7 / 8 * 10))
    assert timeline.exposed_communication == pytest.approx(3 * 4 * 2 * 7 / 8 * 10)


@pytest.mark.parametrize("n_ranks", [2, 4, 8])
def test_sequence_parallelism_sends_the_same_bytes_in_twice_as_many_operations(n_ranks):
    times = []
    for sequence_parallel in (False, True):
        graph = tensor_parallel_graph(LAYER, 2, n_ranks, sequence_parallel=sequence_parallel)
        times.append(simulate_graph(graph, closed_form_costs(0.1, 100.0)).iteration_time)
    assert times[0] == pytest.approx(times[1])
    assert Counter(task.operation for task in graph.tasks) == {"": 8, "all_gather": 8, "reduce_scatter": 8}


def test_backward_goes_through_the_blocks_in_the_other_order():
    computed = [task.name for task in tensor_parallel_graph(LAYER, 2, 1).tasks]
    assert computed[:3] == ["forward attention 0", "forward mlp 0", "forward attention 1"]
    assert computed[4:] == ["backward mlp 1", "backward attention 1", "backward mlp 0", "backward attention 0"]


def test_counts_below_one_are_refused():
    with pytest.raises(InputError, match="layers and ranks must be at least 1, got 0 and 2"):
        tensor_parallel_graph(LAYER, 0, 2)
