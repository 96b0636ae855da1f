"""Times of operators in traces of Kineto."""

import json

import pytest

from commsim.core.errors import InputError
from commsim.profiles.kineto_operators import read_kernel_times


class Shaped:
    """A tensor of a shape."""

    def __init__(self, *shape):
        self.shape = shape


def call(name, number, ts, dur, dims=()):
    return {"ph": "X", "cat": "cpu_op", "name": f"aten::{name}", "ts": ts, "dur": dur, "tid": 1,
            "args": {"External id": number, "Input Dims": [list(one) for one in dims]}}  # fmt: skip


def kernel(number, dur):
    return {"ph": "X", "cat": "kernel", "name": "k", "ts": 0, "dur": dur, "args": {"External id": number}}


def written(tmp_path, *events):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def test_an_operator_takes_what_its_kernels_took_with_the_same_shapes(tmp_path):
    path = written(
        tmp_path, call("mm", 1, 0, 5, [(2, 3), (3, 4)]), call("mm", 2, 9, 5, [(8, 8), (8, 8)]), call("copy_", 3, 20, 1),
        kernel(1, 10), kernel(1, 2), kernel(2, 40), kernel(3, 7),
    )  # fmt: skip
    times = read_kernel_times(path)
    assert times.of("mm", [Shaped(2, 3), Shaped(3, 4)]) == pytest.approx(12e-6)
    assert times.of("mm", [Shaped(1, 1)]) == pytest.approx(26e-6)
    assert times.of("clone", []) == pytest.approx(7e-6)
    assert times.of("relu", []) is None


def test_without_kernels_an_operator_takes_what_it_spends_outside_of_those_that_it_calls(tmp_path):
    times = read_kernel_times(written(tmp_path, call("linear", 1, 0, 10), call("addmm", 2, 2, 6)))
    assert times.of("linear", []) == pytest.approx(4e-6)
    assert times.of("addmm", []) == pytest.approx(6e-6)


def test_a_trace_without_operators_is_refused(tmp_path):
    with pytest.raises(InputError, match="has no operators"):
        read_kernel_times(written(tmp_path, kernel(1, 2)))
