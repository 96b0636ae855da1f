import numpy as np
import pytest

pytestmark = pytest.mark.torch


@pytest.mark.slow
def test_training_lowers_the_loss_and_ranks_have_gradients_of_their_own() -> None:
    pytest.importorskip("torch")
    from benchmarks.real_gradients.small_transformer import train

    losses, gradients = train(n_ranks=2, n_steps=4)
    assert losses[-1] < losses[0] - 0.5
    assert gradients.shape[0] == 2
    assert gradients.dtype == np.float32
    assert (gradients[0] != gradients[1]).mean() > 0.9
    assert np.isfinite(gradients).all()
