from pathlib import Path

import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.training.backward_trace import BackwardTrace, read_backward_trace, trace_from_gaps, write_backward_trace
from commsim.training.vector_add import read_vector_add

TRACES = Path(__file__).resolve().parents[3] / "shared" / "data" / "traces"


def written(folder, text):
    path = folder / "trace.csv"
    path.write_text(text)
    return path


def test_both_kinds_of_columns_are_read(tmp_path):
    trace = read_backward_trace(written(tmp_path, "tensor,numel,gap_us\na,2,0\nb,1536,5\n"))
    assert trace.n_bytes.tolist() == [8, 6144]
    np.testing.assert_allclose(trace.ready, [0, 5e-6])
    np.testing.assert_allclose(trace.forward, [0, 2.5e-6])
    other = read_backward_trace(written(tmp_path, "wait_us,nbytes\n1.5,8\n5,6144\n"))
    assert other.n_bytes.tolist() == [8, 6144]
    assert other.backward_time == pytest.approx(6.5e-6)
    assert other.compute_time == pytest.approx(9.75e-6)


def test_the_optimisers_times_are_a_column_or_a_total_that_is_shared_by_bytes(tmp_path):
    trace = read_backward_trace(written(tmp_path, "nbytes,wait_us,update_us\n8,1,3\n24,5,1\n"))
    np.testing.assert_allclose(trace.update, [3e-6, 1e-6])
    assert trace.compute_time == pytest.approx(6e-6 * 1.5 + 4e-6)
    assert trace.slowed(2.0).update_time == pytest.approx(8e-6)
    assert trace.with_compute_time(20e-6).forward.sum() == pytest.approx(10e-6)
    with pytest.raises(InputError, match="the backward pass and the optimiser take 1e-05 s"):
        trace.with_compute_time(9e-6)
    write_backward_trace(tmp_path / "again.csv", trace)
    np.testing.assert_allclose(read_backward_trace(tmp_path / "again.csv").update, trace.update)
    np.testing.assert_allclose(trace.with_update_time(8e-6).update, [2e-6, 6e-6])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "needs the columns numel and gap_us, or nbytes and wait_us, got"),
        ("", "is empty"),
        ("numel,gap_us\n", "holds no tensor"),
        ("numel,gap_us\n1,2\n1,x\n", "line 3: gap_us must be a number, got 'x'"),
        ("numel,gap_us\n-1,2\n", "line 2: numel must be a number of 0 or more, got '-1'"),
        ("numel,gap_us\n1,nan\n", "line 2: gap_us must be"),
        ("numel,gap_us\n1\n", "line 2: 2 cells are required, got 1"),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read_backward_trace(written(tmp_path, text))


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"gone\.csv: No such file"):
        read_backward_trace(tmp_path / "gone.csv")


def test_values_that_make_no_sense_are_refused():
    with pytest.raises(InputError, match="at least one tensor"):
        trace_from_gaps(np.array([]), np.array([]))
    with pytest.raises(InputError, match="in the order in which they become ready"):
        BackwardTrace(np.ones(2), np.array([2.0, 1.0]), np.ones(2))
    with pytest.raises(InputError, match="n_bytes must be 0 or more and finite"):
        BackwardTrace(np.array([np.nan]), np.ones(1), np.ones(1))


if TRACES.is_dir():  # beside a checkout only where the team works; a test that is not there skips nothing

    @pytest.mark.parametrize(
        ("name", "n_tensors", "megabytes", "span_ms"),
        [
            ("netai20_resnet50", 161, 102.2, 64.8),
            ("netai20_vgg16", 58, 553.5, 111.6),
            ("espresso_vgg16", 32, 4 * 138.4, 85.3),
            ("espresso_bert_large", 391, 4 * 334.1, 204.2),
        ],
    )
    def test_the_public_traces_have_their_published_sizes(name, n_tensors, megabytes, span_ms):
        trace = read_backward_trace(TRACES / f"{name}.csv")
        assert len(trace.n_bytes) == n_tensors
        assert trace.n_bytes.sum() / 1e6 == pytest.approx(megabytes, rel=0.001)
        assert trace.backward_time * 1e3 == pytest.approx(span_ms, rel=0.001)


def test_between_sizes_lines_are_straight_below_them_flat_and_above_them_the_rate_stays(tmp_path):
    add = read_vector_add(written(tmp_path, "nbytes,seconds\n100,1e-5\n300,2e-5\n"))
    assert [add(n) for n in (0, 100, 200, 300, 900)] == pytest.approx([1e-5, 1e-5, 1.5e-5, 2e-5, 6e-5])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "line 1: lacks the columns nbytes, seconds; got a, b"),
        ("", "is empty"),
        ("nbytes,seconds\n", "holds no measurement"),
        ("nbytes,seconds\n8,1\n8,2\n", "rise from line to line"),
        ("nbytes,seconds\n8,x\n", "line 2: seconds must be a number, got 'x'"),
        ("nbytes,seconds\n8\n", "line 2: 2 cells are required, got 1"),
        ("nbytes,seconds\n0,1\n", "nbytes must be above 0"),
        ("nbytes,seconds\n1,inf\n", "line 2"),
    ],
)
def test_a_damaged_file_of_vector_adds_is_refused_with_its_line(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read_vector_add(written(tmp_path, text))


def test_a_file_of_vector_adds_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        read_vector_add(tmp_path / "gone.csv")
