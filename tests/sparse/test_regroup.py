import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.sparse.occupancy import Occupancy, regrouped


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
