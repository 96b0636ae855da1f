import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.sparse_measures import densifications, expected_union_density, overlap, skewness
from commsim.core.errors import InputError
from commsim.sparse.occupancy import Occupancy
from commsim.sparse.union_density import densification, union_density


@given(n_ranks=st.integers(2, 6), n_blocks=st.integers(6, 150), density=st.floats(0.1, 1), seed=st.integers(0, 99))
def test_measures_are_those_of_sets(n_ranks, n_blocks, density, seed):
    bitmap = np.random.default_rng(seed).random((n_ranks, n_blocks)) < density
    bitmap[:, 0] = True
    occupancy = Occupancy.from_bitmap(bitmap, n_blocks)
    sets = [set(np.flatnonzero(row).tolist()) for row in bitmap]
    mean = np.mean([len(s) for s in sets])
    assert union_density(occupancy) == len(set().union(*sets)) / n_blocks
    assert densification(occupancy) == pytest.approx(len(set().union(*sets)) / mean, rel=1e-12)
    pairs = [len(a & b) / min(len(a), len(b)) for a, b in itertools.combinations(sets, 2)]
    assert overlap(occupancy) == pytest.approx(np.mean(pairs), rel=1e-12)
    for n in range(1, n_ranks + 1):
        assert densifications(occupancy)[n - 1] == pytest.approx(densification(occupancy.first(n)), rel=1e-12)
    parts = [range(p * n_blocks // 3, (p + 1) * n_blocks // 3) for p in range(3)]
    fullest = [max(len(s & set(part)) / len(part) for part in parts) * n_blocks / len(s) for s in sets]
    assert skewness(occupancy, 3) == pytest.approx(np.mean(fullest), rel=1e-12)


def test_extremes_of_skewness():
    one = np.zeros((1, 80), bool)
    one[0, :10] = True
    assert skewness(Occupancy.from_bitmap(one, 80), 8) == pytest.approx(8)
    assert skewness(Occupancy.from_bitmap(np.ones((3, 80)), 80), 8) == pytest.approx(1)
    crowded = np.zeros((1, 80_000), bool)
    crowded[0, :10_000] = True
    assert skewness(Occupancy.from_bitmap(crowded, 80_000), 8, hashed=True) < 1.1


def test_expected_union_has_no_rounding_at_its_ends():
    assert expected_union_density(1, 5) == 1
    assert expected_union_density(0, 5) == 0
    assert expected_union_density(0.5, 2) == pytest.approx(0.75, rel=1e-15)
    assert expected_union_density(1e-12, 3) == pytest.approx(3e-12, rel=1e-9)
    for density, n in ((1.5, 2), (-0.1, 2), (np.nan, 2), (0.5, 0)):
        with pytest.raises(InputError, match=r"density of 0\.\.1 and at least 1 rank"):
            expected_union_density(density, n)


def test_ratios_to_nothing_are_refused():
    empty = Occupancy.from_bitmap(np.zeros((2, 5)), 5)
    for measure in (densification, overlap, skewness):
        with pytest.raises(InputError, match="non-zero block"):
            measure(empty)
    assert densifications(empty).tolist() == [0, 0]
    for n_parts in (-1, 6):
        with pytest.raises(InputError, match=f"skewness needs 1..5 parts, .* got {n_parts}"):
            skewness(Occupancy.from_bitmap(np.ones((2, 5)), 5), n_parts)
