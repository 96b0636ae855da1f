from fractions import Fraction

import pytest

from collectives.dense.ring import ring_all_reduce
from commsim.core.errors import InputError
from commsim.workload.cost_of import closed_form_costs
from commsim.workload.parallel.pipeline import StageCosts, pipeline_graph
from commsim.workload.parallel.pipeline_orders import one_forward_one_backward
from commsim.workload.systems.volumes import compress_backward, embedding_volume, low_rank_ratio, ring_volume
from commsim.workload.task_graph import simulate_graph

ORDER = one_forward_one_backward(4, 12)
GRAPH = pipeline_graph(ORDER, StageCosts(1.0, 2.0, activation=100.0))


def sent_by_each(n_ranks):
    """Chunks that a rank of the schedule sends, over the chunks of the tensor."""
    transfers = ring_all_reduce(n_ranks).expand()
    return Fraction(int((transfers["src"] == 0).sum()), n_ranks)


@pytest.mark.parametrize("d", [1, 2, 4, 8])
def test_fused_embedding_synchronisation_sends_exactly_what_the_rings_send(d):
    assert embedding_volume(d, fused=False) == Fraction(3 * d - 2, d) == sent_by_each(d) + sent_by_each(2)
    assert embedding_volume(d, fused=True) == Fraction(2 * d - 1, d) == sent_by_each(2 * d)
    assert ring_volume(d) == sent_by_each(d)


def test_four_pipelines_send_1_75_instead_of_2_5_embeddings():
    assert (embedding_volume(4, fused=False), embedding_volume(4, fused=True)) == (Fraction(5, 2), Fraction(7, 4))


def test_rank_12_makes_the_gradient_of_an_activation_about_a_hundredth():
    rows, columns = 8 * 1024, 3072  # micro-batch 8, 1024 tokens, hidden 3072
    assert float(low_rank_ratio(rows, columns, 12)) == pytest.approx(12 / 8192 + 12 / 3072)
    assert low_rank_ratio(10, 10, 100) == 1


def test_only_gradients_are_compressed_and_of_these_only_the_epilogue_where_asked():
    sizes = {task.name: task.size for task in compress_backward(GRAPH, 0.1, 12, epilogue=3).tasks if task.operation}
    assert all(size == 100 for name, size in sizes.items() if name.startswith("activation"))
    for name, size in sizes.items():
        if name.startswith("gradient"):
            assert size == pytest.approx(10.0 if int(name.split()[1]) >= 9 else 100.0)


def test_compressing_the_epilogue_alone_gains_some_of_what_compressing_all_gains():
    costs = closed_form_costs(0.0, 200.0)
    times = [
        simulate_graph(graph, costs).iteration_time
        for graph in (GRAPH, compress_backward(GRAPH, 0.01, 12, epilogue=3), compress_backward(GRAPH, 0.01, 12))
    ]
    assert times[0] > times[1] > times[2] > 15 * 3


def test_what_makes_no_sense_is_refused():
    with pytest.raises(InputError, match="data parallel must be at least 1, got 0"):
        embedding_volume(0, fused=True)
    with pytest.raises(InputError, match=r"a ratio in \(0, 1\]"):
        compress_backward(GRAPH, 0.0, 12)
    with pytest.raises(InputError, match="rows, columns and rank"):
        low_rank_ratio(0, 1, 1)
