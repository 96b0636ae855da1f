import pytest

from commsim.training.backward_trace import read_backward_trace

pytestmark = pytest.mark.torch
MODEL = """
import torch

class Net(torch.nn.Sequential):
    def __init__(self):
        super().__init__(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(4 * 36, 10))

class Words(torch.nn.Sequential):
    def __init__(self):
        super().__init__(torch.nn.Embedding(50, 8), torch.nn.Linear(8, 2))

class Broken(torch.nn.Module):
    def __init__(self):
        raise OSError("no weights")

number = 3
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "nets_of_this_test.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_trace_of_a_module_feeds_the_prediction_of_its_training(commsim, folder):
    tree = commsim.results("workload", "profile", "nets_of_this_test:Net", "--batch", 2, "--input", "3x8x8",
                           "--iterations", 2, "-o", "trace.csv")  # fmt: skip
    assert "4 tensors" in commsim.out
    trace = read_backward_trace("trace.csv")
    assert sorted(trace.n_bytes.tolist()) == [16, 40, 432, 5760]
    assert tree["backward_s"] == pytest.approx(trace.backward_time, abs=1e-8)
    assert tree["forward_s"] == pytest.approx(trace.forward.sum(), abs=1e-8)
    assert commsim("workload", "run", "--trace", "trace.csv", "--workers", 4, "--bandwidth", "10Gbps").code == 0


def test_words_are_whole_numbers_below_a_bound(commsim, folder):
    rows = commsim.results("workload", "profile", "nets_of_this_test:Words", "--input", "16:50", "--batch", 2)[
        "results"
    ]
    assert {row["tensor"]: row["size_B"] for row in rows} == {"0.weight": 1600, "1.weight": 64, "1.bias": 8}


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("nets_of_this_test:Net", "--input", "3x9x9"), "Net cannot run on this input"),
        (("nets_of_this_test:Gone", "--input", "3"), "cannot be made: AttributeError"),
        (("nets_of_this_test:Broken", "--input", "3"), "cannot be made: OSError: no weights"),
        (("nets_of_this_test:number", "--input", "3"), "cannot be made: TypeError"),
        (("not_there_at_all:Net", "--input", "3"), "cannot be made: ModuleNotFoundError"),
        (("nets_of_this_test", "--input", "3"), "the model must be MODULE:CLASS"),
        (("nets_of_this_test:Net", "--input", "3x0"), "--input must be a shape such as 3x32x32"),
        (("nets_of_this_test:Net", "--input", "axb"), "--input must be a shape such as 3x32x32"),
        (("nets_of_this_test:Net", "--input", "3x8x8", "--batch", "0"), "--batch must be at least 1"),
        (("nets_of_this_test:Net", "--input", "3x8x8", "--iterations", "0"), "iterations must be at least 1"),
        (("nets_of_this_test:Net", "--input", "999999x999999x9"), "--input 999999x999999x9: "),
        (("nets_of_this_test:Net",), "--input"),
    ],
)
def test_what_cannot_be_measured_is_refused(commsim, folder, argv, message):
    assert message in commsim.refuses("workload", "profile", *argv, "-o", "trace.csv")
    assert not (folder / "trace.csv").exists()


def test_a_file_that_cannot_be_written_is_refused(commsim, folder):
    argv = ("workload", "profile", "nets_of_this_test:Words", "--input", "4:9", "-o", "no/where.csv")
    assert "cannot write" in commsim.refuses(*argv)
