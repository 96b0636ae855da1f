import copy
import pickle
from dataclasses import dataclass

import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.core.program import Program
from commsim.core.value import Value, freeze


@dataclass(frozen=True, slots=True, eq=False)
class Pair(Value):
    name: str
    array: np.ndarray

    def __post_init__(self):
        object.__setattr__(self, "array", freeze(self.array, np.float64))


def test_values_are_equal_when_every_field_is():
    assert Pair("a", [1, 2]) == Pair("a", [1, 2])
    assert Pair("a", [1, 2]) != Pair("b", [1, 2])
    assert Pair("a", [1, 2]) != Pair("a", [1, 3])
    assert Pair("a", [1, 2]) != Pair("a", [[1, 2]])
    assert Pair("a", [1, 2]) != "a"


def test_equal_values_hash_alike_even_with_a_negative_zero():
    a, b = Pair("a", [0.0, 1]), Pair("a", [-0.0, 1])
    assert a == b
    assert hash(a) == hash(b)
    assert len({a, b, Pair("a", [2, 1])}) == 2


def test_equal_schedules_hash_alike_whatever_lies_between_the_fields_of_a_transfer():
    p = Program(2, 1)
    p.copy(0, src=0, dst=1)
    schedule = p.build()
    body = schedule.blocks[0].body
    raw = np.frombuffer(body.tobytes(), np.uint8).reshape(len(body), -1).copy()
    raw[:, -1] ^= 255  # the last byte of a row is padding
    other = type(schedule.blocks[0])(raw.reshape(-1).view(body.dtype), 1)
    assert other == schedule.blocks[0]
    assert hash(other) == hash(schedule.blocks[0])


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_is_equal_and_still_frozen(clone):
    twin = clone(Pair("a", [1, 2]))
    assert twin == Pair("a", [1, 2])
    with pytest.raises(ValueError, match="read-only"):
        twin.array[0] = 5


def test_a_frozen_array_is_a_copy_that_cannot_be_written():
    given = np.arange(3.0)
    frozen = freeze(given, np.float64)
    given[0] = 9
    assert frozen.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="read-only"):
        frozen[0] = 1


def test_a_scalar_fills_the_shape():
    assert freeze(2, np.float64, (3,)).tolist() == [2, 2, 2]
    assert freeze([2], np.float64, (3,)).tolist() == [2, 2, 2]
    assert freeze(2, np.float64, (0,)).shape == (0,)


@pytest.mark.parametrize(
    ("array", "dtype", "message"),
    [
        ([0.5], np.int32, "must hold values that fit int32, got 0.5"),
        ([2**32], np.int32, "fit int32, got 4294967296"),
        ([256], np.uint8, "fit uint8, got 256"),
        ([-1], np.uint8, "fit uint8, got -1"),
        ([2], np.bool_, "fit bool, got 2"),
        ([float("nan")], np.int32, "fit int32, got nan"),
        (["5"], np.float64, "must hold numbers"),
        ([None], np.float64, "must hold numbers"),
        ([1j], np.float64, "must hold numbers"),
        ([2**70], np.int32, "must hold numbers"),
    ],
)
def test_an_array_that_would_be_changed_on_the_way_is_refused(array, dtype, message):
    with pytest.raises(InputError, match=message):
        freeze(array, dtype, name="links")


def test_an_array_of_another_length_is_refused_by_name():
    with pytest.raises(InputError, match=r"bandwidth must have the shape \(3,\), got \(2,\)"):
        freeze([1, 2], np.float64, (3,), "bandwidth")


def test_an_array_that_is_frozen_already_is_not_copied():
    """A network of half a million hosts was copied for its name."""
    own = freeze([1.0, 2.0], np.float64)
    assert freeze(own, np.float64, (2,)) is own
    view = np.arange(4.0)[:2]
    view.setflags(write=False)  # of memory that others write
    for other in (own[:1], own.astype(np.float32), np.array([1.0, 2.0]), view):
        frozen = freeze(other, np.float64)
        assert frozen is not other
        assert not frozen.flags.writeable
