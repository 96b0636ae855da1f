import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.workload.backward_trace import BackwardTrace
from commsim.workload.cost_of import closed_form_costs
from commsim.workload.data_parallel import train
from commsim.workload.setting import Setting

MIB = 2**20
TRACE = BackwardTrace(np.array([0.5, 0.6, 20, 10, 1, 2]) * MIB, np.arange(1.0, 7.0), np.ones(6))


def exchanges(policy, **more):
    cost = closed_form_costs(more.pop("alpha", 0.0), 1e3 * MIB)
    training = train(policy, Setting(TRACE, 2, cost, **more))
    return [row for row in training.timeline.rows() if "operation" in row]


def sizes(policy):
    return [row["size_B"] / MIB for row in exchanges(policy)]


def test_the_first_bucket_is_small_and_the_tensor_that_fills_a_bucket_is_its_last():
    assert sizes("ddp") == pytest.approx([1.1, 30, 3])
    assert [row["start_s"] for row in exchanges("ddp")] == pytest.approx([2, 4, 6])
    assert sizes("ddp:bucket=20MiB,first_bucket=20MiB") == pytest.approx([21.1, 13])
    assert sizes("ddp:bucket=0B,first_bucket=0B") == pytest.approx([0.5, 0.6, 20, 10, 1, 2])


def test_buckets_are_launched_strictly_in_order_even_if_a_later_one_is_ready_first():
    found = exchanges("ddp:find_unused=true,unused=4x5", alpha=0.25)
    # the last bucket has nothing to wait for, and yet goes after the one that is ready at 4 s
    assert found[2]["size_B"] == 3 * MIB
    assert found[2]["start_s"] == pytest.approx(found[1]["end_s"])
    assert found[1]["start_s"] == 4


def test_a_sparse_gradient_is_gathered_in_a_bucket_of_its_own():
    found = exchanges("ddp:sparse=2")
    assert [(row["operation"], row["size_B"] / MIB) for row in found] == [
        ("all_reduce", pytest.approx(1.1)),
        ("all_gather", 2 * 20),
        ("all_reduce", 13),
    ]


def test_no_sync_exchanges_once_for_all_batches():
    setting = Setting(TRACE, 2, closed_form_costs(0.0, 10.0 * MIB))
    once, four = train("ddp", setting), train("ddp:no_sync=4", setting)
    assert four.iteration_time == pytest.approx(once.iteration_time + 3 * TRACE.compute_time)
    assert four.exposed_communication == pytest.approx(once.exposed_communication)
    assert four.scaling > once.scaling


def test_without_overlap_all_of_the_communication_is_exposed():
    setting = Setting(TRACE, 2, closed_form_costs(0.0, 10.0 * MIB))
    training = train("ddp:overlap=false", setting)
    assert training.exposed_communication == pytest.approx(3.41)
    assert train("ddp", setting).exposed_communication < 3.41


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("ddp:unused=1", "never ready; give find_unused=true"),
        ("ddp:unused=6,find_unused=true", r"tensors are 0\.\.5, got 6"),
        ("ddp:sparse=9", r"tensors are 0\.\.5, got 9"),
        ("ddp:no_sync=0", "at least 1 batch, got 0"),
        ("ddp:bucket=25", "bucket needs a unit"),
        ("ddp:buckets=25MiB", "did you mean bucket"),
        ("dpp", "unknown training policy 'dpp'; did you mean ddp"),
    ],
)
def test_what_makes_no_sense_is_refused(policy, message):
    with pytest.raises(InputError, match=message):
        exchanges(policy)
