"""The sequence of slots and versions, and how many packets a tensor needs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from switch_model.slot_sequence import packets_needed, slot_and_version


@given(n_slots=st.integers(1, 8), tensors=st.lists(st.integers(1, 30), min_size=1, max_size=5))
def test_a_slot_changes_its_version_at_every_use_across_all_tensors(n_slots: int, tensors: list[int]) -> None:
    shift, used = 0, []
    for n in tensors:
        used += [slot_and_version(q, shift, n_slots) for q in range(n)]
        shift = (shift + n) % (2 * n_slots)
    for slot in range(n_slots):
        versions = [v for s, v in used if s == slot]
        assert versions == [i % 2 for i in range(len(versions))]
    assert [s for s, _ in used] == [i % n_slots for i in range(len(used))]


def test_a_tensor_that_leaves_the_sequence_in_the_middle_is_followed_from_there() -> None:
    shift = 3  # packets of the tensor before
    assert [slot_and_version(q, 0, 2) for q in range(3)] == [(0, 0), (1, 0), (0, 1)]
    assert [slot_and_version(q, shift, 2) for q in range(3)] == [(1, 1), (0, 0), (1, 0)]


def test_floats_send_one_window_more_than_integers() -> None:
    assert packets_needed(1000, 10, 16, floats=False) == 100
    assert packets_needed(1000, 10, 16, floats=True) == 116
    assert packets_needed(45, 10, 16, floats=True) == 10
    with pytest.raises(InputError, match="at least 1"):
        packets_needed(0, 10, 16, floats=True)
