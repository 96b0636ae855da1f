import time

import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.training.backward_trace import read_backward_trace, write_backward_trace
from commsim.training.profile_model import profile_model

pytestmark = pytest.mark.torch

FORWARD, BACKWARD = 0.004, 0.012


@pytest.fixture
def torch():
    """Import torch, which takes seconds, only for a test that runs."""
    return pytest.importorskip("torch")


def sleepy(torch):
    """Layers whose passes take a known time at least, an unused one, and one without gradients."""

    class Sleepy(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.front = torch.nn.Linear(4, 8)
            self.back = torch.nn.Linear(8, 3)
            self.unused = torch.nn.Linear(2, 2)
            self.frozen = torch.nn.Linear(3, 3).requires_grad_(False)

        def forward(self, x):
            hidden = self.front(x)
            hidden.register_hook(lambda _: time.sleep(BACKWARD))  # between the gradients of back and front
            time.sleep(FORWARD)  # after front, and so of back
            return {"out": [self.frozen(self.back(hidden))]}

    return Sleepy()


def test_gradients_come_last_layer_first_with_their_sizes_and_times(torch):
    model = sleepy(torch)
    trace = profile_model(model, [torch.randn(5, 4)], iterations=3, warm_up=1)
    assert {name.partition(".")[0] for name in trace.names[:2]} == {"back"}
    assert {name.partition(".")[0] for name in trace.names[2:]} == {"front"}
    assert dict(zip(trace.names, trace.n_bytes.tolist(), strict=True)) == {
        "back.bias": 12,
        "back.weight": 96,
        "front.bias": 32,
        "front.weight": 128,
    }
    assert trace.gaps[2] >= BACKWARD
    of = dict(zip(trace.names, trace.forward.tolist(), strict=True))
    assert of["back.bias"] + of["back.weight"] >= FORWARD
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not any(module._forward_hooks for module in model.modules())


def test_what_was_measured_is_read_back_to_the_nanosecond(torch, tmp_path):
    trace = profile_model(torch.nn.Linear(4, 2).double(), [torch.randn(3, 4).double()], iterations=1)
    write_backward_trace(tmp_path / "trace.csv", trace)
    again = read_backward_trace(tmp_path / "trace.csv")
    assert again.names == trace.names
    assert sorted(again.n_bytes.tolist()) == [16, 64]
    np.testing.assert_allclose(again.ready, trace.ready, atol=2e-9)
    np.testing.assert_allclose(again.forward, trace.forward, atol=1e-9)


def nothing(torch):
    class Nothing(torch.nn.Linear):
        def forward(self, x):
            return x.sum()

    return Nothing(3, 2)


@pytest.mark.parametrize(
    ("model", "shape", "message"),
    [
        (lambda torch: torch.nn.ReLU(), (2,), "ReLU has no parameter that gets a gradient"),
        (lambda torch: torch.nn.Linear(3, 2), (4,), "Linear cannot run on this input: .*shapes"),
        (nothing, (3,), "holds no tensor that depends on parameters"),
    ],
)
def test_a_model_that_cannot_be_measured_is_refused(torch, model, shape, message):
    with pytest.raises(InputError, match=message):
        profile_model(model(torch), [torch.randn(5, *shape)])


def test_no_run_is_refused(torch):
    with pytest.raises(InputError, match="iterations must be at least 1"):
        profile_model(torch.nn.Linear(3, 2), [torch.randn(3)], iterations=0)
