"""Times of workloads over hashes of routes: medians of each exchange, and the ends of the total."""

import numpy as np
import pytest

import commsim as cs
from commsim.prediction.plans.draws import hash_seeds
from commsim.training.cost_by_simulation import network_costs
from commsim.training.hash_ends import FASTEST, SLOWEST, spread_of
from commsim.training.parallel.resharding import resharding_result
from commsim.training.parallel.transfer_times import transfer_rows
from commsim.training.parallel.transfers import kv_side
from commsim.training.task_graph import Task

SPINES = "leaf_spine:n_leaves=4,n_spines=4,hosts_per_leaf=4,bandwidth=100Gbps,latency=500ns"
STAR = "star:n_hosts=16,bandwidth=100Gbps"
NAMED = {"all_reduce": "halving_doubling_all_reduce"}
SUM = Task("sum", (), operation="all_reduce", group=tuple(range(16)), size=2**20)


def test_a_cost_is_the_median_and_has_the_ends_of_as_many_hashes_as_are_asked_for():
    known = cs.predict(NAMED["all_reduce"], SPINES, SUM.size, hashes=5, overhead="0us")
    time_of = network_costs(SPINES, algorithms=NAMED, hashes=5, overhead="0us")
    assert time_of(SUM) == known.time
    ends = [time_of.at(which)(SUM) for which in (FASTEST, SLOWEST)]
    assert ends == [known.hashes.fastest, known.hashes.slowest]
    assert time_of.n_drawn == 5
    found = spread_of(time_of, lambda of: 2 * of(SUM), 2 * time_of(SUM))
    assert found[:3] == (5, 2 * ends[0], 2 * ends[1])


@pytest.mark.parametrize(("network", "hashes"), [(SPINES, 1), (STAR, None)])
def test_one_hash_and_routes_that_are_unique_have_no_ends(network, hashes):
    time_of = network_costs(network, algorithms=NAMED, hashes=hashes, overhead="0us")
    one = cs.predict(NAMED["all_reduce"], network, SUM.size, hashes=1, overhead="0us").time
    assert (time_of(SUM), time_of.n_drawn, spread_of(time_of, lambda of: of(SUM), one)) == (one, 0, None)


def test_exchanges_that_share_links_are_the_median_of_the_same_hashes():
    halves = [Task(f"{k}", (), operation="all_reduce", group=tuple(range(k, 16, 2)), size=2**20) for k in (0, 1)]
    begun = [(task, 0.0) for task in halves]
    each = [
        network_costs(SPINES, algorithms=NAMED, hashes=1, seed=seed, overhead="0us").together(begun)
        for seed in (0, *hash_seeds(0, 4))
    ]
    drawn = network_costs(SPINES, algorithms=NAMED, hashes=4, overhead="0us")
    assert drawn.together(begun) in each
    assert drawn.at(FASTEST).together(begun) == np.min(each, axis=0).tolist()
    assert drawn.at(SLOWEST).together(begun) == np.max(each, axis=0).tolist()


def test_steps_and_transfers_have_the_ends_in_their_rows():
    slow = "dgx-h100:net=roce@leaf_spine:machines=4,n_leaves=4,n_spines=2,bandwidth=400Gbps"
    asked = {"tp": 8, "global_batch": 8, "micro_batch": 1, "ignore_memory": True, "overlap": ()}
    step = cs.training_step("llama3-8b", "h100", slow, **asked)
    one = cs.training_step("llama3-8b", "h100", slow, hashes=1, **asked)
    assert step.hashes is not None
    assert step.hashes.fastest <= step.time <= step.hashes.slowest
    assert step.row()["n_hashes"] == 8
    assert "n_hashes" not in one.row()
    sides = kv_side(4, 8, "from"), kv_side(8, 8, "to")
    ((row,), _) = transfer_rows(SPINES, *sides, 2**20, hashes=3)
    assert row["n_hashes"] == 3
    assert row["fastest_s"] <= row["time_s"] <= row["slowest_s"]
    ((row,), _) = transfer_rows(SPINES, *sides, 2**20, hashes=1)
    assert "n_hashes" not in row
    piece = resharding_result("all_gather", 2**20, SPINES, 12, hashes=1)
    assert piece.hashes is None
