"""Workers and switch on links that lose, double and reorder: each element is summed exactly once, and it ends."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lossy_link import LossyLink
from quantized import dequantize, quantize

from commsim.core.errors import InputError
from switch_model.live.exchange import Lease, TensorExchange, exponents_of, frames_of
from switch_model.live.frames import LEAD
from switch_model.live.sums import error_over_bound
from switch_model.quantize import block_exponents
from switch_model.slot_sequence import packets_needed

ALONE = Lease(rank=0, n_workers=1, job_number=9, first_slot=5, n_slots=4, elements=64)


def integers(rng: np.random.Generator, n_workers: int, n: int) -> list[np.ndarray]:
    return [rng.integers(-(2**31), 2**31, n, np.int32) for _ in range(n_workers)]


def floats(rng: np.random.Generator, n_workers: int, n: int) -> list[np.ndarray]:
    sizes = 10.0 ** rng.integers(-6, 6, n)
    return [(rng.standard_normal(n) * sizes).astype(np.float32) for _ in range(n_workers)]


def quantised_sum(tensors: list[np.ndarray], block: int) -> np.ndarray:
    """What the slow, plain functions make of it."""
    agreed = np.max([block_exponents(t, block) for t in tensors], axis=0)
    parts = [quantize(t, agreed, block, len(tensors)).view(np.uint32) for t in tensors]
    return dequantize(np.sum(parts, axis=0, dtype=np.uint32).view(np.int32), agreed, block, len(tensors))


@pytest.mark.slow
@given(st.data())
def test_every_element_is_summed_exactly_once_whatever_the_network_does(data: st.DataObject) -> None:
    n_workers, n_slots = data.draw(st.sampled_from([1, 2, 3, 5, 32])), data.draw(st.integers(1, 9))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    lose, double = data.draw(st.sampled_from([0.0, 0.1, 0.5])), data.draw(st.sampled_from([0.0, 0.3]))
    link = LossyLink(n_workers, n_slots, rng, lose, double, first_slot=data.draw(st.integers(0, 3)))
    for _ in range(data.draw(st.integers(1, 4))):
        n = data.draw(st.integers(1, 64 * 25))
        if data.draw(st.booleans()):
            tensors = integers(rng, n_workers, n)
            wanted = np.sum([t.view(np.uint32) for t in tensors], axis=0, dtype=np.uint32).view(np.int32)
        else:
            tensors = floats(rng, n_workers, n)
            wanted = quantised_sum(tensors, 64)
        for got in link.all_reduce(tensors):
            np.testing.assert_array_equal(got.view(np.int32), wanted.view(np.int32))
    counts = link.plane.counts()
    dropped = sum(n for name, n in counts.items() if name.startswith("dropped"))
    assert counts["packets_in"] == counts["first"] + counts["add"] + counts["duplicate"] + dropped
    assert counts["first"] == counts["complete"]
    assert counts["add"] == counts["complete"] * (n_workers - 1)


@pytest.mark.parametrize("kind", [integers, floats])
def test_the_sequence_of_slots_may_pass_the_end_of_the_packet_numbers(kind: object) -> None:
    rng = np.random.default_rng(0)
    link = LossyLink(2, 3, rng, 0.2, 0.2)
    link.sequence = begin = 2**32 - 2**32 % 6 - 6  # the last time that slot 0 and version 0 come before the end
    link.plane._rounds["tsi"] = (link.plane._rounds["tsi"].astype(np.int64) + begin) % 2**32
    for _ in range(4):
        tensors = integers(rng, 2, 700)
        wanted = tensors[0] + tensors[1]
        assert all((got == wanted).all() for got in link.all_reduce(tensors))
    assert link.sequence > 2**32


def test_floats_take_one_window_more_than_integers() -> None:
    n, slots = 64 * 11, ALONE.n_slots
    packets = {t: TensorExchange(ALONE, np.ones(n, t), 0, frames_of(ALONE)).n_packets for t in (np.int32, np.float32)}
    assert packets == {np.int32: 11, np.float32: 11 + slots}
    assert packets[np.float32] == packets_needed(n, 64, slots, floats=True)


@given(st.integers(1, 12), st.integers(1, 40), st.booleans(), st.integers(0, 2**32))
def test_where_nothing_is_lost_no_packet_is_sent_twice(slots: int, blocks: int, as_floats: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    link = LossyLink(3, slots, rng, 0.0, 0.0)
    link.all_reduce((floats if as_floats else integers)(rng, 3, 64 * blocks))
    assert link.plane.counts()["packets_in"] == 3 * packets_needed(64 * blocks, 64, slots, as_floats)


def test_a_float_sum_is_within_the_bound_of_quantisation_and_the_same_on_every_worker() -> None:
    rng = np.random.default_rng(1)
    tensors = floats(rng, 5, 5000)
    got = LossyLink(5, 8, rng, 0.1, 0.1).all_reduce(tensors)
    agreed = np.max([block_exponents(t, 64) for t in tensors], axis=0)
    exact = np.sum(np.float64(tensors), axis=0)
    assert error_over_bound(got[0], exact, agreed, 64, 5) <= 1
    assert error_over_bound(np.nextafter(got[0], np.inf, dtype=np.float32) * 1.001, exact, agreed, 64, 5) > 1
    assert all((one.view(np.int32) == got[0].view(np.int32)).all() for one in got)


def test_a_frame_is_what_the_wire_format_says() -> None:
    frames = frames_of(ALONE)
    values = np.arange(64, dtype=np.int32) - 3
    TensorExchange(ALONE, values, 6, frames).begin(0.0, 1.0)  # the seventh packet of four slots: slot 2, version 1
    got = frames.view(np.uint8)[2, LEAD:].tobytes()
    assert got[:10] == bytes([0x11, 9, 0, 0, 0, 6, 0x80, 5 + 2, 0, 0])
    assert got[10:] == values.astype(">i4").tobytes()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 2.0**127])
def test_floats_that_cannot_be_sent_are_refused(bad: float) -> None:
    values = np.ones(200, np.float32)
    values[150] = bad
    with pytest.raises(InputError, match="element 150 is"):
        exponents_of(values, 64)


@pytest.mark.parametrize("good", [2.0**126 * 1.9999, 1e-45, 0.0, -1e-38])
def test_the_largest_and_the_smallest_floats_can_be_sent(good: float) -> None:
    values = np.full(100, good, np.float32)
    got = LossyLink(2, 2, np.random.default_rng(0), 0.0, 0.0).all_reduce([values, -values])
    assert not np.concatenate(got).any()
