import itertools

import pytest

from commsim.core.errors import InputError
from commsim.papers.systems.bytescheduler import CREDITS, PARTITIONS, bytescheduler


@pytest.mark.parametrize("n_servers", [0, 4])
def test_the_tuned_iteration_is_the_best_of_what_was_tried_and_no_faster_than_its_bound(n_servers):
    answer = bytescheduler(n_servers=n_servers)
    assert answer["tuned_s"] == min(row["iteration_s"] for row in answer["tried"])
    assert [row["partition_B"] for row in answer["tried"]] == list(PARTITIONS)
    assert answer["credit_B"] / answer["partition_B"] in CREDITS
    compute = 1.5 * sum((27.0, 39.0, 65.0, 65.0, 19.4, 1.4, 0.24, 0.06)) * 1e-3
    rate = 1.25e9 * (8 / 14 if n_servers == 0 else n_servers / 8)
    assert answer["tuned_s"] >= max(compute, 552.341e6 / rate)
    assert answer["tuned_s"] < answer["whole_tensors_s"]


def test_the_best_partition_grows_with_what_a_partition_costs():
    """Small ones are overtaken sooner, large ones pay the overhead less often."""
    best = [
        bytescheduler(weights_mb=(1.0, 40.0), backward_ms=(20.0, 20.0), overhead=overhead)["partition_B"]
        for overhead in (0.0, 100e-6, 1e-3, 10e-3)
    ]
    assert best == sorted(best)
    assert best[0] < best[-1]


def test_one_layer_with_servers_by_hand():
    """Without overhead: a push of all partitions, and the pull of the last; the smaller, the better."""
    answer = bytescheduler(weights_mb=(134.217728,), backward_ms=(10.0,), n_servers=8, overhead=0.0, alpha=0.0)
    push = 2**27 / 1.25e9
    for row in answer["tried"]:
        assert row["iteration_s"] == pytest.approx(0.015 + push + row["partition_B"] / 1.25e9)
    assert answer["partition_B"] == PARTITIONS[0]


def test_half_the_servers_halve_the_rate():
    common = {"weights_mb": (100.0,), "backward_ms": (1.0,), "overhead": 0.0, "alpha": 0.0}
    times = [bytescheduler(n_servers=n, **common)["whole_tensors_s"] - 1.5e-3 for n in (8, 4, 2)]
    for faster, slower in itertools.pairwise(times):
        assert slower == pytest.approx(2 * faster)
    assert bytescheduler(n_servers=16, **common)["whole_tensors_s"] - 1.5e-3 == pytest.approx(times[0])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"weights_mb": (1.0, 2.0)}, "must be of the same layers, got 2 and 8"),
        ({"n_workers": 1}, "workers must be at least 2"),
        ({"n_servers": -1}, "servers 0 or more"),
        ({"weights_mb": (1e9,), "backward_ms": (1.0,)}, "are more than 1000000 messages"),
        ({"weights_mb": (), "backward_ms": ()}, "at least one tensor"),
    ],
)
def test_what_makes_no_sense_is_refused(given, message):
    with pytest.raises(InputError, match=message):
        bytescheduler(**given)
