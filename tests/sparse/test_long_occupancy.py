import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectives import COLLECTIVES
from commsim.core.errors import InputError
from commsim.sparse import long_occupancy
from commsim.sparse.generate import drawn_occupancy
from commsim.sparse.long_occupancy import LongOccupancy, pieces, regrouped
from commsim.sparse.occupancy import Occupancy
from commsim.sparse.union_density import densification, union_density


@given(
    st.integers(1, 700), st.sampled_from([1, 2, 3, 8, 16, 24, 64, 256]), st.integers(1, 300), st.integers(0, 2**32 - 1)
)
def test_a_block_of_the_other_size_is_there_where_any_of_its_elements_is(n_elements, block, other, seed):
    n_blocks = -(-n_elements // block)
    bitmap = np.random.default_rng(seed).random((3, n_blocks)) < 0.3
    found = regrouped(Occupancy.from_bitmap(bitmap, n_elements, block), other)
    assert (found.n_elements, found.block) == (n_elements, other)
    for rank in range(3):
        there = [bitmap[rank, i // block] for i in range(n_elements)]
        wanted = [any(there[i : i + other]) for i in range(0, n_elements, other)]
        assert found.bitmap[rank].tolist() == wanted


def test_the_same_size_gives_the_same_value_and_none_is_refused():
    occupancy = Occupancy.from_bitmap([[1, 0, 1]], 10, 4)
    assert regrouped(occupancy, 4) is occupancy
    with pytest.raises(InputError, match="a block has at least 1 element, got block=0"):
        regrouped(occupancy, 0)


@pytest.mark.parametrize(("old", "new"), [(256, 1), (1, 256), (3, 7), (64, 3)])
def test_regrouping_takes_little_more_than_what_it_returns(monkeypatch, old, new):
    n = 2**24
    bitmap = np.random.default_rng(1).random((1, -(-n // old))) < 0.1
    occupancy = Occupancy.from_bitmap(bitmap, n, old)
    tracemalloc.start()
    try:
        found = regrouped(occupancy, new)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < found.words.nbytes + bitmap.nbytes + 8e6  # 16.8 MB of elements are never there at once
    monkeypatch.setattr(long_occupancy, "PIECE", n)
    np.testing.assert_array_equal(regrouped(occupancy, new).words, found.words)


def as_long(monkeypatch):
    """Have no words held, and tensors looked at in pieces of a few blocks."""
    monkeypatch.setattr(long_occupancy, "HELD", 0)
    monkeypatch.setattr(long_occupancy, "PIECE", 64)


@pytest.mark.parametrize("block", [1, 3, 64, 100])
def test_what_is_made_in_pieces_is_what_would_be_held(monkeypatch, block):
    occupancy = drawn_occupancy(3, 9_999, density=0.1, block=32)
    whole = regrouped(occupancy, block)
    assert isinstance(whole, Occupancy)
    as_long(monkeypatch)
    found = regrouped(occupancy, block)
    assert isinstance(found, LongOccupancy)
    assert (found.n_ranks, found.n_blocks) == (whole.n_ranks, whole.n_blocks)
    np.testing.assert_array_equal(found.counts, whole.counts)
    np.testing.assert_array_equal(found.density, whole.density)
    assert union_density(found) == union_density(whole)
    assert densification(found) == densification(whole)
    made = [(first, words) for first, _, words in pieces(found)]
    assert [first for first, _ in made] == list(range(0, whole.n_blocks, 64))
    np.testing.assert_array_equal(np.concatenate([words for _, words in made], axis=1), whole.words)


@pytest.mark.parametrize("name", [name for name in COLLECTIVES if COLLECTIVES[name].metadata["sparse"]])
def test_messages_of_what_is_not_held_are_as_long(monkeypatch, name):
    """Words of 4000 MiB for 8 ranks took 1.05 GB, those of each rank as truth values as much again."""
    form, schedule = COLLECTIVES[name].metadata["sparse"], COLLECTIVES[name].build(8)
    drawn = drawn_occupancy(8, 19_999, density=0.05, block=32)
    whole = form.transfer_bytes(schedule, regrouped(drawn, form.block), {})
    as_long(monkeypatch)
    found = regrouped(drawn, form.block)
    assert isinstance(found, LongOccupancy)
    np.testing.assert_array_equal(form.transfer_bytes(schedule, found, {}), whole)


def test_messages_of_a_long_tensor_take_less_than_its_words(monkeypatch):
    n, entry = 2**24, COLLECTIVES["ok_topk"]
    form, schedule, drawn = entry.metadata["sparse"], entry.build(8), drawn_occupancy(8, n, density=0.01, block=256)
    form.transfer_bytes(schedule, drawn_occupancy(8, 64, density=0.5), {})  # compiles
    monkeypatch.setattr(long_occupancy, "HELD", 2**20)
    tracemalloc.start()
    try:
        form.transfer_bytes(schedule, regrouped(drawn, 1), {})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * n / 8
