"""Errors of predictions: the tails of their distribution by machines, and how alike those of one table are."""

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


@pytest.mark.parametrize(("kind", "n_machines"), [("machine", 1), ("infiniband", 2), ("roce", 4), ("infiniband", 64)])
@pytest.mark.parametrize("size", [2.0**12, 2.0**20, 2.0**30])
def test_a_rarer_error_is_farther_out_and_beyond_the_interval(kind, n_machines, size):
    model = error_model(kind, n_machines)
    errors = model.of(size)
    assert errors.exceeded(0.5) == pytest.approx(errors.middle, abs=1e-6)
    assert model.ends(size)[1] < errors.exceeded(0.01) < errors.exceeded(0.001)
    assert errors.share_slower(errors.exceeded(0.02)) == pytest.approx(0.02, rel=1e-3)


def test_an_interval_is_of_the_kind_and_of_all_kinds_where_it_has_none():
    assert error_model("infiniband", 2).ends(2**30) == pytest.approx(np.log(intervals()["infiniband", "large"]))
    unknown = error_model("slingshot", 2)
    assert not unknown.is_of_kind
    assert unknown.ends(2**30) == error_model(EVERY, 2).ends(2**30)


def test_errors_are_of_as_many_machines():
    """Large sizes on one machine differ least, below one switch less than over several."""
    large = [error_model(kind, n).of(2**30) for kind, n in (("machine", 1), ("infiniband", 8), ("infiniband", 9))]
    assert [round(one.scale, 2) for one in large] == sorted({round(one.scale, 2) for one in large})
    assert error_model("unheard-of", 2).rows == error_model(EVERY, 2).rows


def test_floors_do_not_jump_where_fewer_operators_are_known():
    """Beyond eight machines two operators are known: their class leans on that of fewer machines."""
    eight, nine, twelve, sixteen, many = (
        np.exp(-error_model("infiniband", n).of(2**33).exceeded(0.01)) for n in (8, 9, 12, 16, 512)
    )
    assert eight > nine > twelve > sixteen == many
    assert nine > 0.94 * eight
    assert sixteen > 0.8 * eight


def test_few_sizes_have_the_errors_of_a_row():
    model, one = error_model("infiniband", 2), 2.0**30
    assert model.middle_of([one]) == model.of(one)
    assert model.middle_of([one, 2 * one, 4 * one]) == model.middles["large"]


def test_sizes_on_one_side_of_a_mebibyte_have_a_factor_in_common_and_near_ones_more():
    likeness = error_model("roce", 2).likeness._replace(octaves=2)
    common, near = likeness.parts([2.0**12, 2.0**19, 2.0**24, 2.0**25, 2.0**33, 2.0**33])
    assert common[2].tolist() == [0, 0, 1, 1, 1, 1]
    assert near[2, 3] == pytest.approx(np.exp(-1 / 8))
    assert near[0, 4] < 1e-9
    assert common[4, 5] == near[4, 5] == 1


def test_shares_of_widths_sum_to_one():
    assert np.exp(error_model("roce", 2).likeness.log_shares).sum() == pytest.approx(1, abs=0.01)
