import math
from collections import Counter

import numpy as np
import pytest

from collectives.dense.all_to_all import direct_all_to_all, pairwise_all_to_all
from collectives.dense.ring import ring_all_reduce
from commsim.core.errors import InputError
from commsim.core.placement import Placement
from commsim.engine.flow import simulate_flows
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import plan_flows
from commsim.training.cost_by_formula import closed_form_costs
from commsim.training.parallel.layer_parallel import (
    EQUAL_BLOCKS,
    LINA_MICRO_OP,
    ROUTED,
    SENDING_POLICIES,
    ExpertLayer,
    SendingPolicy,
    TransformerLayer,
    expert_graph,
    expert_row,
    shared_slow_down,
    tensor_parallel_graph,
)
from commsim.training.task_graph import simulate_graph
from topologies.star import star

LAYER = ExpertLayer(attention=2e-3, expert=3e-3, tokens=64e6, gradients=200e6)
BANDWIDTH = 12.5e9


def together(n, all_to_all, reduced, n_reduces=1, priority=0):
    """Times of an all-to-all of 1 GB beside ring all-reduces, on a star of 100 Gbps without latency."""
    network = star(n, BANDWIDTH, 0.0)
    seats = Placement(network.endpoints[:n])
    jobs = [
        FlowJob(all_to_all(n), seats),
        *(FlowJob(ring_all_reduce(n), seats, priority=priority) for _ in range(n_reduces)),
    ]
    return [r.time for r in simulate_flows(plan_flows(network, jobs), [1e9] + [max(reduced, 1.0)] * n_reduces)]


@pytest.mark.parametrize("n", [4, 8])
@pytest.mark.parametrize("reduced", [0.0, 1e8, 3e8, 5e8, 5.5e8, 2e9])
def test_an_all_to_all_beside_one_all_reduce_takes_as_long_as_the_formula_says_and_at_most_twice_as_long(n, reduced):
    share = (n - 1) / n
    alone, other = 1e9 * share / BANDWIDTH, 2 * reduced * share / BANDWIDTH
    time = together(n, pairwise_all_to_all, reduced)[0]
    assert time / alone == pytest.approx(shared_slow_down(alone, other), rel=1e-8)
    assert time <= 2 * alone * (1 + 1e-8)


def test_the_bound_is_reached_and_only_more_all_reduces_at_a_time_exceed_it():
    alone = together(4, pairwise_all_to_all, 0.0)[0]
    assert together(4, pairwise_all_to_all, 4e9)[0] / alone == pytest.approx(2)
    assert together(4, pairwise_all_to_all, 4e9, n_reduces=3)[0] / alone == pytest.approx(4)
    assert together(4, direct_all_to_all, 4e9)[0] / alone == pytest.approx(4 / 3)  # three flows on a port against one


def test_priority_takes_the_slow_down_away_and_costs_the_all_reduce_only_that_time():
    n, reduced = 8, 1e9
    alone, other = (factor * 1e9 * 7 / 8 / BANDWIDTH for factor in (1, 2))
    times = together(n, pairwise_all_to_all, reduced, priority=1)
    assert times == pytest.approx([alone, alone + other], rel=1e-8)


@pytest.mark.parametrize("micro_op", [5e6, 30e6, math.inf])
@pytest.mark.parametrize("pipelined", [False, True])
def test_under_priority_an_all_to_all_waits_for_one_micro_op_at_most_and_none_starts_meanwhile(micro_op, pipelined):
    costs = closed_form_costs(0.0, BANDWIDTH)
    graph = expert_graph(LAYER, 6, 8, SendingPolicy("own", micro_op, all_to_all_first=True, pipelined=pipelined))
    timeline = simulate_graph(graph, costs)
    reduces = np.array([task.operation == "all_reduce" for task in graph.tasks])
    delayed = 0
    for i, task in enumerate(graph.tasks):
        if task.operation == "all_to_all":
            ready, start = max(timeline.end[j] for j in task.after), timeline.start[i]
            assert not (reduces & (timeline.start >= ready) & (timeline.start < start)).any()
            in_the_way = reduces & (timeline.start < ready) & (timeline.end > ready)
            assert in_the_way.sum() <= 1
            delayed += in_the_way.any()
    assert delayed
    longest = max(costs(task) for task in graph.tasks if task.operation == "all_reduce")
    assert longest <= 2 * 7 / 8 * min(micro_op, LAYER.gradients) / BANDWIDTH * (1 + 1e-9)


def test_lina_is_faster_than_priority_without_micro_ops_and_than_first_come_first_served():
    costs = closed_form_costs(1e-5, BANDWIDTH)
    times = {
        name: simulate_graph(expert_graph(LAYER, 12, 16, p), costs).iteration_time
        for name, p in SENDING_POLICIES.items()
    }
    assert times["lina"] < times["priority"] <= times["fifo"]


def test_an_iteration_sends_four_all_to_alls_per_layer_and_the_gradients_once_whatever_the_policy():
    for policy in SENDING_POLICIES.values():
        tasks = expert_graph(LAYER, 5, 8, policy).tasks
        sent = {op: sum(t.size for t in tasks if t.operation == op) for op in ("all_to_all", "all_reduce")}
        assert sent == pytest.approx({"all_to_all": 5 * 4 * 64e6, "all_reduce": 5 * 200e6})
        assert max(t.size for t in tasks) <= policy.micro_op
        assert sum(t.duration for t in tasks) == pytest.approx(5 * 3 * 5e-3)
    assert LINA_MICRO_OP == 30e6


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SendingPolicy("own", 0.0), "more than 0 bytes, got 0"),
        (lambda: expert_graph(LAYER, 1, 0, SENDING_POLICIES["fifo"]), "must be at least 1, got 1 and 0"),
        (
            lambda: expert_graph(LAYER, 1, 2, SendingPolicy("own", 1.0)),
            "at most 50000 pieces of tensors, got 264000000",
        ),
        (lambda: shared_slow_down(0.0, 1.0), "times must be positive"),
    ],
)
def test_what_makes_no_sense_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_of_two_micro_batches_one_computes_while_the_other_is_sent():
    def run(name, exchange=EQUAL_BLOCKS):
        layer = ExpertLayer(attention=1.0, expert=1.0, tokens=2.0, gradients=0.0, exchange=exchange)

        def cost(task):
            return task.size / 2 if task.operation else task.duration  # an exchange of all tokens takes a second

        return expert_row(layer, 10, 4, SENDING_POLICIES[name], cost)

    plain, two = run("priority")[0], run("two_micro_batches")[0]
    assert plain["iteration_s"] == pytest.approx(10 * (2 + 2 + 4 + 2))  # nothing is hidden
    assert plain["compute_s"] == two["compute_s"]
    assert plain["all_to_all_s"] == two["all_to_all_s"]
    assert two["iteration_s"] < 0.75 * plain["iteration_s"]
    row, timeline = run("two_micro_batches", ROUTED)
    assert row["iteration_s"] == two["iteration_s"]
    sent = Counter(task.operation for task in timeline.graph.tasks)
    assert (sent["ep_dispatch"], sent["ep_combine"]) == (40, 40)


TENSOR_LAYER = TransformerLayer(attention=1.0, mlp=2.0, activation=1000.0)


def test_a_layer_has_two_all_reduces_forward_and_two_backward():
    graph = tensor_parallel_graph(TENSOR_LAYER, 3, 8)
    assert Counter(task.operation for task in graph.tasks) == {"": 12, "all_reduce": 12}
    timeline = simulate_graph(graph, closed_form_costs(0.0, 100.0))
    assert timeline.iteration_time == pytest.approx(3 * (9.0 + 4 * 2 * 7 / 8 * 10))
    assert timeline.exposed_communication == pytest.approx(3 * 4 * 2 * 7 / 8 * 10)


@pytest.mark.parametrize("n_ranks", [2, 4, 8])
def test_sequence_parallelism_sends_the_same_bytes_in_twice_as_many_operations(n_ranks):
    times = []
    for sequence_parallel in (False, True):
        graph = tensor_parallel_graph(TENSOR_LAYER, 2, n_ranks, sequence_parallel=sequence_parallel)
        times.append(simulate_graph(graph, closed_form_costs(0.1, 100.0)).iteration_time)
    assert times[0] == pytest.approx(times[1])
    assert Counter(task.operation for task in graph.tasks) == {"": 8, "all_gather": 8, "reduce_scatter": 8}


def test_backward_goes_through_the_blocks_in_the_other_order():
    computed = [task.name for task in tensor_parallel_graph(TENSOR_LAYER, 2, 1).tasks]
    assert computed[:3] == ["forward attention 0", "forward mlp 0", "forward attention 1"]
    assert computed[4:] == ["backward mlp 1", "backward attention 1", "backward mlp 0", "backward attention 0"]


def test_counts_below_one_are_refused():
    with pytest.raises(InputError, match="layers and ranks must be at least 1, got 0 and 2"):
        tensor_parallel_graph(TENSOR_LAYER, 0, 2)
