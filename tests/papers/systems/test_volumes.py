from fractions import Fraction

import pytest

from collectives.dense.ring import ring_all_reduce
from commsim.core.errors import InputError
from commsim.papers.systems.volumes import (
    activation_intensity,
    bandwidth_needed,
    compress_backward,
    efficiency,
    embedding_volume,
    intensity,
    low_rank_ratio,
    offload_bytes,
    ring_volume,
)
from commsim.training.cost_by_formula import closed_form_costs
from commsim.training.parallel.pipeline import StageCosts, pipeline_graph
from commsim.training.parallel.pipeline_orders import one_forward_one_backward
from commsim.training.task_graph import simulate_graph

PEAK = 70e12


def test_parameters_at_70_gb_per_s_leave_half_of_a_v100_at_the_smallest_batch():
    """ZeRO-Infinity, section 4.2: over 50 % with one example of 1024 tokens."""
    assert intensity("parameters", 1, 1024) == 1024
    assert efficiency(1024, 70e9, PEAK) == pytest.approx(0.506, abs=1e-3)
    assert bandwidth_needed(1024, PEAK, 0.5) == pytest.approx(68.4e9, rel=1e-3)


def test_optimizer_states_need_four_times_the_bandwidth_and_1500_gb_per_s_give_90_percent_at_batch_2():
    assert intensity("parameters", 2, 1024) == 4 * intensity("optimizer", 2, 1024)
    assert efficiency(intensity("optimizer", 2, 1024), 1.5e12, PEAK) > 0.9
    assert bandwidth_needed(intensity("optimizer", 2, 1024), PEAK, 0.9) < 1.5e12


def test_activation_checkpoints_of_a_hidden_size_of_8192_need_about_a_third_of_a_gb_per_s():
    needed = bandwidth_needed(activation_intensity(8192), PEAK, 0.5)
    assert needed == pytest.approx(0.356e9, rel=1e-3)
    assert efficiency(activation_intensity(8192), needed, PEAK) == pytest.approx(0.5)
    assert activation_intensity(8192, 2) == 2 * activation_intensity(8192)


def test_zero_offload_sends_2_bytes_per_parameter_each_way_and_shares_them_among_gpus():
    assert offload_bytes(10e9) == (20e9, 20e9)
    assert offload_bytes(10e9, 16) == (1.25e9, 1.25e9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: intensity("gradients", 1, 1), "unknown state 'gradients'; known: parameters, optimizer"),
        (lambda: bandwidth_needed(1.0, 1.0, 1.0), "between 0 and 1, got 1.0"),
        (lambda: offload_bytes(1.0, 0), "parameters and GPUs must be positive"),
    ],
)
def test_what_makes_no_sense_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


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


def test_what_optimus_cc_cannot_do_is_refused():
    with pytest.raises(InputError, match="data parallel must be at least 1, got 0"):
        embedding_volume(0, fused=True)
    with pytest.raises(InputError, match=r"a ratio in \(0, 1\]"):
        compress_backward(GRAPH, 0.0, 12)
    with pytest.raises(InputError, match="rows, columns and rank"):
        low_rank_ratio(0, 1, 1)
