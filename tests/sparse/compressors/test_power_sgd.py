import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slow_compressors import slow_power_sgd

from commsim.core.errors import InputError
from commsim.sparse.compressors.message import CompressedRank, compressed_sum
from commsim.sparse.compressors.power_sgd import power_sgd


@given(
    n_ranks=st.integers(1, 4),
    n_steps=st.integers(1, 4),
    rank=st.integers(1, 3),
    n=st.integers(150, 200),
    columns=st.integers(8, 20),
    seed=st.integers(0, 99),
)
def test_it_is_its_algorithm_with_a_warm_start_and_loses_nothing(n_ranks, n_steps, rank, n, columns, seed):
    steps = np.random.default_rng(seed).standard_normal((n_steps, n_ranks, n))
    compressor = power_sgd(rank, columns, seed)
    workers = [CompressedRank(compressor, r) for r in range(n_ranks)]
    start = np.random.default_rng(seed).standard_normal((columns, rank))
    slow, residuals = slow_power_sgd(steps, rank, columns, start)
    for gradients, expected in zip(steps, slow, strict=True):
        total, n_bytes = compressed_sum(workers, list(gradients))
        np.testing.assert_allclose(total, expected, atol=1e-8)
        assert n_bytes == [8 * rank * (-(-n // columns) + columns)] * n_ranks
    for worker, residual in zip(workers, residuals, strict=True):
        np.testing.assert_allclose(worker.memory.residual, residual, atol=1e-8)
    conserved = sum(slow) + sum(worker.memory.residual for worker in workers)
    np.testing.assert_allclose(conserved, steps.sum(axis=(0, 1)), atol=1e-8)


def test_a_matrix_of_low_rank_arrives_whole():
    rng = np.random.default_rng(0)
    gradient = (rng.standard_normal((40, 2)) @ rng.standard_normal((2, 30))).ravel()
    workers = [CompressedRank(power_sgd(2, 30), rank) for rank in range(3)]
    total, _ = compressed_sum(workers, [gradient] * 3)
    np.testing.assert_allclose(total, 3 * gradient, atol=1e-10)
    alone = power_sgd(2, 30)
    np.testing.assert_allclose(alone.decode(alone.encode(gradient)), gradient, atol=1e-10)


def test_a_gradient_of_zeros_stays_one():
    total, _ = compressed_sum(
        [CompressedRank(power_sgd(2)), CompressedRank(power_sgd(2))], [np.zeros(100), np.zeros(100)]
    )
    assert not total.any()


def test_factors_that_are_no_smaller_are_refused():
    with pytest.raises(InputError, match="factors of rank 5 of a matrix of 10 x 10 are no smaller than the gradient"):
        power_sgd(5).encode(np.ones(100))
    assert power_sgd(4).exchange_bytes(100) == (160, 160)
