import numpy as np
import pytest

from benchmarks.real_gradients.compressor_training import COLUMNS, COMPRESSORS, draw_problem, main, train

PROBLEM = draw_problem(4, n_points=100, n_features=40)
STEPS = 600


@pytest.fixture(scope="module")
def plain():
    return train(PROBLEM, None, STEPS)[0]


def test_the_gradient_is_the_slope_of_the_loss():
    rng = np.random.default_rng(0)
    weights, step = rng.standard_normal((2, PROBLEM.n_parameters))  # float64: differences of float32 are too coarse
    _, gradient = PROBLEM.loss_and_gradient(0, weights)
    above, below = (PROBLEM.loss_and_gradient(0, weights + sign * 1e-5 * step)[0] for sign in (1, -1))
    assert (above - below) / 2e-5 == pytest.approx(float(gradient @ step), rel=1e-5)


def test_training_learns(plain):
    assert plain < 0.5 * np.log(10)


@pytest.mark.sample(5)
@pytest.mark.slow
@pytest.mark.parametrize("spec", COMPRESSORS)
def test_with_its_feedback_every_compressor_reaches_the_loss_without_it_within_a_tenth(spec, plain):
    assert train(PROBLEM, spec, STEPS)[0] <= 1.1 * plain


@pytest.mark.sample(2)
@pytest.mark.slow
@pytest.mark.parametrize("spec", ["top_k:density=0.01", "random_k:density=0.05", "sign", "one_bit:columns=10"])
def test_without_feedback_a_biased_compressor_does_not(spec, plain):
    with_feedback, without = (train(PROBLEM, spec, STEPS, feedback=feedback)[0] for feedback in (True, False))
    assert without > 1.2 * plain
    assert without > with_feedback


def test_a_rate_that_leaves_all_numbers_is_no_loss(plain):
    assert train(PROBLEM, "top_k:density=0.5", 5, rate=float(np.finfo(np.float32).max))[0] > plain


def test_the_table_has_a_row_with_feedback_and_one_without(capsys):
    assert main(["--ranks", "2", "--steps", "3", "--compressor", "sign", "--compressor", "qsgd"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if not line.startswith("#")]
    assert lines[0] == COLUMNS
    assert [line[:2] for line in lines[1:]] == [["none", "-"], ["sign", "yes"], ["sign", "no"], ["qsgd", "no"]]
