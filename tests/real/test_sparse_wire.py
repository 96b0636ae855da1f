import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.errors import BackendError, InputError
from commsim.real.sparse_wire import CODECS, VectorLayout, codec
from commsim.sparse.encodings import ENCODINGS, Contents
from commsim.sparse.partition import Partition


@pytest.mark.parametrize("name", ENCODINGS)
@given(data=st.data())
@settings(max_examples=settings().max_examples // 2)
def test_a_message_is_as_long_as_its_encoding_counts_and_is_read_as_it_was_written(name, data):
    n_elements, block = data.draw(st.integers(1, 200)), data.draw(st.sampled_from([1, 3, 16]))
    n_chunks, hashed = data.draw(st.integers(1, 5)), data.draw(st.booleans())
    dtype = np.dtype(data.draw(st.sampled_from(["float32", "float64", "int32"])))
    layout = VectorLayout(Partition(n_elements, block, n_chunks, hashed), dtype)
    first = data.draw(st.integers(0, n_chunks - 1))
    chunks = list(range(first, data.draw(st.integers(first, n_chunks - 1)) + 1))
    mine = layout.blocks(chunks)
    blocks = mine[np.array(data.draw(st.lists(st.booleans(), min_size=len(mine), max_size=len(mine))), np.bool_)]
    index = layout.elements(blocks)
    value = (np.arange(len(index)) + 1).astype(dtype)
    write, read = codec(ENCODINGS[name])
    message = write(layout, chunks, (index, value))
    counted = Contents(
        *(np.array([n]) for n in (len(blocks), len(index), len(mine), len(layout.elements(mine)))),
        np.array([True]),
        dtype.itemsize,
    )
    assert len(message) == ENCODINGS[name](counted)[0]
    got_index, got_value = read(layout, chunks, message)
    order, wanted = np.argsort(got_index), np.argsort(index)
    assert np.array_equal(got_index[order], index[wanted])
    assert np.array_equal(got_value[order], value[wanted])


def test_every_named_encoding_can_be_sent():
    assert set(ENCODINGS.values()) == set(CODECS)


@pytest.mark.parametrize("name", ["coo", "dense", "bitmap"])
def test_a_message_of_a_length_that_cannot_be_is_refused(name):
    layout = VectorLayout(Partition(16, 1, 1), np.dtype(np.float32))
    _, read = codec(ENCODINGS[name])
    with pytest.raises(BackendError, match="bytes"):
        read(layout, [0], np.zeros(13, np.uint8))


def test_indices_must_reach_the_last_element():
    with pytest.raises(InputError, match="indices of 4 bytes reach 4294967296 elements, got 4294967297"):
        VectorLayout(Partition(2**32 + 1, 2**20, 1), np.dtype(np.float32))
