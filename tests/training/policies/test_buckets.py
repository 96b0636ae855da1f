from pathlib import Path

import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.training.backward_trace import BackwardTrace, read_backward_trace
from commsim.training.cost_by_formula import closed_form_costs
from commsim.training.data_parallel import train
from commsim.training.data_parallel_setting import TrainingSetting
from commsim.training.vector_add import read_vector_add

MIB = 2**20
TRACE = BackwardTrace(np.array([0.5, 0.6, 20, 10, 1, 2]) * MIB, np.arange(1.0, 7.0), np.ones(6))


def exchanges(policy, **more):
    cost = closed_form_costs(more.pop("alpha", 0.0), 1e3 * MIB)
    training = train(policy, TrainingSetting(TRACE, 2, cost, **more))
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
    setting = TrainingSetting(TRACE, 2, closed_form_costs(0.0, 10.0 * MIB))
    once, four = train("ddp", setting), train("ddp:no_sync=4", setting)
    assert four.iteration_time == pytest.approx(once.iteration_time + 3 * TRACE.compute_time)
    assert four.exposed_communication == pytest.approx(once.exposed_communication)
    assert four.scaling > once.scaling


def test_without_overlap_all_of_the_communication_is_exposed():
    setting = TrainingSetting(TRACE, 2, closed_form_costs(0.0, 10.0 * MIB))
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


# the last layer's 8 bytes are ready at 0, the first layer's 1 byte at 1; forward takes 1 and 6
TWO_TENSORS = BackwardTrace(np.array([8.0, 1.0]), np.array([0.0, 1.0]), np.array([6.0, 1.0]))


def test_each_tensor_goes_by_itself_and_forward_waits_for_all():
    training = train("wfbp", TrainingSetting(TWO_TENSORS, 2, closed_form_costs(0.0, 1.0)))
    exchanges = [(row["size_B"], row["start_s"]) for row in training.timeline.rows() if "operation" in row]
    assert exchanges == [(8, 0), (1, 8)]
    assert training.iteration_time == 9 + 7


def test_without_overlap_the_network_waits_for_the_backward_pass():
    assert (
        train("wfbp:overlap=false", TrainingSetting(TWO_TENSORS, 2, closed_form_costs(0.0, 1.0))).iteration_time
        == 10 + 7
    )


FOUR_TENSORS = BackwardTrace(np.array([1.0, 2.0, 4.0, 8.0]), np.array([1.0, 2.0, 3.5, 4.5]), np.ones(4))


def horovod_exchanges(policy, alpha=0.0, n_workers=2):
    training = train(policy, TrainingSetting(FOUR_TENSORS, n_workers, closed_form_costs(alpha, 100.0)))
    return [(row["size_B"], row["start_s"]) for row in training.timeline.rows() if "operation" in row]


def test_tensors_go_at_the_end_of_the_negotiation_of_their_cycle():
    assert horovod_exchanges("horovod:cycle=2s") == [(3, 2), (4, 4), (8, 6)]
    assert horovod_exchanges("horovod:cycle=2s,negotiation=250ms") == [(3, 2.25), (4, 4.25), (8, 6.25)]
    assert horovod_exchanges("horovod:cycle=100s") == [(15, 100)]


def test_a_tensor_that_would_overflow_the_buffer_starts_the_next():
    assert [size for size, _ in horovod_exchanges("horovod:cycle=100s,fusion=7B")] == [7, 8]
    assert [size for size, _ in horovod_exchanges("horovod:cycle=100s,fusion=0B")] == [1, 2, 4, 8]


def test_unless_given_a_negotiation_is_two_barriers_and_a_long_one_makes_the_cycle_longer():
    # 4 workers: 2 x 2 steps of 0.25 s
    assert horovod_exchanges("horovod:cycle=2s", 0.25, 4)[0][1] == pytest.approx(2 + 1)
    assert [start for _, start in horovod_exchanges("horovod:cycle=10ms,negotiation=5s")] == [5 + 5]


def test_a_cycle_of_no_time_is_refused():
    with pytest.raises(InputError, match="a cycle must take more than 0 s"):
        horovod_exchanges("horovod:cycle=0s")


TRACES = Path(__file__).resolve().parents[4] / "shared" / "data" / "traces"


def starts_and_ends(training):
    return [row for row in training.timeline.rows() if "operation" in row]


def test_a_window_of_backward_time_or_a_full_buffer_closes_a_bucket():
    sizes = np.array([1.0, 1.0, 9.0, 1.0, 1.0])
    trace = BackwardTrace(sizes, np.array([1.0, 5.0, 6.0, 7.0, 11.0]), np.zeros(5))
    setting = TrainingSetting(trace, 2, closed_form_costs(0.0, 1e3))
    found = starts_and_ends(train("netai20:window=5s,buffer=9B", setting))
    assert [row["size_B"] for row in found] == [2, 9, 2]
    assert [row["start_s"] for row in found] == [5, 6, 11]
    for wrong in ("window=0s", "buffer=0B"):
        with pytest.raises(InputError, match="window and buffer must be more than 0"):
            train(f"netai20:{wrong}", setting)


if TRACES.is_dir():  # beside a checkout only where the team works; a test that is not there skips nothing
    BATCH = {"resnet50": 0.12809, "vgg16": 0.19452}

    def scaling(model, n_workers, gbps, compression=1.0):
        trace = read_backward_trace(TRACES / f"netai20_{model}.csv").with_compute_time(BATCH[model])
        add_time = read_vector_add(TRACES / "netai20_vector_add.csv")
        setting = TrainingSetting(trace, n_workers, closed_form_costs(0.0, gbps * 1e9 / 8), compression, add_time)
        return train("netai20", setting)

    @pytest.mark.parametrize(
        ("model", "n_workers", "compression", "percent"),
        [
            ("resnet50", 64, 1, {1: 7.6, 10: 54.0, 25: 91.0, 40: 99.4, 100: 99.5}),
            ("vgg16", 64, 1, {1: 2.2, 10: 20.1, 25: 43.9, 40: 62.2, 100: 99.3}),
            ("resnet50", 64, 2, {10: 81.7}),
            ("resnet50", 64, 5, {10: 99.4}),
            ("resnet50", 64, 10, {10: 99.5}),
            ("vgg16", 64, 2, {10: 36.7}),
            ("vgg16", 64, 5, {10: 72.3}),
            ("vgg16", 64, 10, {10: 99.3}),
            ("resnet50", 16, 1, {10: 57.2}),
            ("vgg16", 16, 1, {10: 21.2}),
        ],
    )
    def test_the_what_if_rows_are_met_to_half_a_point(model, n_workers, compression, percent):
        for gbps, expected in percent.items():
            assert 100 * scaling(model, n_workers, gbps, compression).scaling == pytest.approx(expected, abs=0.5)

    def test_the_models_fuse_into_as_many_buckets_as_the_paper_has():
        assert [len(starts_and_ends(scaling(model, 16, 10))) for model in BATCH] == [12, 15]
