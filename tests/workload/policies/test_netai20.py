from pathlib import Path

import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.workload.backward_trace import BackwardTrace, read_backward_trace, read_vector_add
from commsim.workload.cost_of import closed_form_costs
from commsim.workload.data_parallel import train
from commsim.workload.setting import Setting

TRACES = Path(__file__).resolve().parents[4] / "shared" / "data" / "traces"


def exchanges(training):
    return [row for row in training.timeline.rows() if "operation" in row]


def test_a_window_of_backward_time_or_a_full_buffer_closes_a_bucket():
    sizes = np.array([1.0, 1.0, 9.0, 1.0, 1.0])
    trace = BackwardTrace(sizes, np.array([1.0, 5.0, 6.0, 7.0, 11.0]), np.zeros(5))
    setting = Setting(trace, 2, closed_form_costs(0.0, 1e3))
    found = exchanges(train("netai20:window=5s,buffer=9B", setting))
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
        setting = Setting(trace, n_workers, closed_form_costs(0.0, gbps * 1e9 / 8), compression, add_time)
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
        assert [len(exchanges(scaling(model, 16, 10))) for model in BATCH] == [12, 15]
