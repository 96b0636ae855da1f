"""Rows that something disturbed are told from those of a fault whose effect grows with the size."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from commsim.diagnosis.causes.fault import Fault
from commsim.diagnosis.causes.likelihood import disturbances, log_densities, log_likelihood
from commsim.diagnosis.causes.rows import Rows
from commsim.nccl.error_model import error_model

WHOLE = np.geomspace(20e-6, 5e-3, 6)


def rows(factors, step=4.0):
    n = len(factors)
    sizes = 2.0**20 * step ** np.arange(n)
    return Rows(sizes, WHOLE[:n] * np.array(factors), np.ones(n, np.bool_), np.zeros(n, np.bool_))


def test_a_row_apart_from_its_neighbours_is_disturbed_by_how_far_it_is():
    found = disturbances(rows([3.0, 1, 1, 1, 1, 1]), WHOLE)
    assert found[0] == pytest.approx(np.log(3))
    assert not found[1:].any()
    assert disturbances(rows([1, 1, 1, 2.0, 1, 1]), WHOLE).nonzero()[0].tolist() == [3]


def test_an_effect_that_grows_with_the_size_disturbs_no_row():
    assert not disturbances(rows([1.0, 1.3, 1.7, 2.2, 2.9, 3.7]), WHOLE).any()
    assert not disturbances(rows([3.7, 2.9, 2.2, 1.7, 1.3, 1.0]), WHOLE).any()


def test_of_a_growing_effect_the_row_beside_it_is_still_disturbed():
    found = disturbances(rows([1.0, 1.3, 1.7, 6.6, 2.9, 3.7]), WHOLE)
    assert 0.7 < found[3] < 1.2
    assert found.nonzero()[0].tolist() == [3]


def test_of_few_rows_none_is_disturbed():
    assert not disturbances(rows([1.0, 1.0, 5.0, 1.0]), WHOLE[:4]).any()


def test_a_shape_that_is_met_within_a_per_cent_tells_causes_apart_and_a_rough_one_does_not():
    """A fault that costs 10 % at every second octave is told from none by a smooth log, hardly by a rough one."""
    sizes = 2.0 ** np.arange(10, 34)
    whole = 1e-5 + sizes / 1e11
    effect = 0.1 * (np.arange(24) // 4 % 2)
    slow, error = np.ones(24, np.bool_), error_model("machine", 1)
    rough = 0.15 * np.random.default_rng(2).normal(size=24)
    odds = []
    for noise in (0.0 * rough, rough):
        table = Rows(sizes, whole * np.exp(effect + noise + [error.of(size).middle for size in sizes]), slow, ~slow)
        with_it, without = (
            log_likelihood(table, whole * np.exp(some), error, some, None, np.zeros(24))
            for some in (effect, 0 * effect)
        )  # fmt: skip
        odds.append(with_it - without)
    assert odds[0] > 20
    assert odds[1] < odds[0] / 3


def test_the_density_is_that_of_a_normal_distribution_of_each_width():
    """Beside scipy, with a healthy and a slow row of one size and a residual of any sign."""
    sizes, slow = np.array([2.0**12, 2.0**25, 2.0**25]), np.array([True, True, False])
    table, likeness = Rows(sizes, np.ones(3), slow, ~slow & slow), error_model("roce", 2).likeness
    residual, scale, more = np.array([0.1, -0.2, 0.05]), np.array([0.1, 0.2, 0.2]), np.diag([0.0, 0.04, 0.0])
    found = log_densities(table, residual, scale, likeness, [0 * more, more], kept=0.3)
    assert found.shape == (*(len(widths) for widths in likeness[1:]), 2)
    common, near = likeness.common[1].scale, likeness.near[2].scale
    small, large = likeness.small[0].scale, likeness.large[1].scale
    same = np.array([[1, 1, 0.3], [1, 1, 0.3], [0.3, 0.3, 1]])
    parts = likeness.parts(sizes)
    covariance = same * np.outer(scale, scale) * (common**2 * parts[0] + near**2 * parts[1])
    covariance += np.diag([small**2, large**2, large**2]) + 0.03**2 * (same == 1) + more
    assert found[1, 2, 0, 1, 1] == pytest.approx(multivariate_normal(np.zeros(3), covariance).logpdf(residual))


def test_residuals_of_any_size_have_a_density():
    sizes, slow = 2.0 ** np.arange(10, 34), np.ones(24, np.bool_)
    table, error = Rows(sizes, np.full(24, 1e100), slow, ~slow), error_model("machine", 1)
    assert np.isfinite(log_likelihood(table, np.full(24, 1e-100), error, np.zeros(24), None, np.zeros(24)))


def _congested(noise):
    """Return the fault that makes rows unsteady, the odds of a steady one, with rows that are as noisy as is said."""
    sizes = 2.0 ** np.arange(10, 34)
    whole, slow, error = 1e-5 + sizes / 1e11, np.ones(24, np.bool_), error_model("infiniband", 4)
    times = whole * np.exp(noise * np.random.default_rng(5).normal(size=24) + [error.of(size).middle for size in sizes])
    table = Rows(sizes, times, slow, ~slow)
    disturbed, none = disturbances(table, whole), np.zeros(24)
    unsteady, steady = (Fault("", "", None, noise=spread) for spread in (0.3, 0.0))
    logs = [log_likelihood(table, whole, error, none, one, disturbed) for one in (unsteady, steady)]
    return logs[0] - logs[1], int((disturbed > 0).sum())


def test_many_disturbed_rows_are_a_sign_of_an_unsteady_fabric():
    """Each alone is explained by what disturbed it, but of healthy tables 2.5 % of the rows are, not a third."""
    odds, n = _congested(0.35)
    assert n >= 6
    assert odds > 5


def test_a_steady_table_is_none_of_an_unsteady_fabric():
    odds, n = _congested(0.05)
    assert n == 0
    assert odds < -5
