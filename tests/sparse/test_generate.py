import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.sparse_measures import expected_union_density, overlap, skewness
from commsim.core.errors import InputError
from commsim.core.limits import EXPECTED
from commsim.sparse.generate import PATTERNS, drawn_gradients, drawn_occupancy
from commsim.sparse.occupancy import occupancy_of
from commsim.sparse.union_density import densification, union_density

N_ELEMENTS, BLOCK = 26_214_400, 256
DENSITIES = (1.0, 0.8, 0.4, 0.2, 0.1, 0.08, 0.04, 0.02, 0.01)
UNIONS = (1, 1.0000, 0.9832, 0.8322, 0.5695, 0.4868, 0.2786, 0.1492, 0.0773)
"""Union densities of 8 workers, OmniReduce's micro-benchmark: blocks of 256 of 26,214,400, drawn with seed = rank."""


@pytest.mark.parametrize(("density", "union"), list(zip(DENSITIES, UNIONS, strict=True)))
def test_the_union_of_eight_workers_is_that_of_the_published_runs(density, union):
    expected = expected_union_density(density, 8)
    assert round(expected, 4) == union
    drawn = union_density(drawn_occupancy(8, N_ELEMENTS, density=density, block=BLOCK))
    # Drawing without replacement spreads less than independent blocks would, whose deviation this is.
    assert abs(drawn - expected) <= 4 * np.sqrt(expected * (1 - expected) / 102_400)


def test_the_mean_of_many_draws_is_the_expectation():
    n_blocks, density, n_draws = 1000, 0.07, 300
    unions = [union_density(drawn_occupancy(5, n_blocks, density=density, seed=seed)) for seed in range(n_draws)]
    expected = expected_union_density(density, 5)
    assert abs(np.mean(unions) - expected) <= 4 * np.sqrt(expected * (1 - expected) / n_blocks / n_draws)


@given(
    n_ranks=st.integers(1, 6),
    n_elements=st.integers(1, 500),
    block=st.integers(1, 20),
    density=st.floats(0.01, 1),
    pattern=st.sampled_from(PATTERNS),
    seed=st.integers(0, 2**40),
)
def test_every_rank_gets_exactly_its_share_of_blocks(n_ranks, n_elements, block, density, pattern, seed):
    n_blocks = -(-n_elements // block)
    count = round(density * n_blocks)
    if pattern == "disjoint" and count * n_ranks > n_blocks:
        with pytest.raises(InputError, match="without sharing any"):
            drawn_occupancy(n_ranks, n_elements, density=density, block=block, pattern=pattern, seed=seed)
        return
    drawn = drawn_occupancy(n_ranks, n_elements, density=density, block=block, pattern=pattern, seed=seed)
    assert drawn.counts.tolist() == [count] * n_ranks
    assert drawn == drawn_occupancy(n_ranks, n_elements, density=density, block=block, pattern=pattern, seed=seed)
    if not count:
        return  # a tensor that is smaller than one over its density
    if pattern == "overlapping":
        assert densification(drawn) == pytest.approx(1, rel=1e-12)
    if pattern == "disjoint":
        assert densification(drawn) == pytest.approx(n_ranks, rel=1e-12)


def test_a_long_draw_is_declared_and_one_of_hours_is_refused(monkeypatch):
    """`run gtop_k:density=0.5` on 256 hosts drew for minutes without a word."""
    monkeypatch.setattr(EXPECTED, "seconds", 0.0)
    for density, least, most in ((0.5, 1e-2, 1.0), (0.001, 1e-5, 1e-3)):
        drawn_occupancy(4, 2**20, density=density)
        assert least < EXPECTED.seconds < most
        assert EXPECTED.what == f"drawing {density:g} of 1e+06 blocks for each of 4 ranks"
    monkeypatch.setenv("COMMSIM_MAX_SECONDS", "100")
    with pytest.raises(InputError, match=r"drawing 0\.5 of 8\.4e\+06 blocks for each of 256 ranks would take about 2"):
        drawn_occupancy(256, 2**23, density=0.5)


def test_rank_r_draws_with_seed_r_whatever_the_number_of_ranks():
    drawn = drawn_occupancy(4, 1000, density=0.05)
    for rank in range(4):
        chosen = np.random.default_rng(rank).choice(1000, 50, replace=False, shuffle=False)
        assert np.flatnonzero(drawn.bitmap[rank]).tolist() == sorted(chosen.tolist())
    assert drawn.first(2) == drawn_occupancy(2, 1000, density=0.05)
    other = drawn_occupancy(4, 1000, density=0.05, seed=1)
    assert not any((other.words == row).all(axis=1).any() for row in drawn.words)


def test_zipf_crowds_popular_blocks_together_and_overlaps():
    skewed = drawn_occupancy(8, 20_000, density=0.02, pattern="zipf", exponent=1.1)
    uniform = drawn_occupancy(8, 20_000, density=0.02)
    flat = drawn_occupancy(8, 20_000, density=0.02, pattern="zipf", exponent=0)
    assert skewness(skewed) > 4 > 1.5 > skewness(uniform)
    assert overlap(skewed) > 5 * overlap(uniform)
    assert skewness(flat) < 1.5
    assert skewed.bitmap[:, :5].mean() > 0.9


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32])
def test_drawn_gradients_have_exactly_the_blocks_they_are_drawn_for(pattern, whole, dtype):
    occupancy = drawn_occupancy(3, 1003, density=0.1, block=10, pattern=pattern)
    gradients = drawn_gradients(occupancy, dtype=dtype, whole=whole)
    assert gradients.dtype == dtype
    assert occupancy_of(gradients, 10) == occupancy
    assert np.array_equal((gradients != 0).sum(axis=1), occupancy.elements())
    if whole:
        assert set(np.abs(gradients[gradients != 0]).tolist()) <= set(range(1, 9))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"density": 0}, "density must be above 0 and at most 1, got 0"),
        ({"density": 1.01}, "density must be above 0 and at most 1, got 1.01"),
        ({"density": np.nan}, "got nan"),
        ({"density": 0.1, "pattern": "spiral"}, "unknown pattern 'spiral'; known: random, overlapping"),
        ({"density": 0.6, "pattern": "disjoint"}, "2 ranks cannot have 60 of 100 blocks"),
        ({"density": 0.6, "pattern": "zipf", "exponent": -1}, "exponent of zipf"),
        ({"density": 0.6, "pattern": "zipf", "exponent": np.nan}, "exponent of zipf"),
        ({"density": 0.6, "block": 0}, "at least 1"),
        ({"density": 0.6, "seed": -1}, "seed of at least 0"),
    ],
)
def test_what_cannot_be_drawn_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        drawn_occupancy(2, 100, **arguments)


def test_gradients_of_other_kinds_are_refused():
    with pytest.raises(InputError, match="floats or signed integers, got uint8"):
        drawn_gradients(drawn_occupancy(1, 10, density=0.5), dtype=np.uint8)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_tiny_tensor_may_have_no_block_at_all(pattern):
    assert not drawn_occupancy(2, 100, density=1e-6, pattern=pattern).counts.any()
