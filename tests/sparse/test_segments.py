import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.core.limits import EXPECTED
from commsim.sparse import long_occupancy, segments
from commsim.sparse.generate import PATTERNS, drawn_occupancy, zipf_keys
from commsim.sparse.long_occupancy import LongOccupancy, regrouped, with_words
from commsim.sparse.occupancy import Occupancy
from commsim.sparse.segments import draw_segments, drawn_parts
from commsim.sparse.union_density import densification, union_density

N = 50_000


@pytest.fixture
def short(monkeypatch):
    """Have tensors count as long that are quickly drawn, and none held."""
    monkeypatch.setattr(segments, "WHOLE", 1000)
    monkeypatch.setattr(segments, "SEGMENT", 2**10)
    monkeypatch.setattr(long_occupancy, "HELD", 0)
    monkeypatch.setattr(long_occupancy, "PIECE", 2**11)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_what_is_quickly_drawn_is_drawn_as_a_whole(pattern):
    got = draw_segments(4, N, density=0.2, block=3, pattern=pattern, seed=2, exponent=0.5)
    assert got == drawn_occupancy(4, N, density=0.2, block=3, pattern=pattern, seed=2, exponent=0.5)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("density", [1e-9, 0.0003, 0.03, 0.2499])
def test_every_rank_gets_its_share_of_a_long_tensor(short, pattern, density):
    got = draw_segments(4, N, density=density, block=3, pattern=pattern)
    assert isinstance(got, LongOccupancy)
    all_words = with_words(got)
    count = round(density * got.n_blocks)
    assert got.counts.tolist() == all_words.counts.tolist() == [count] * 4
    assert got.n_union == all_words.n_union
    np.testing.assert_array_equal(with_words(got).words, all_words.words)  # drawn again it is the same
    if count:
        whole = densification(drawn_occupancy(4, N, density=density, block=3, pattern=pattern))
        assert densification(got) == pytest.approx(whole, rel=0.1)
    if not count or pattern == "zipf":
        return
    shares = [got.piece(at, min(at + 1024, got.n_blocks)) for at in range(0, got.n_blocks, 1024)]
    many = np.array([np.bitwise_count(words).sum(axis=1) for words in shares[:-1]])
    assert np.abs(many - density * 1024).max() <= 1  # of every segment the same share, rounded


def test_popular_blocks_are_those_of_the_smallest_keys_of_all_segments(short):
    got = with_words(draw_segments(2, N, density=0.1, pattern="zipf", seed=7, exponent=1.1))
    for rank in range(2):
        starts = range(0, N, 1024)
        keys = [
            zipf_keys(np.random.default_rng([rank, 7, s]), at, min(1024, N - at), 1.1) for s, at in enumerate(starts)
        ]
        order = np.argsort(np.concatenate(keys))
        assert np.flatnonzero(got.bitmap_of(rank)).tolist() == sorted(order[:5000].tolist())


def test_blocks_of_another_size_begin_inside_a_segment(short):
    got = draw_segments(2, N, density=0.01)
    assert with_words(regrouped(got, 3)) == regrouped_in_whole(with_words(got), 3)
    assert union_density(regrouped(got, 256)) == union_density(regrouped_in_whole(with_words(got), 256))


def regrouped_in_whole(occupancy, block):
    bitmap = np.pad(occupancy.bitmap, ((0, 0), (0, -N % block)))
    return Occupancy.from_bitmap(bitmap.reshape(occupancy.n_ranks, -1, block).any(axis=2), N, block)


def test_ranks_and_seeds_of_a_long_tensor_differ(short):
    words = with_words(draw_segments(3, N, density=0.1)).words
    assert len({row.tobytes() for row in words}) == 3
    assert not np.array_equal(with_words(draw_segments(3, N, density=0.1, seed=1)).words, words)
    np.testing.assert_array_equal(with_words(draw_segments(2, N, density=0.1)).words, words[:2])


def test_a_long_draw_of_hours_is_refused(short, monkeypatch):
    monkeypatch.setattr(EXPECTED, "seconds", 0.0)
    draw_segments(4, N, density=0.1)
    assert EXPECTED.what == "drawing 0.1 of 5e+04 blocks for each of 4 ranks"
    with pytest.raises(InputError, match="would take about"):
        draw_segments(64, 2**30, density=0.5, pattern="zipf")


def test_tensors_of_an_array_have_densities_of_their_own():
    parts = ((64_000, 0.1), (10, 1.0), (640, 0.0), (6_390, 1.0))  # the second is smaller than half a block
    drawn = drawn_parts(3, parts, block=64)
    bitmap = drawn.bitmap
    assert drawn.n_elements == 71_040
    assert bitmap[:, :1000].sum(axis=1).tolist() == [100] * 3
    assert not bitmap[:, 1000:1010].any()
    assert bitmap[:, 1010:].all()
    assert not np.array_equal(bitmap[0], bitmap[1])
    assert drawn_parts(3, ((6400, 0.25),), block=64) == drawn_occupancy(3, 6400, density=0.25, block=64)
    with pytest.raises(InputError, match=r"a density is 0\.\.1"):
        drawn_parts(3, ((64, 0.5), (64, 1.5)))


def test_tensors_of_an_array_that_is_not_held_are_those_of_one_that_is(monkeypatch):
    parts = ((64_000, 0.1), (10, 1.0), (640, 0.0), (6_390, 0.5))
    whole = drawn_parts(3, parts, block=3)
    monkeypatch.setattr(long_occupancy, "HELD", 0)
    monkeypatch.setattr(long_occupancy, "PIECE", 320)
    found = drawn_parts(3, parts, block=3)
    assert isinstance(found, LongOccupancy)
    assert with_words(found) == whole
