"""What holds for every registered compressor; a new one is covered without a line here, but for its parameters."""

import inspect
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.sparse.compressors import COMPRESSORS, compressor_of
from commsim.sparse.compressors.message import CompressedRank, Residual, SummingCompressor, compressed_sum

SPECS = {"threshold": "threshold:above=0.5", "dgc": "dgc:density=0.05,momentum=0", "power_sgd": "power_sgd:rank=1"}
ALL = [SPECS.get(name, name) for name in COMPRESSORS]
WITH_FEEDBACK = [spec for spec in ALL if not spec.startswith("qsgd")]
LISTS = [spec for spec in ALL if spec.partition(":")[0] in ("top_k", "random_k", "threshold", "dgc")]
floats = st.floats(-1e6, 1e6, width=32)


def vectors(least=30, most=60, elements=floats):
    return st.lists(elements, min_size=least, max_size=most).map(lambda x: np.array(x, np.float32))


def residual_of(worker):
    return worker.memory.residual if isinstance(worker.memory, Residual) else worker.memory.accumulated


@pytest.mark.slow
@pytest.mark.parametrize("spec", ALL)
@given(data=st.data(), dtype=st.sampled_from([np.float32, np.float64]))
@settings(max_examples=settings().max_examples // 2)
def test_a_message_has_the_bytes_that_it_says_and_decodes_to_as_many_elements(spec, data, dtype):
    compressor, vector = compressor_of(spec), data.draw(vectors()).astype(dtype)
    message = compressor.encode(vector, rank=1, step=2)
    assert message.n_bytes == len(message.payload)
    if not spec.startswith("threshold"):
        assert message.n_bytes == compressor.message_bytes(len(vector), vector.itemsize)
    got = compressor.decode(message)
    assert (got.shape, got.dtype) == (vector.shape, vector.dtype)
    assert np.isfinite(got).all()
    again = compressor_of(spec).encode(vector, rank=1, step=2)
    assert again.payload == message.payload


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", [0, 17, 49])
@pytest.mark.parametrize("spec", ALL)
def test_nan_and_infinity_never_vanish_in_a_message(spec, where, bad):
    vector = np.zeros(50, np.float32)
    vector[where] = bad
    message = re.escape(f"a gradient must be finite, got {bad} at index {where}")
    with pytest.raises(InputError, match=message):
        compressor_of(spec).encode(vector)
    workers = [CompressedRank(compressor_of(spec), rank) for rank in range(2)]
    good = np.ones(50, np.float32)
    with pytest.raises(InputError, match=message):
        compressed_sum(workers, [good, vector])


@pytest.mark.parametrize("spec", ALL)
def test_a_sum_or_residual_that_overflows_is_refused_and_not_sent(spec):
    huge = np.full(50, 3e38, np.float32)
    workers = [CompressedRank(compressor_of(spec), rank) for rank in range(2)]
    with pytest.raises(InputError, match=r"must be finite, got -?(inf|nan)"):
        for _ in range(60):  # lists come to every element sooner or later
            compressed_sum(workers, [huge, huge])


@pytest.mark.slow
@pytest.mark.parametrize("spec", WITH_FEEDBACK)
@given(steps=st.lists(vectors(40, 40), min_size=1, max_size=6))
@settings(max_examples=settings().max_examples // 2)
def test_what_is_sent_and_what_stays_is_what_there_was(spec, steps):
    worker, sent, bound = CompressedRank(compressor_of(spec)), np.zeros(40), np.zeros(40)
    for gradient in steps:
        got = worker.compressor.decode(worker.send(gradient)).astype(np.float64)
        sent += got
        bound += np.abs(got) + np.abs(residual_of(worker).astype(np.float64))  # two roundings, half a unit each
    lost = sum(gradient.astype(np.float64) for gradient in steps) - sent - residual_of(worker)
    assert (np.abs(lost) <= np.finfo(np.float32).eps * bound).all()


@pytest.mark.parametrize("spec", LISTS)
@given(steps=st.lists(vectors(40, 40, st.integers(-1000, 1000)), min_size=1, max_size=6), n_ranks=st.integers(1, 3))
@settings(max_examples=settings().max_examples // 2)
def test_lists_lose_nothing_of_whole_numbers(spec, steps, n_ranks):
    workers, total = [CompressedRank(compressor_of(spec), rank) for rank in range(n_ranks)], np.zeros(40)
    for step in steps:
        total += compressed_sum(workers, [step * (rank + 1) for rank in range(n_ranks)])[0]
    stays = sum(residual_of(worker).astype(np.float64) for worker in workers)
    assert np.array_equal(total + stays, sum(steps) * np.float64(n_ranks * (n_ranks + 1) / 2))


@pytest.mark.parametrize("spec", ALL)
def test_the_sum_is_that_of_what_the_messages_decode_to(spec):
    rng = np.random.default_rng(0)
    gradients = [rng.integers(-9, 9, 64).astype(np.float64) for _ in range(3)]
    compressor = compressor_of(spec)
    total, n_bytes = compressed_sum([CompressedRank(compressor, rank) for rank in range(3)], gradients)
    if spec.startswith("power_sgd"):  # which decodes to another matrix when it is alone; see its own test
        assert n_bytes == [sum(compressor.exchange_bytes(64, 8))] * 3
        return
    messages = [compressor.encode(gradient, rank) for rank, gradient in enumerate(gradients)]
    np.testing.assert_array_equal(total, sum(compressor.decode(message) for message in messages))
    if isinstance(compressor, SummingCompressor):
        assert n_bytes == [sum(compressor.exchange_bytes(64, 8))] * 3
    else:
        assert n_bytes == [message.n_bytes for message in messages]


@pytest.mark.parametrize("spec", ALL)
def test_it_says_why_its_messages_cannot_be_summed_or_sums_them(spec):
    compressor = compressor_of(spec)
    assert isinstance(compressor, SummingCompressor) == (compressor.not_summed is None)
    if compressor.not_summed is not None:
        with pytest.raises(InputError, match="cannot be summed: " + re.escape(compressor.not_summed)):
            next(CompressedRank(compressor).exchange(np.ones(50, np.float32)))


@pytest.mark.parametrize("spec", ALL)
@pytest.mark.parametrize("vector", [np.ones((2, 25), np.float32), np.ones(50, np.int64), np.ones(0), np.array(["1"])])
def test_what_is_no_vector_of_floats_is_refused(spec, vector):
    with pytest.raises(InputError, match=r"a gradient must be \[n >= 1\] floats"):
        compressor_of(spec).encode(vector)


@pytest.mark.parametrize("name", COMPRESSORS)
def test_its_docstring_has_its_sections_and_names_every_parameter(name):
    doc = inspect.getdoc(COMPRESSORS[name].build) or ""
    for section in ("Returns", "References"):
        assert f"\n{section}\n{'-' * len(section)}\n" in doc, section
    for parameter in COMPRESSORS[name].parameters:
        assert re.search(rf"^{parameter} : ", doc, re.MULTILINE), parameter
    assert "bytes" in doc.split("\n", 1)[0]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("top_k:density=1.5", "density must be above 0 and at most 1, got 1.5"),
        ("top_k:density=0", "density must be above 0 and at most 1, got 0"),
        ("dgc:density=2", "density must be above 0 and at most 1, got 2"),
        ("random_k:k=0", "k must be at least 1, got k=0"),
        ("random_k:seed=-1", "seed must be at least 0, got -1"),
        ("threshold", "threshold needs above"),
        ("threshold:above=-1", "a threshold must be at least 0 and finite, got above=-1"),
        ("dgc:momentum=1", "dgc needs momentum of 0 up to 1"),
        ("qsgd:bits=3", "qsgd needs bits of 2, 4, 8"),
        ("power_sgd:rank=0", "power_sgd needs rank and columns of at least 1"),
        ("one_bit:columns=0", "columns must be at least 1, got 0"),
        ("topk", "unknown compressor 'topk'; did you mean top_k"),
        ("sign:scale=2", "sign has no parameter 'scale'"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(spec, message):
    with pytest.raises(InputError, match=message):
        compressor_of(spec)


@pytest.mark.parametrize("spec", ["top_k:k=51", "random_k:k=51"])
def test_more_elements_than_there_are_cannot_be_kept(spec):
    with pytest.raises(InputError, match=r"a gradient of 50 elements has no 51 to keep: k must be 1\.\.50"):
        compressor_of(spec).encode(np.ones(50, np.float32))
