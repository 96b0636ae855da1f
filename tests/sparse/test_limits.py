import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.sparse.propagate import UNLIMITED, limits_of


def test_one_limit_is_that_of_every_transfer():
    assert limits_of(None, 2).tolist() == [UNLIMITED] * 2
    assert limits_of(7, 3).tolist() == [7, 7, 7]
    assert limits_of([1, UNLIMITED], 2).tolist() == [1, UNLIMITED]
    assert limits_of(None, 0).tolist() == []


@pytest.mark.parametrize("keep", [0, -1, [1, 0], 1.5, [1, 2, 3], np.nan, "5"])
def test_other_limits_are_refused(keep):
    with pytest.raises(InputError, match="keep must be"):
        limits_of(keep, 2)
