import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.sparse.encodings import (
    ENCODINGS,
    Contents,
    bitmap,
    blocks,
    by_phase,
    coo,
    dense,
    hash_bitmap,
    switching,
)


def contents(present, all_blocks, block=1, value_bytes=4, reduces=True):
    n, m = np.array([present]), np.array([all_blocks])
    return Contents(n, n * block, m, m * block, np.array([reduces]), value_bytes)


def test_bytes_are_what_is_written_out():
    some = contents(present=3, all_blocks=33, block=256)
    assert dense(some)[0] == 33 * 256 * 4
    assert coo(some)[0] == 3 * 256 * 8
    assert blocks(some)[0] == 3 * 1024 + 3 * 4
    assert bitmap(some)[0] == 3 * 1024 + 5  # 33 bits
    assert hash_bitmap(some)[0] == 3 * 1024 + 8  # two words of 32 bits


def test_half_precision_values_keep_indices_of_four_bytes():
    assert coo(contents(10, 100, value_bytes=2))[0] == 60
    assert blocks(contents(10, 100, block=4, value_bytes=2))[0] == 120


@pytest.mark.parametrize("name", [name for name in ENCODINGS if name not in ("dense", "bitmap", "hash_bitmap")])
def test_nothing_takes_no_bytes(name):
    assert ENCODINGS[name](contents(0, 100))[0] == 0


@given(n=st.integers(0, 1000))
def test_four_byte_indices_and_values_switch_to_dense_at_half(n):
    some = contents(n, 1000)
    assert switching()(some)[0] == (8 * n if n <= 500 else 4000)
    assert switching(blocks)(some)[0] == min(8 * n, 4000)


def test_two_phases_take_an_encoding_each():
    added, copied = contents(1, 10), contents(1, 10, reduces=False)
    both = Contents(*(np.concatenate((getattr(added, f), getattr(copied, f))) for f in FIELDS))
    assert by_phase(coo, dense)(both).tolist() == [8, 40]
    assert by_phase(coo, dense)(both[[1, 0]]).tolist() == [40, 8]
    assert len(both[both.reduces]) == 1


FIELDS = ("blocks", "elements", "all_blocks", "all_elements", "reduces")
