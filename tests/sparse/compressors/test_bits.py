"""Signs, 1-bit SGD and QSGD."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slow_compressors import slow_one_bit, slow_sign

from commsim.core.errors import InputError
from commsim.sparse.compressors.qsgd import WIDTHS, packed, qsgd, unpacked
from commsim.sparse.compressors.signs import one_bit, sign

vectors = st.lists(st.floats(-1e3, 1e3, width=32), min_size=1, max_size=60).map(lambda x: np.array(x, np.float32))


def decoded(compressor, vector, **where):
    return compressor.decode(compressor.encode(vector, **where))


@given(vector=vectors)
def test_signs_are_scaled_by_the_mean_magnitude(vector):
    np.testing.assert_allclose(decoded(sign(), vector), slow_sign(vector), rtol=3e-7, atol=1e-40)
    assert sign().encode(vector).n_bytes == -(-len(vector) // 8) + 4


@given(vector=vectors, data=st.data())
def test_one_bit_decodes_to_the_mean_of_each_sign_of_a_column(vector, data):
    columns = data.draw(st.integers(1, len(vector)))
    np.testing.assert_allclose(decoded(one_bit(columns), vector), slow_one_bit(vector, columns), rtol=3e-7, atol=1e-40)
    assert one_bit(columns).encode(vector).n_bytes == -(-len(vector) // 8) + 8 * columns


def test_one_bit_takes_a_word_for_32_elements_and_two_scales_for_a_column():
    assert one_bit(100).message_bytes(32_000) == 4 * (1000 + 2 * 100)
    assert one_bit().message_bytes(10_000) == 1250 + 8 * 100
    with pytest.raises(InputError, match=r"a gradient of 4 elements has 1\.\.4 columns, got columns=5"):
        one_bit(5).encode(np.ones(4))


@given(bits=st.sampled_from(WIDTHS), data=st.data())
def test_levels_come_out_of_their_bytes_as_they_went_in(bits, data):
    codes = np.array(data.draw(st.lists(st.integers(0, 2**bits - 1), min_size=1, max_size=40)), np.uint8)
    words = packed(codes, bits)
    assert len(words) == -(-len(codes) * bits // 8)
    assert int.from_bytes(words.tobytes(), "little") == sum(int(c) << (bits * i) for i, c in enumerate(codes))
    assert unpacked(words, bits, len(codes)).tolist() == codes.tolist()


@given(vector=vectors, bits=st.sampled_from(WIDTHS), bucket=st.integers(1, 70), step=st.integers(0, 9))
def test_qsgd_rounds_to_a_neighbouring_level_of_the_bucket(vector, bits, bucket, step):
    got, s = decoded(qsgd(bits, bucket), vector, step=step).astype(np.float64), 2 ** (bits - 1) - 1
    for first in range(0, len(vector), bucket):
        exact = vector[first : first + bucket].astype(np.float64)
        unit = np.float64(np.linalg.norm(exact)) / s
        assert (np.abs(got[first : first + bucket] - exact) <= unit * (1 + 1e-5) + 1e-44).all()
        if unit > 1e-30:
            level = got[first : first + bucket] / unit
            np.testing.assert_allclose(level, np.rint(level), atol=1e-4)
            assert (np.abs(level) <= s + 1e-4).all()


@pytest.mark.parametrize("bits", WIDTHS)
def test_qsgd_is_right_on_average(bits):
    vector, n = np.random.default_rng(1).standard_normal(50), 3000
    draws = np.array([decoded(qsgd(bits, 25), vector, step=step) for step in range(n)])
    unit = np.repeat([np.linalg.norm(vector[:25]), np.linalg.norm(vector[25:])], 25) / (2 ** (bits - 1) - 1)
    share = np.abs(vector) / unit % 1
    deviation = unit * np.sqrt(share * (1 - share) / n)  # of a coin that rounds up
    assert (np.abs(draws.mean(axis=0) - vector) <= 5 * deviation + 1e-6 * unit).all()
    assert draws.std(axis=0).max() > 0


def test_ranks_and_steps_round_independently_and_repeatably():
    vector = np.random.default_rng(2).standard_normal(1000)
    one = decoded(qsgd(), vector)
    assert np.array_equal(one, decoded(qsgd(), vector))
    for other in (decoded(qsgd(), vector, rank=1), decoded(qsgd(), vector, step=1), decoded(qsgd(seed=1), vector)):
        assert not np.array_equal(one, other)


def test_qsgd_takes_its_bits_and_a_norm_for_each_bucket():
    assert qsgd(4, 1024).message_bytes(10 * 1024) == 10 * (512 + 4)
    assert qsgd(2, 512).message_bytes(1000) == 250 + 2 * 4
    assert not decoded(qsgd(), np.zeros(10)).any()
