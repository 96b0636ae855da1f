"""Signs, 1-bit SGD and QSGD."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slow_compressors import slow_dgc, slow_one_bit, slow_sign, slow_threshold, slow_top_k

from commsim.core.errors import InputError
from commsim.sparse.compressors.dgc import dgc
from commsim.sparse.compressors.message import CompressedMessage, CompressedRank
from commsim.sparse.compressors.one_bit import one_bit
from commsim.sparse.compressors.qsgd import WIDTHS, packed, qsgd, unpacked
from commsim.sparse.compressors.random_k import random_k
from commsim.sparse.compressors.signs import sign
from commsim.sparse.compressors.threshold import threshold
from commsim.sparse.compressors.top_k import top_k

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


# Top-k, random-k, threshold and deep gradient compression.
few_values = st.lists(st.integers(-5, 5), min_size=1, max_size=40).map(lambda x: np.array(x, np.float32))


@given(vector=few_values, data=st.data())
def test_the_largest_are_kept_and_of_equals_the_first(vector, data):
    k = data.draw(st.integers(1, len(vector)))
    assert decoded(top_k(k=k), vector).tolist() == slow_top_k(vector.tolist(), k)


def test_a_list_is_indices_of_four_bytes_and_values():
    message = top_k(k=2).encode(np.array([1, -7, 0, 5], np.float32))
    assert message.payload == b"\x01\0\0\0\x03\0\0\0" + np.array([-7, 5], "<f4").tobytes()
    assert top_k(density=0.01).message_bytes(1000) == 10 * 8
    assert top_k(density=1e-9).message_bytes(1000) == 8


@given(vector=few_values, above=st.floats(0, 6))
def test_what_is_above_the_threshold_is_kept(vector, above):
    assert decoded(threshold(above), vector).tolist() == slow_threshold(vector.tolist(), above)
    n_kept = int((np.abs(vector) > above).sum())
    assert threshold(above).encode(vector).n_bytes == 8 * n_kept


def test_how_long_a_list_above_a_threshold_is_no_size_tells():
    with pytest.raises(InputError, match="sends as many elements as the data has above it"):
        threshold(0.1).message_bytes(1000)


def test_random_elements_are_the_same_at_all_ranks_and_others_in_every_step():
    vector, compressor = np.arange(1.0, 1001.0), random_k(density=0.05, seed=3)
    first = decoded(compressor, vector)
    assert np.count_nonzero(first) == 50
    assert np.array_equal(first[first != 0], vector[first != 0])
    assert np.array_equal(decoded(compressor, vector, rank=5), first)
    assert not np.array_equal(decoded(compressor, vector, step=1), first)
    assert not np.array_equal(decoded(random_k(density=0.05, seed=4), vector), first)


def test_the_mean_of_unbiased_random_elements_is_the_gradient():
    vector, compressor, n = np.random.default_rng(0).standard_normal(20), random_k(k=5, unbiased=True), 4000
    mean = np.mean([decoded(compressor, vector, step=step) for step in range(n)], axis=0)
    deviation = np.abs(vector) * np.sqrt((20 / 5 - 1) / n)  # of x n/k with probability k/n
    assert (np.abs(mean - vector) < 5 * deviation).all()
    assert CompressedRank(compressor).memory.add(vector) is vector


@given(steps=st.lists(st.lists(st.integers(-9, 9), min_size=12, max_size=12), min_size=1, max_size=8), data=st.data())
def test_dgc_is_its_algorithm_step_by_step(steps, data):
    momentum, clip = data.draw(st.sampled_from([0.0, 0.5])), data.draw(st.sampled_from([0.0, 8.0]))
    n_ranks, epoch = data.draw(st.sampled_from([1, 4])), data.draw(st.sampled_from([0, 2]))
    compressor = dgc(density=0.1, momentum=momentum, clip=clip, n_ranks=n_ranks, epoch=epoch)
    worker, gradients = CompressedRank(compressor), [np.array(step, np.float64) for step in steps]
    counts = [max(1, round(12 * (max(0.1, 0.25 ** (t // epoch + 1)) if epoch else 0.1))) for t in range(len(steps))]
    own_clip = clip / n_ranks**0.5
    slow, accumulated = slow_dgc(gradients, momentum, own_clip, counts)
    if clip:  # the norm may be rounded otherwise, and then which of two equals is the largest
        gradients = [g + 1e-3 * np.arange(12) for g in gradients]
        slow, accumulated = slow_dgc(gradients, momentum, own_clip, counts)
    for gradient, expected in zip(gradients, slow, strict=True):
        np.testing.assert_allclose(compressor.decode(worker.send(gradient)), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(worker.memory.accumulated, accumulated, rtol=1e-12, atol=1e-12)


def test_the_density_of_dgc_falls_fourfold_with_every_epoch_of_the_warm_up():
    compressor = dgc(density=0.001, epoch=10)
    assert [compressor.density_at(step) for step in (0, 9, 10, 20, 30, 40, 999)] == [
        1 / 4, 1 / 4, 1 / 16, 1 / 64, 1 / 256, 0.001, 0.001,
    ]  # fmt: skip
    assert dgc(density=0.001).density_at(0) == 0.001
    assert compressor.message_bytes(10_000) == 80
    assert compressor.encode(np.ones(10_000, np.float32), step=0).n_bytes == 8 * 2500


def test_momentum_is_masked_where_it_has_been_sent():
    worker = CompressedRank(dgc(density=0.5, momentum=0.5))
    worker.send(np.array([4.0, 1.0]))
    assert worker.memory.velocity.tolist() == [0.0, 1.0]
    assert worker.memory.accumulated.tolist() == [0.0, 1.0]
    message = worker.send(np.array([0.0, 1.0]))  # u = 0.5 * 1 + 1, v = 1 + u
    assert isinstance(message, CompressedMessage)
    assert worker.compressor.decode(message).tolist() == [0.0, 2.5]
