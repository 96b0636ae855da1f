import numpy as np
import pytest

from commsim.sparse.gradients_file import read_gradients
from commsim.sparse.occupancy import occupancy_of

pytestmark = pytest.mark.torch


@pytest.fixture
def program():
    """Import what imports torch only for a test that runs."""
    pytest.importorskip("torch")
    from benchmarks.real_gradients import sparse_gradients

    return sparse_gradients


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Recommender", pytest.param("LanguageModel", marks=pytest.mark.deep)])
def test_training_lowers_the_loss_and_leaves_most_of_the_gradient_zero(program, kind):
    from benchmarks.real_gradients import sparse_models

    losses, gradients = sparse_models.train(getattr(sparse_models, kind), n_ranks=2, n_steps=6)
    assert losses[-1] < losses[0]
    occupancy = occupancy_of(gradients)  # which refuses what is not finite
    assert (occupancy.density < 0.06).all()
    assert not np.array_equal(gradients[0], gradients[1])


@pytest.mark.slow
def test_tables_are_printed_for_both_and_the_gradients_kept(program, tmp_path, capsys):
    assert program.main(["--ranks", "3", "--steps", "1", "--save", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    for name in ("recommender", "language_model"):
        assert f"# {name}: non-zero blocks of 3 ranks" in printed
        gradients = read_gradients(tmp_path / f"{name}.npy", n_ranks=3)
        for row in program.rows_by_block(np.array(gradients)):
            assert "  ".join(row) in " ".join(printed.split()).replace(" ", "  ")
        assert [row[0] for row in program.rows_by_ranks(np.array(gradients))] == ["1", "2", "3"]


def test_too_few_ranks_are_refused(program, capsys):
    with pytest.raises(SystemExit, match="2"):
        program.main(["--ranks", "1"])
    assert "at least 2 ranks and 1 step, got 1 and 5" in capsys.readouterr().err
