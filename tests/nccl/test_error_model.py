"""Errors of predictions: the tails of their distribution, and how near sizes hang together."""

import numpy as np
import pytest
from scipy import stats

from commsim.core.errors import InputError
from commsim.nccl.error_model import error_model, t_quantile, t_share
from commsim.nccl.intervals import EVERY, intervals

SIZES = [2.0**i for i in range(20, 31)]


@pytest.mark.parametrize("share", [0.9, 0.1, 0.01, 0.001])
def test_quantiles_are_those_of_student_s_t(share):
    assert t_quantile(share, 2.6) == pytest.approx(stats.t.isf(share, 2.6), rel=1e-4)
    assert t_share(t_quantile(share, 2.6), 2.6) == pytest.approx(share)


def test_a_share_is_between_0_and_1():
    with pytest.raises(InputError, match="between 0 and 1, got 0"):
        t_quantile(0, 3)


def test_errors_lie_around_the_middle_of_the_interval_and_reach_farther():
    model = error_model("infiniband")
    low, high = np.log(intervals()["infiniband", "large"])
    assert model.ends(2**30) == pytest.approx((low, high))
    assert model.exceeded(2**30, 0.5) == pytest.approx((low + high) / 2)
    assert high < model.exceeded(2**30, 0.1) < model.exceeded(2**30, 0.01)
    assert model.share_slower(2**30, model.exceeded(2**30, 0.02)) == pytest.approx(0.02, rel=1e-4)


def test_machines_without_tables_have_the_errors_of_all_kinds():
    unknown = error_model("slingshot")
    assert not unknown.is_of_kind
    assert unknown.ends(2**30) == error_model(EVERY).ends(2**30)


def test_the_likelihood_of_one_size_is_the_density_of_its_error():
    model, size = error_model("roce"), 2.0**26
    expected = stats.t.logpdf(0.3, model.degrees, model.middle(size), model.scale(size))
    assert model.log_likelihood([size], [0.3]) == pytest.approx(expected)


def test_one_factor_over_near_sizes_is_likelier_than_jumps_between_them():
    model = error_model("machine")
    off = np.full(len(SIZES), 0.05) + [model.middle(size) for size in SIZES]
    jumps = np.where(np.arange(len(SIZES)) % 2, 0.05, -0.05) + [model.middle(size) for size in SIZES]
    assert model.log_likelihood(SIZES, off) > model.log_likelihood(SIZES, jumps) + 3


def test_the_middle_of_several_sizes_is_less_often_far_out_than_one():
    model, one = error_model("infiniband"), 2.0**30
    assert model.middle_exceeded([one], 0.01) == model.exceeded(one, 0.01)
    assert model.middle_exceeded([one, 2 * one, 4 * one], 0.01) < model.exceeded(one, 0.01)
