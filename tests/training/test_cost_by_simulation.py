import dataclasses
import math

import pytest
from remark_codes import codes

from commsim import predict
from commsim.core.cost import Framing
from commsim.core.errors import InputError
from commsim.prediction.collective_names import USUAL
from commsim.prediction.read import scenario_of
from commsim.prediction.solve import solve
from commsim.training.cost_by_formula import closed_form_costs
from commsim.training.cost_by_simulation import network_costs
from commsim.training.task_graph import Task

STAR = "star:n_hosts=5,bandwidth=100Gbps,latency=1us"


def task(operation, group=(0, 1, 2, 3), size=4e6):
    return Task(operation, ("gpu0.network",), operation=operation, group=group, size=size)


@pytest.mark.parametrize(
    ("operation", "steps", "share"),
    [
        ("all_reduce", 6, 1.5),
        ("reduce_scatter", 3, 0.75),
        ("all_gather", 3, 0.75),
        ("all_to_all", 3, 0.75),
        ("broadcast", 3, 1.0),
        ("send_recv", 1, 1.0),
        ("barrier", 2, 0.0),
    ],
)
def test_closed_forms_are_steps_and_the_bus_bandwidth_factor(operation, steps, share):
    cost = closed_form_costs(alpha=1e-5, bandwidth=1e9)
    assert cost(task(operation)) == pytest.approx(steps * 1e-5 + share * 4e6 / 1e9)


def test_a_message_is_sent_whole_and_adding_is_paid_where_something_is_added():
    cost = closed_form_costs(1e-5, 1e9, gamma=1e-9)
    assert cost(task("send", (3, 1))) == pytest.approx(1e-5 + 4e-3)
    added = {name: cost(task(name)) - closed_form_costs(1e-5, 1e9)(task(name)) for name in ("all_reduce", "all_gather")}
    assert added == pytest.approx({"all_reduce": 3e-3, "all_gather": 0.0}, abs=1e-15)


@pytest.mark.parametrize("operation", sorted(USUAL))
def test_a_group_of_one_costs_nothing(operation):
    assert closed_form_costs(1e-5, 1e9, 1e-9)(task(operation, (2,))) == 0
    assert network_costs(STAR)(task(operation, (2,))) == 0


@pytest.mark.parametrize("operation", ["all_reduce", "reduce_scatter", "all_gather", "all_to_all", "send_recv", "send"])
def test_without_contention_the_network_costs_what_the_closed_form_says(operation):
    group = (0, 2) if operation == "send" else (0, 1, 2, 4)
    simulated = network_costs(STAR, overhead=0.0)(task(operation, group))
    # a message of the star crosses two links, of 1 us each
    assert simulated == pytest.approx(closed_form_costs(alpha=2e-6, bandwidth=12.5e9)(task(operation, group)))


@pytest.mark.parametrize("operation", ["all_reduce", "reduce_scatter", "all_gather", "all_to_all", "send"])
def test_overheads_and_headers_cost_the_same_on_the_network_and_in_the_closed_form(operation):
    one = task(operation, (0, 2) if operation == "send" else (0, 1, 2, 4))
    packets = Framing(1000.0, 82.0)
    simulated = network_costs(STAR, overhead=5e-6, framing=packets)(one)
    assert simulated == pytest.approx(closed_form_costs(7e-6, 12.5e9, framing=packets)(one))
    assert simulated > network_costs(STAR, overhead=5e-6)(one) > network_costs(STAR, overhead=0.0)(one)


def test_each_message_of_a_ring_has_packets_of_its_own():
    """4 parts of 250 bytes, each one packet: 6 steps of 250 + 50 bytes."""
    cost = closed_form_costs(0.0, 1e9, framing=Framing(1000.0, 50.0))
    assert cost(task("all_reduce", size=1000.0)) == pytest.approx(6 * 300 / 1e9)
    assert cost(task("barrier", size=0.0)) == pytest.approx(2 * 50 / 1e9)  # packets of headers alone
    assert cost(task("broadcast", size=4000.0)) == pytest.approx(4200 / 1e9)


def test_the_network_costs_are_those_of_a_run_of_the_group_alone():
    cost = network_costs(
        "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=2", algorithms={"all_reduce": "double_tree_all_reduce"}
    )
    alone = predict("double_tree_all_reduce", "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=2", 4e6).time
    assert cost(task("all_reduce")) == alone
    assert cost(task("all_reduce")) == alone
    assert 0 < cost(task("all_reduce", (0, 1), 0.0)) < alone
    assert cost(Task("backward", ("gpu0.compute",), 2.0)) == 2.0


def test_what_is_not_known_is_refused():
    with pytest.raises(InputError, match="unknown operation 'gossip'"):
        closed_form_costs()(task("gossip"))
    with pytest.raises(InputError, match="no algorithm for 'gossip'; known: all_gather"):
        network_costs(STAR)(task("gossip"))
    with pytest.raises(InputError, match="rank 9 has no place, 5 ranks are placed"):
        network_costs(STAR)(task("send", (0, 9)))
    with pytest.raises(InputError, match="bandwidth positive"):
        closed_form_costs(bandwidth=0.0)
    with pytest.raises(InputError, match="alpha and gamma"):
        closed_form_costs(alpha=math.nan)


def sparse_task(*parts):
    return dataclasses.replace(task("all_reduce", size=sum(n for n, _ in parts)), parts=parts)


def test_an_array_of_a_dense_tensor_and_an_embedding_sends_the_sum_of_both():
    cost = network_costs(STAR, n_ranks=4, algorithms={"all_reduce": "agsparse"})
    both = sparse_task((4e5, 1.0), (4e6, 0.01))
    # an all-gather of lists: 8 bytes for each value of 4, from each of 3 others
    assert cost.sent_by_each(both) == pytest.approx(3 * 2 * (4e5 + 4e4))
    assert cost(both) == pytest.approx(3 * 2 * 4.4e5 / 12.5e9, rel=0.1)
    assert cost(sparse_task((4e5, 0.01), (4e6, 0.01))) < cost(both) < cost(sparse_task((4e5, 1.0), (4e6, 0.5)))
    assert "data" in codes(cost.notes())


def test_a_ring_sends_everything_whatever_the_densities_are():
    cost = network_costs(STAR, n_ranks=4)
    assert cost(sparse_task((4e6, 0.01))) == cost(task("all_reduce"))


def test_a_density_is_said_once():
    cost = network_costs(STAR, n_ranks=4, algorithms={"all_reduce": "omnireduce:n_aggregators=1,density=0.1"})
    assert cost(task("all_reduce")) > 0
    with pytest.raises(InputError, match="tensors have densities of their own; leave out density="):
        cost(sparse_task((4e6, 0.01)))


@pytest.mark.parametrize("network", ["star:n_hosts=4", "dgx-h100", "nvswitch_host"])
@pytest.mark.parametrize("operation", sorted(USUAL))
def test_an_exchange_is_by_default_what_run_takes_for_it(network, operation):
    size = 0.0 if operation == "barrier" else 4e6
    cost = network_costs(network)
    asked = scenario_of(None, network, operation=operation)
    (found,) = solve(asked, [size]).results
    assert cost(task(operation, tuple(range(found.n_ranks)), size)) == found.time
    usual = {said for said in asked.remarks if said.code in ("usual", "gpus-unknown")}
    assert usual <= set(cost.notes())
    assert usual or network != "dgx-h100"


@pytest.mark.parametrize(
    ("algorithms", "message"),
    [
        ({"all_reduce": "ring_all_gather"}, "ring_all_gather implements all_gather, not all_reduce"),
        ({"all_reduce": "dissemination_barrier"}, "dissemination_barrier implements barrier, not all_reduce"),
        ({"barrier": "ring_all_reduce"}, "ring_all_reduce implements all_reduce, not barrier"),
        ({"zzz": "ring_all_reduce"}, "unknown operation 'zzz'"),
    ],
)
def test_an_algorithm_of_another_operation_is_refused(algorithms, message):
    with pytest.raises(InputError, match=message):
        network_costs(STAR, algorithms=algorithms)
