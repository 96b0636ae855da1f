"""Rows that something disturbed are told from those of a fault whose effect grows with the size."""

import numpy as np
import pytest

from commsim.diagnosis.causes.likelihood import disturbances
from commsim.diagnosis.causes.rows import Rows

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
