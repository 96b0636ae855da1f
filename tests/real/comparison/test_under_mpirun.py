import numpy as np
import pytest

from collectives import COLLECTIVES
from commsim.core.curves import Curve, Curves
from commsim.core.errors import InputError
from commsim.prediction.collective_names import load_schedule
from commsim.real.calibrate import as_network
from commsim.real.comparison.under_mpirun import OF_LIBRARY, build_schedules, predictor, schedules_of_library

MESSAGE, GAP = 1e-3, 1e-6  # a message takes so long, and the next one may begin so much later


@pytest.fixture
def network():
    return as_network(Curves((Curve("copy", False, False, 0.0, [1.0, 1e9], [MESSAGE] * 2, [GAP] * 2),)), 2, "2 ranks")


@pytest.mark.parametrize("n_pieces", [1, 3, 8])
def test_pieces_of_two_trees_follow_each_other_only_where_channels_may_overtake(network, n_pieces) -> None:
    """In the order of the program a rank sends a piece of one tree when it has passed on that of the other."""
    (build,) = build_schedules([f"double_tree_all_reduce:n_chunks={n_pieces}"], 2)
    schedule = build(2**20)
    pipelined, in_order = (
        predictor(lambda: network, any_order=any_order)(schedule, 2**20).time for any_order in (True, False)
    )
    assert pipelined == pytest.approx(2 * MESSAGE, rel=0.02)
    assert in_order == pytest.approx((n_pieces + 1) * MESSAGE, rel=0.02)


def test_schedules_with_one_channel_are_predicted_alike(network) -> None:
    for name in ("ring_all_reduce", "direct_all_to_all", "binomial_broadcast"):
        schedule = COLLECTIVES[name].build(2)
        times = [predictor(lambda: network, any_order=order)(schedule, 4096).time for order in (True, False)]
        np.testing.assert_allclose(times[0], times[1], rtol=1e-12, err_msg=name)


def test_a_library_s_rules_choose_by_operation_and_size() -> None:
    names = {
        size: [build(size).name for build in schedules_of_library("open-mpi", 4)] for size in (4096.0, 2.0**20, 2.0**24)
    }
    assert names[4096.0][0] == "recursive_doubling_all_reduce"
    assert names[2.0**24][0] == "halving_doubling_all_reduce"
    assert [build(4096.0).operation for build in schedules_of_library("mpich", 4)] == list(OF_LIBRARY)
    with pytest.raises(InputError, match="known: mpich, open-mpi"):
        schedules_of_library("lam", 4)


@pytest.mark.parametrize("name", ["chain_broadcast", "chain_reduce", "double_tree_all_reduce"])
@pytest.mark.parametrize("size", [4096, 2**20, 2**24])
def test_a_real_run_is_cut_as_a_prediction_is(name, size):
    (build,) = build_schedules([name], 8)
    assert build(size) == load_schedule(name, 8, size) != load_schedule(f"{name}:n_chunks=63", 8, size)
